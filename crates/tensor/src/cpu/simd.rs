//! The vector operations that the product kernels are written in.
//!
//! A kernel is one generic function over [`Simd`], compiled once per instruction set. Every
//! implementation rounds at the same places (including fused multiply-add, which is why the
//! portable one uses `f32::mul_add`). So a kernel whose chains of operations do not depend on the
//! number of lanes gives the same bits everywhere.

/// Vectors of `f32` of one instruction set.
///
/// # Safety
/// All functions may be called only on a processor that has the set, and pointers must be valid for
/// the lanes that are read or written. They are `inline(always)` so that they are inlined into the
/// function that enables the feature.
pub(crate) unsafe trait Simd: Copy {
    /// A vector.
    type Vector: Copy;
    /// A mask that selects the first few lanes of a vector.
    type Mask: Copy;
    /// The number of floats in a vector.
    const LANES: usize;

    unsafe fn splat(x: f32) -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn store(to: *mut f32, v: Self::Vector);
    /// The mask of the first `n` lanes; `n` is at most all of them.
    unsafe fn mask(n: usize) -> Self::Mask;
    /// Loads the lanes of the mask, zero elsewhere; accesses no memory outside the mask.
    unsafe fn load_masked(from: *const f32, mask: Self::Mask) -> Self::Vector;
    /// Stores the lanes of the mask; accesses no memory outside the mask.
    unsafe fn store_masked(to: *mut f32, v: Self::Vector, mask: Self::Mask);
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn div(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `v` in the lanes where `a == b`, zero elsewhere.
    unsafe fn where_equal(a: Self::Vector, b: Self::Vector, v: Self::Vector) -> Self::Vector;
    /// Zero in the lanes where `a == b`, `v` elsewhere.
    unsafe fn where_different(a: Self::Vector, b: Self::Vector, v: Self::Vector) -> Self::Vector;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// `if a > b { a } else { b }`: if one of them is NaN, the result is `b`.
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Transposes an 8 x 8 block, whose rows are a stride apart on either side.
    unsafe fn transpose_8x8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize);
}

