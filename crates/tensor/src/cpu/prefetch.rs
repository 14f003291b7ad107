//! Prefetching: asks the processor to load memory that is needed soon.

use std::ops::Range;

/// The distance of prefetches, in rows. Rows of a large table are random cache misses; with this
/// many in flight their latencies overlap.
pub const AHEAD: usize = 8;

/// Tables of fewer bytes are assumed to be in the cache.
const CACHED: usize = 1 << 20;

/// The number of cache lines prefetched per row: the hardware follows a longer run by itself.
const LINES: usize = 8;

/// Prefetches the cache line at `at` for writing: a store that misses holds up all later stores.
#[inline(always)]
pub fn for_writing(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch may name any address and accesses nothing.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Prefetches the first cache line of some bytes for reading.
#[inline(always)]
pub fn for_reading(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch may name any address and accesses nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Prefetches the cache line at `at` for reading.
#[inline(always)]
pub fn line(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch may name any address and accesses nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Prefetches `n` floats from `at` into the second-level cache. Use it for data that is needed soon
/// but does not fit the first level.
#[inline(always)]
pub fn soon(at: *const f32, n: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        for i in (0..n).step_by(16) {
            // SAFETY: a prefetch may name any address and accesses nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(i).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, n);
}

/// A table whose rows are accessed in random order.
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

    /// Prefetches some columns of a row.
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
