//! The bytes behind an [`Array`](crate::Array): a vector taken over as it is, or 64-byte aligned memory of our own.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::any::Any;
use std::ptr::NonNull;

use crate::Element;

const ALIGN: usize = 64;

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

// SAFETY: a Buffer owns its bytes; shared access is read-only, exclusive access goes through `&mut`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Zeroed, aligned memory.
    pub(crate) fn zeroed(len: usize) -> Buffer {
        let layout = Layout::from_size_align(len.max(1), ALIGN).expect("lengths are checked against isize::MAX / 8");
        // SAFETY: the layout is not empty.
        let ptr = unsafe { alloc_zeroed(layout) };
        let Some(ptr) = NonNull::new(ptr) else { handle_alloc_error(layout) };
        Buffer { ptr, len, owner: Owner::Aligned(layout) }
    }

    /// Takes a vector over without copying it.
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

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Owner::Aligned(layout) = self.owner {
            // SAFETY: allocated in `zeroed` with this layout.
            unsafe { dealloc(self.ptr.as_ptr(), layout) }
        }
    }
}