/// Compiles a generic kernel for every instruction set and makes `$name` call the one for the
/// active set.
macro_rules! for_every_isa {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident($($arg:ident: $type:ty),* $(,)?) = $generic:ident) => {
        $(#[$doc])*
        $vis unsafe fn $name($($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            unsafe fn avx512($($arg: $type),*) {
                // SAFETY: the caller upholds the contract.
                unsafe { $generic::<$crate::cpu::simd::Avx512>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2($($arg: $type),*) {
                // SAFETY: the caller upholds the contract.
                unsafe { $generic::<$crate::cpu::simd::Avx2>($($arg),*) }
            }
            // SAFETY: the processor has the active set; the caller upholds the rest of the
            // contract.
            unsafe {
                match $crate::cpu::isa::Isa::active() {
                    #[cfg(target_arch = "x86_64")]
                    $crate::cpu::isa::Isa::Avx512 => avx512($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::cpu::isa::Isa::Avx2 => avx2($($arg),*),
                    _ => $generic::<$crate::cpu::simd::Portable>($($arg),*),
                }
            }
        }
    };
}
pub(crate) use for_every_isa;

/// Arrays of four floats: the compiler uses the vectors of the target.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const PORTABLE_LANES: usize = 4;

#[inline(always)]
fn lanes(f: impl Fn(usize) -> f32) -> [f32; PORTABLE_LANES] {
    std::array::from_fn(f)
}

// SAFETY: plain Rust; pointers are accessed only in the requested lanes.
unsafe impl Simd for Portable {
    type Vector = [f32; PORTABLE_LANES];
    type Mask = usize;
    const LANES: usize = PORTABLE_LANES;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::Vector {
        [x; PORTABLE_LANES]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::Vector {
        // SAFETY: valid for a vector by the trait's contract; read unaligned.
        unsafe { from.cast::<Self::Vector>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::Vector) {
        // SAFETY: as in `load`.
        unsafe { to.cast::<Self::Vector>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> usize {
        n
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: usize) -> Self::Vector {
        // SAFETY: only lanes of the mask are read.
        lanes(|i| if i < mask { unsafe { *from.add(i) } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_masked(to: *mut f32, v: Self::Vector, mask: usize) {
        for (i, x) in v.into_iter().enumerate().take(mask) {
            // SAFETY: only lanes of the mask are written.
            unsafe { *to.add(i) = x };
        }
    }
    #[inline(always)]
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanes(|i| a[i] + b[i])
    }
    #[inline(always)]
    unsafe fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanes(|i| a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn div(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanes(|i| a[i] / b[i])
    }
    #[inline(always)]
    unsafe fn where_equal(a: Self::Vector, b: Self::Vector, v: Self::Vector) -> Self::Vector {
        lanes(|i| if a[i] == b[i] { v[i] } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn where_different(a: Self::Vector, b: Self::Vector, v: Self::Vector) -> Self::Vector {
        lanes(|i| if a[i] == b[i] { 0.0 } else { v[i] })
    }
    #[inline(always)]
    unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        lanes(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanes(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn transpose_8x8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        for i in 0..8 {
            for j in 0..8 {
                // SAFETY: within the eight rows, which the caller guarantees.
                unsafe { *to.add(j * to_stride + i) = *from.add(i * from_stride + j) };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    /// Eight ones, then eight zeros: the mask of n lanes starts at element 8 - n.
    static AVX2_MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    /// Transposes with 256-bit vectors, for both sets: rows i and i + 4 are loaded as one vector,
    /// so that only neighbours in it have to be swapped.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_8x8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        for half in [0, 4] {
            // SAFETY: within the eight rows on either side, which the caller guarantees.
            unsafe {
                let pair = |row: usize| {
                    let upper = _mm_loadu_ps(from.add(row * from_stride + half));
                    let lower = _mm_loadu_ps(from.add((row + 4) * from_stride + half));
                    _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(upper), lower)
                };
                let rows = [pair(0), pair(1), pair(2), pair(3)];
                let (a, b) = (_mm256_unpacklo_ps(rows[0], rows[1]), _mm256_unpacklo_ps(rows[2], rows[3]));
                let (c, d) = (_mm256_unpackhi_ps(rows[0], rows[1]), _mm256_unpackhi_ps(rows[2], rows[3]));
                let to = to.add(half * to_stride);
                _mm256_storeu_ps(to, _mm256_shuffle_ps::<0x44>(a, b));
                _mm256_storeu_ps(to.add(to_stride), _mm256_shuffle_ps::<0xEE>(a, b));
                _mm256_storeu_ps(to.add(2 * to_stride), _mm256_shuffle_ps::<0x44>(c, d));
                _mm256_storeu_ps(to.add(3 * to_stride), _mm256_shuffle_ps::<0xEE>(c, d));
            }
        }
    }

    /// Implements the operations of one set, each as an expression of intrinsics.
    macro_rules! simd {
        ($(#[$doc:meta])* $name:ident, $vector:ty, $mask:ty, $lanes:literal:
         $($op:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name;

            // SAFETY: the intrinsics do what the trait requires, and masked ones access no lane
            // outside the mask.
            unsafe impl Simd for $name {
                type Vector = $vector;
                type Mask = $mask;
                const LANES: usize = $lanes;
                $(
                    #[inline(always)]
                    unsafe fn $op($($arg: $type),*) $(-> $result)? {
                        // SAFETY: the caller guarantees the processor's instruction set and the
                        // pointers.
                        unsafe { $body }
                    }
                )*
            }
        };
    }

    simd! {
        /// 512-bit vectors.
        Avx512, __m512, __mmask16, 16:
        splat(x: f32) -> __m512 = _mm512_set1_ps(x);
        load(from: *const f32) -> __m512 = _mm512_loadu_ps(from);
        store(to: *mut f32, v: __m512) = _mm512_storeu_ps(to, v);
        mask(n: usize) -> __mmask16 = _cvtu32_mask16((1 << n) - 1);
        load_masked(from: *const f32, mask: __mmask16) -> __m512 = _mm512_maskz_loadu_ps(mask, from);
        store_masked(to: *mut f32, v: __m512, mask: __mmask16) = _mm512_mask_storeu_ps(to, mask, v);
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        div(a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        where_equal(a: __m512, b: __m512, v: __m512) -> __m512 =
            _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b), v);
        where_different(a: __m512, b: __m512, v: __m512) -> __m512 =
            _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(a, b), v);
        fma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(a, b);
        transpose_8x8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) =
            transpose_8x8(from, from_stride, to, to_stride);
    }

    simd! {
        /// 256-bit vectors.
        Avx2, __m256, __m256i, 8:
        splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        load(from: *const f32) -> __m256 = _mm256_loadu_ps(from);
        store(to: *mut f32, v: __m256) = _mm256_storeu_ps(to, v);
        mask(n: usize) -> __m256i = _mm256_loadu_si256(AVX2_MASKS.as_ptr().add(8 - n).cast());
        load_masked(from: *const f32, mask: __m256i) -> __m256 = _mm256_maskload_ps(from, mask);
        store_masked(to: *mut f32, v: __m256, mask: __m256i) = _mm256_maskstore_ps(to, mask, v);
        add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        div(a: __m256, b: __m256) -> __m256 = _mm256_div_ps(a, b);
        where_equal(a: __m256, b: __m256, v: __m256) -> __m256 =
            _mm256_and_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b), v);
        where_different(a: __m256, b: __m256, v: __m256) -> __m256 =
            _mm256_and_ps(_mm256_cmp_ps::<_CMP_NEQ_UQ>(a, b), v);
        fma(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        max(a: __m256, b: __m256) -> __m256 = _mm256_max_ps(a, b);
        transpose_8x8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) =
            transpose_8x8(from, from_stride, to, to_stride);
    }
}
