//! Asking memory for what is needed soon.

use std::ops::Range;

/// How many rows ahead to ask. Rows of a large table are random cache misses; with this many in
/// flight their latencies overlap.
pub const AHEAD: usize = 8;

/// Tables below this many bytes are taken to sit in the cache.
const CACHED: usize = 1 << 20;

/// Lines asked for per row: the hardware follows a longer run by itself.
const LINES: usize = 8;

/// Asks for the cache line at `at` in order to write it: a store that misses holds up all stores
/// behind it.
#[inline(always)]
pub fn for_writing(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch may name any address and touches nothing.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for the first cache line of some bytes in order to read it.
#[inline(always)]
pub fn for_reading(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch may name any address and touches nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// A table of rows that are touched in random order.
pub struct Prefetch<T> {
    start: *const T,
    width: usize,
    /// Whether the table is too large for the cache.
    pub pays: bool,
}

// SAFETY: the pointer is never dereferenced.
unsafe impl<T> Sync for Prefetch<T> {}

impl<T> Prefetch<T> {
    /// A table of `len` elements from `start`, in rows of `width`.
    pub fn new(start: *const T, len: usize, width: usize) -> Self {
        Prefetch { start, width, pays: len.saturating_mul(size_of::<T>()) > CACHED }
    }

    /// Asks for some columns of a row.
    #[inline(always)]
    pub fn row(&self, row: usize, columns: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let first = self.start.wrapping_add(row.wrapping_mul(self.width).wrapping_add(columns.start)).cast::<i8>();
            for line in (0..columns.len().saturating_mul(size_of::<T>())).step_by(64).take(LINES) {
                // SAFETY: a prefetch may name any address and reads nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(line)) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (row, columns);
    }
}
