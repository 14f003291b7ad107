//! The memory of an [`Array`](crate::Array): a vector that was passed in, or 64-byte aligned memory
//! allocated here.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::any::Any;
use std::ptr::NonNull;

use crate::Element;

/// The size of a cache line and of a vector register.
const ALIGN: usize = 64;

/// The size of a huge page. Tables and arenas of this size or more request huge pages: there are
/// fewer address translations, and lookups in large tables take a fifth less time.
const HUGE: usize = 2 << 20;

/// Plain bytes at a fixed address.
pub(crate) struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    owner: Owner,
}

enum Owner {
    Aligned(Layout),
    /// The vector whose elements `ptr` points to; kept only to be dropped.
    Vector(#[allow(dead_code, reason = "owns the memory")] Box<dyn Any + Send + Sync>),
}

// SAFETY: a Buffer owns its bytes; shared access is read-only, exclusive access goes through
// `&mut`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Zeroed, aligned memory; `None` if the allocation fails.
    pub(crate) fn zeroed(len: usize) -> Option<Buffer> {
        let align = if len >= HUGE { HUGE } else { ALIGN };
        let layout = Layout::from_size_align(len.max(1), align).ok()?;
        // SAFETY: the layout is not empty.
        let ptr = unsafe { if len >= HUGE { alloc(layout) } else { alloc_zeroed(layout) } };
        let ptr = NonNull::new(ptr)?;
        if len >= HUGE {
            ask_for_huge_pages(ptr.as_ptr(), len);
            // SAFETY: just allocated with this length.
            unsafe { ptr.as_ptr().write_bytes(0, len) };
        }
        Some(Buffer { ptr, len, owner: Owner::Aligned(layout) })
    }

    /// Takes ownership of a vector without copying it.
    pub(crate) fn from_vec<T: Element>(mut values: Vec<T>) -> Buffer {
        let ptr = NonNull::new(values.as_mut_ptr().cast::<u8>()).expect("a vector's pointer is never null");
        let len = size_of_val(values.as_slice());
        Buffer { ptr, len, owner: Owner::Vector(Box::new(values)) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes as long as the owner lives.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
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
        if let Owner::Aligned(layout) = self.owner {
            // SAFETY: allocated in `zeroed` with this layout.
            unsafe { dealloc(self.ptr.as_ptr(), layout) }
        }
    }
}
