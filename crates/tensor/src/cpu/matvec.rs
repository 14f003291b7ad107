//! The product of a matrix and a vector, `n = 1`, with contiguous rows of A.
//!
//! With one column, the tile kernels would use one lane in sixteen, so this product has its own
//! rule for the order of additions. Element k goes to lane `k mod 16` as a chain of fused
//! multiply-adds over ascending k (both operands padded with zeros to a multiple of 16). Then lanes
//! 8 apart are added, then 4, 2 and 1.

use super::simd::{Simd, for_every_isa};

/// The number of lanes of the rule: one AVX-512 vector, two of AVX2, four portable ones.
const LANES: usize = 16;

for_every_isa! {
    /// Computes `c[i] = a[i, ..] . b` for `rows` rows of `k` floats.
    ///
    /// # Safety
    /// `a` must be readable for `rows * k` floats, `b` for `k`, and `c` writable for `rows`.
    pub(crate) unsafe fn matvec(a: *const f32, b: *const f32, c: *mut f32, rows: usize, k: usize) = matvec_generic
}

#[inline(always)]
unsafe fn matvec_generic<S: Simd>(a: *const f32, b: *const f32, c: *mut f32, rows: usize, k: usize) {
    // SAFETY: the caller upholds the contract. The number of vectors is a constant so that they
    // stay in registers.
    unsafe {
        match S::LANES {
            16 => in_vectors::<S, 1>(a, b, c, rows, k),
            8 => in_vectors::<S, 2>(a, b, c, rows, k),
            _ => in_vectors::<S, 4>(a, b, c, rows, k),
        }
    }
}

/// The product, with the lanes of the rule in `NV` vectors.
#[inline(always)]
unsafe fn in_vectors<S: Simd, const NV: usize>(a: *const f32, b: *const f32, c: *mut f32, rows: usize, k: usize) {
    debug_assert_eq!(NV * S::LANES, LANES);
    let mut row = 0;
    // SAFETY: the caller guarantees the operands; `row` stays below `rows`.
    unsafe {
        // Four rows at a time hide the latency of the chains.
        while row + 4 <= rows {
            dots::<S, NV, 4>(a.add(row * k), b, c.add(row), k);
            row += 4;
        }
        while row < rows {
            dots::<S, NV, 1>(a.add(row * k), b, c.add(row), k);
            row += 1;
        }
    }
}

/// `R` consecutive dot products.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // registers are named by number, and the loops unroll
unsafe fn dots<S: Simd, const NV: usize, const R: usize>(a: *const f32, b: *const f32, c: *mut f32, k: usize) {
    // SAFETY: whole vectors lie within the rows, the last ones are masked.
    unsafe {
        let mut sum = [[S::splat(0.0); NV]; R];
        let mut i = 0;
        while i + LANES <= k {
            for v in 0..NV {
                let at = i + v * S::LANES;
                let y = S::load(b.add(at));
                for r in 0..R {
                    sum[r][v] = S::fma(S::load(a.add(r * k + at)), y, sum[r][v]);
                }
            }
            i += LANES;
        }
        if i < k {
            for v in 0..NV {
                let at = i + v * S::LANES;
                let mask = S::mask(k.saturating_sub(at).min(S::LANES));
                let y = S::load_masked(b.wrapping_add(at), mask);
                for r in 0..R {
                    sum[r][v] = S::fma(S::load_masked(a.wrapping_add(r * k + at), mask), y, sum[r][v]);
                }
            }
        }
        for r in 0..R {
            let mut lane = [0.0_f32; LANES];
            for v in 0..NV {
                S::store(lane.as_mut_ptr().add(v * S::LANES), sum[r][v]);
            }
            let eight: [f32; 8] = std::array::from_fn(|j| lane[j] + lane[j + 8]);
            let four: [f32; 4] = std::array::from_fn(|j| eight[j] + eight[j + 4]);
            *c.add(r) = (four[0] + four[2]) + (four[1] + four[3]);
        }
    }
}
