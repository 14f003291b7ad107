//! Sums of partial results, in order.

use super::simd::{Simd, for_every_isa};

for_every_isa! {
    /// Computes `to[i] = parts[0][i] + parts[1][i] + ..`, left to right, for `n_parts` arrays of
    /// `len` floats that are `stride` apart.
    ///
    /// # Safety
    /// The parts must be readable and `to` writable for `len` floats, and there must be at least
    /// one part.
    pub(crate) unsafe fn add_parts(parts: *const f32, stride: usize, n_parts: usize, to: *mut f32, len: usize) = add_parts_generic
}

#[inline(always)]
unsafe fn add_parts_generic<S: Simd>(parts: *const f32, stride: usize, n_parts: usize, to: *mut f32, len: usize) {
    let mut i = 0;
    // SAFETY: within the arrays, which the caller guarantees; the last vector is masked.
    unsafe {
        while i < len {
            let mask = S::mask((len - i).min(S::LANES));
            let mut sum = S::load_masked(parts.add(i), mask);
            for part in 1..n_parts {
                sum = S::add(sum, S::load_masked(parts.add(part * stride + i), mask));
            }
            S::store_masked(to.add(i), sum, mask);
            i += S::LANES;
        }
    }
}
