//! Access to arrays larger than the caches: stores that bypass them, and early prefetches.
//!
//! A result larger than the caches is no longer in them when it is read again. Writing it past the
//! caches saves reading every line before it is overwritten, a third of the traffic of a copy. The
//! hardware's own prefetching ends at every page, which is about a tile.

/// Copies `len` bytes, with non-temporal stores if the destination is aligned to cache lines.
///
/// [`fence`] must be called before another thread may read the destination.
///
/// # Safety
/// `source` must be readable and `out` writable for `len` bytes, without overlap.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn stream(source: *const u8, len: usize, out: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    let head = out.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    // SAFETY: head, lines and tail together are the `len` bytes of the contract; lines start on a
    // 64-byte border.
    unsafe {
        std::ptr::copy_nonoverlapping(source, out, head);
        for line in 0..lines {
            let at = head + line * LINE;
            let (from, to) = (source.add(at).cast::<__m128i>(), out.add(at).cast::<__m128i>());
            for part in 0..4 {
                _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part)));
            }
        }
        let done = head + lines * LINE;
        std::ptr::copy_nonoverlapping(source.add(done), out.add(done), len - done);
    }
}

/// Copies `len` bytes. Other architectures have no stores that bypass the caches.
///
/// # Safety
/// `source` must be readable and `out` writable for `len` bytes, without overlap.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn stream(source: *const u8, len: usize, out: *mut u8) {
    // SAFETY: by the contract.
    unsafe { std::ptr::copy_nonoverlapping(source, out, len) };
}

/// Makes streamed bytes visible in order.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE2.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Prefetches a range of cache lines from `start`. Any address is allowed.
pub(super) fn prefetch(start: *const u8, lines: std::ops::Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    for line in lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * 64).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, lines);
}
