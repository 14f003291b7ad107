//! The memory of an [`Array`](crate::Array): a vector that was passed in, 64-byte aligned memory
//! allocated here, or, for a few numbers, the buffer itself.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::Element;

/// The size of a cache line and of a vector register.
const ALIGN: usize = 64;

/// The size of a huge page. Tables and arenas of this size or more request huge pages: there are
/// fewer address translations, and lookups in large tables take a fifth less time.
const HUGE: usize = 2 << 20;

/// Buffers of at most this size are aligned inside a plain allocation. Allocators keep lists of
/// small plain blocks; aligned ones take several times as long, which counts when a single row is
/// predicted.
const SMALL: usize = 960;

/// Up to this many bytes are in the buffer itself: a prediction of one row makes many arrays of a
/// few numbers, and an allocation takes longer than to fill them.
const INSIDE: usize = 64;

/// Plain bytes. Their address is fixed once the buffer is behind a pointer.
pub(crate) struct Buffer {
    len: usize,
    place: Place,
}

enum Place {
    /// In a cell, because kernels write through pointers while others look at the array.
    Inside(UnsafeCell<[u64; INSIDE / 8]>),
    Outside {
        ptr: NonNull<u8>,
        /// The allocation that the bytes are in.
        start: NonNull<u8>,
        layout: Layout,
    },
}

// SAFETY: a Buffer owns its bytes; shared access is read-only, exclusive access goes through
// `&mut`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Zeroed, aligned memory; `None` if the allocation fails.
    pub(crate) fn zeroed(len: usize) -> Option<Buffer> {
        if len <= INSIDE {
            return Some(Buffer { len, place: Place::Inside(UnsafeCell::new([0; INSIDE / 8])) });
        }
        if len <= SMALL {
            return Buffer::small(len);
        }
        let align = if len >= HUGE { HUGE } else { ALIGN };
        let layout = Layout::from_size_align(len, align).ok()?;
        // SAFETY: the layout is not empty.
        let ptr = unsafe { if len >= HUGE { alloc(layout) } else { alloc_zeroed(layout) } };
        let ptr = NonNull::new(ptr)?;
        if len >= HUGE {
            ask_for_huge_pages(ptr.as_ptr(), len);
            // SAFETY: just allocated with this length.
            unsafe { ptr.as_ptr().write_bytes(0, len) };
        }
        Some(Buffer { len, place: Place::Outside { ptr, start: ptr, layout } })
    }

    fn small(len: usize) -> Option<Buffer> {
        let layout = Layout::from_size_align(len + ALIGN, 16).ok()?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        let skipped = start.addr().get().wrapping_neg() % ALIGN;
        // SAFETY: `skipped + len` bytes are within the allocation.
        let ptr = unsafe {
            let ptr = start.add(skipped);
            ptr.as_ptr().write_bytes(0, len);
            ptr
        };
        Some(Buffer { len, place: Place::Outside { ptr, start, layout } })
    }

    /// Takes ownership of a vector. Only a few numbers are copied.
    pub(crate) fn from_vec<T: Element>(values: Vec<T>) -> Buffer {
        if size_of_val(values.as_slice()) <= INSIDE {
            return Buffer::from_few(&values);
        }
        let mut values = ManuallyDrop::new(values);
        let ptr = NonNull::new(values.as_mut_ptr().cast::<u8>()).expect("a vector's pointer is never null");
        let len = size_of_val(values.as_slice());
        let layout = Layout::array::<T>(values.capacity()).expect("a vector has this layout");
        Buffer { len, place: Place::Outside { ptr, start: ptr, layout } }
    }

    /// Copies numbers.
    pub(crate) fn from_slice<T: Element>(values: &[T]) -> Buffer {
        if size_of_val(values) <= INSIDE { Buffer::from_few(values) } else { Buffer::from_vec(values.to_vec()) }
    }

    fn from_few<T: Element>(values: &[T]) -> Buffer {
        let (mut inside, len) = ([0u64; INSIDE / 8], size_of_val(values));
        assert!(len <= INSIDE && align_of::<T>() <= align_of::<u64>());
        // SAFETY: elements are plain numbers, and `len` bytes of them fit.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), inside.as_mut_ptr().cast(), len) };
        Buffer { len, place: Place::Inside(UnsafeCell::new(inside)) }
    }

    fn ptr(&self) -> *mut u8 {
        match &self.place {
            Place::Inside(cell) => cell.get().cast(),
            Place::Outside { ptr, .. } => ptr.as_ptr(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the place has `len` initialised bytes as long as the owner lives.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.len) }
    }
}

/// Requests huge pages. Must be called before the memory is first touched. The system may ignore
/// the request.
fn ask_for_huge_pages(start: *mut u8, len: usize) {
    // Miri does not support `madvise`.
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: whole pages of memory that we own; the advice changes no contents. Only whole
        // huge pages are named, so that nothing behind the buffer is concerned.
        unsafe { libc::madvise(start.cast(), len / HUGE * HUGE, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, len);
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Place::Outside { start, layout, .. } = self.place {
            // SAFETY: allocated with this layout, here or by a vector that was taken apart; it is
            // not empty. Elements are plain numbers, which need not be dropped.
            unsafe { dealloc(start.as_ptr(), layout) }
        }
    }
}
