//! The allocator of the program: mimalloc, without the way for aligned memory where any memory is
//! aligned enough.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// mimalloc as a global allocator. A request takes memory in one thread and gives it back in
/// another: musl's allocator is slow at that, and glibc's takes a quarter of the time of a request.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: estimand_serve::Allocator = estimand_serve::Allocator;
/// # fn main() {}
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

/// All memory of mimalloc is aligned to a word, also that of one byte. The way for aligned memory
/// takes several times as long whenever a list of free blocks is empty.
const WORD: usize = size_of::<usize>();

// SAFETY: mimalloc's functions are those of an allocator: memory that nobody else has, of this size
// and alignment, or null. `mi_free` and both ways to resize take memory of either kind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the functions may be called with any size, and any power of two.
        let start = unsafe {
            match layout.align() <= WORD {
                true => mi_malloc(layout.size()),
                false => mi_malloc_aligned(layout.size(), layout.align()),
            }
        };
        start.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let start = unsafe {
            match layout.align() <= WORD {
                true => mi_zalloc(layout.size()),
                false => mi_zalloc_aligned(layout.size(), layout.align()),
            }
        };
        start.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, _: Layout) {
        // SAFETY: the memory is mimalloc's, by the contract of this function.
        unsafe { mi_free(start.cast::<c_void>()) }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc` and `dealloc`.
        let start = unsafe {
            match layout.align() <= WORD {
                true => mi_realloc(start.cast(), size),
                false => mi_realloc_aligned(start.cast(), size, layout.align()),
            }
        };
        start.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of every small size and alignment is aligned, holds what is written, and keeps it
    /// when it grows and shrinks.
    #[test]
    fn memory_is_aligned_and_kept() {
        for align in (0..8).map(|power| 1usize << power) {
            for size in (1..200).chain([1_000, 1_025, 5_000, 100_000]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the sizes are not zero, and the memory is used within them.
                unsafe {
                    let zeroed = Allocator.alloc_zeroed(layout);
                    assert!((0..size).all(|i| *zeroed.add(i) == 0));
                    let start = Allocator.alloc(layout);
                    start.write_bytes(7, size);
                    let grown = Allocator.realloc(start, layout, 3 * size);
                    let layout_3 = Layout::from_size_align(3 * size, align).unwrap();
                    let shrunk = Allocator.realloc(grown, layout_3, size.div_ceil(2));
                    assert!((0..size.div_ceil(2)).all(|i| *shrunk.add(i) == 7));
                    for start in [zeroed, start, grown, shrunk] {
                        assert_eq!(start.addr() % align, 0, "{layout:?}");
                    }
                    Allocator.dealloc(zeroed, layout);
                    Allocator.dealloc(shrunk, Layout::from_size_align(size.div_ceil(2), align).unwrap());
                }
            }
        }
    }
}
