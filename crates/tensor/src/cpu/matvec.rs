//! Matrix times vector, `n = 1`, with rows of A contiguous.
//!
//! One column leaves the tile kernels one useful lane in sixteen, so this product has its own law: element k goes to
//! lane `k mod 16` as a chain of fused multiply-adds over ascending k (both operands padded with zeros to a multiple
//! of 16), then lanes 8 apart are added, then 4, 2 and 1.

use super::simd::{Simd, for_every_isa};

/// Lanes of the law: one AVX-512 vector, two of AVX2, four portable ones.
const LANES: usize = 16;

for_every_isa! {
    /// `c[i] = a[i, ..] . b` for `rows` rows of `k`.
    ///
    /// # Safety
    /// `a` must be readable for `rows * k`, `b` for `k`, `c` writable for `rows`.
    pub(crate) unsafe fn matvec(a: *const f32, b: *const f32, c: *mut f32, rows: usize, k: usize) = matvec_generic
}

#[inline(always)]
unsafe fn matvec_generic<S: Simd>(a: *const f32, b: *const f32, c: *mut f32, rows: usize, k: usize) {
    // SAFETY: the caller answers for the operands; `row` stays below `rows`.
    unsafe {
        let mut row = 0;
        // Four rows at a time hide the latency of the chains.
        while row + 4 <= rows {
            dots::<S, 4>(a.add(row * k), b, c.add(row), k);
            row += 4;
        }
        while row < rows {
            dots::<S, 1>(a.add(row * k), b, c.add(row), k);
            row += 1;
        }
    }
}

/// `R` consecutive dot products.
#[inline(always)]
unsafe fn dots<S: Simd, const R: usize>(a: *const f32, b: *const f32, c: *mut f32, k: usize) {
    let n_vectors = LANES / S::LANES;
    // SAFETY: whole vectors lie within the rows, the last ones are masked.
    unsafe {
        let mut sum = [[S::splat(0.0); LANES / 4]; R];
        let mut i = 0;
        while i + LANES <= k {
            for v in 0..n_vectors {
                let at = i + v * S::LANES;
                let y = S::load(b.add(at));
                for (r, sum) in sum.iter_mut().enumerate() {
                    sum[v] = S::fma(S::load(a.add(r * k + at)), y, sum[v]);
                }
            }
            i += LANES;
        }
        if i < k {
            for v in 0..n_vectors {
                let at = i + v * S::LANES;
                let mask = S::mask(k.saturating_sub(at).min(S::LANES));
                let y = S::load_masked(b.wrapping_add(at), mask);
                for (r, sum) in sum.iter_mut().enumerate() {
                    sum[v] = S::fma(S::load_masked(a.wrapping_add(r * k + at), mask), y, sum[v]);
                }
            }
        }
        for (r, sum) in sum.iter().enumerate() {
            let mut lane = [0.0_f32; LANES];
            for (v, &sum) in sum.iter().enumerate().take(n_vectors) {
                S::store(lane.as_mut_ptr().add(v * S::LANES), sum);
            }
            for half in [8, 4, 2, 1] {
                for j in 0..half {
                    lane[j] += lane[j + half];
                }
            }
            *c.add(r) = lane[0];
        }
    }
}
