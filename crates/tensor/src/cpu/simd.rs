//! The vector instructions the product kernels are written in.
//!
//! A kernel is one generic function over [`Simd`], compiled once per instruction set. Every implementation rounds in
//! the same places (fused multiply-add included, which is why the portable one uses `f32::mul_add`), so a kernel
//! whose chains of operations do not depend on the number of lanes gives the same bits everywhere.

/// Vectors of `f32` of one instruction set.
///
/// # Safety
/// All functions may be called only on a processor that has the set, and pointers must be valid for the lanes that
/// are read or written. They are `inline(always)` so that they dissolve into the function that enables the feature.
pub(crate) unsafe trait Simd: Copy {
    /// A vector.
    type Vector: Copy;
    /// The first few lanes of a vector.
    type Mask: Copy;
    /// Floats in a vector.
    const LANES: usize;

    unsafe fn splat(x: f32) -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn store(to: *mut f32, v: Self::Vector);
    /// The mask of the first `n` lanes, at most all.
    unsafe fn mask(n: usize) -> Self::Mask;
    /// Loads the lanes of the mask, zero elsewhere; touches no memory outside.
    unsafe fn load_masked(from: *const f32, mask: Self::Mask) -> Self::Vector;
    /// Stores the lanes of the mask; touches no memory outside.
    unsafe fn store_masked(to: *mut f32, v: Self::Vector, mask: Self::Mask);
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// `if a > b { a } else { b }`: of a NaN and anything it takes `b`.
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

/// Compiles a generic kernel for every instruction set and makes `$name` call the one for the active set.
macro_rules! for_every_isa {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident($($arg:ident: $type:ty),* $(,)?) = $generic:ident) => {
        $(#[$doc])*
        $vis unsafe fn $name($($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            unsafe fn avx512($($arg: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $generic::<$crate::cpu::simd::Avx512>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2($($arg: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { $generic::<$crate::cpu::simd::Avx2>($($arg),*) }
            }
            // SAFETY: the active set is one this processor has; the rest is passed on to the caller.
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

/// Arrays of four: the compiler makes of them what the target offers.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const PORTABLE_LANES: usize = 4;

#[inline(always)]
fn lanes(f: impl Fn(usize) -> f32) -> [f32; PORTABLE_LANES] {
    std::array::from_fn(f)
}

// SAFETY: plain Rust; pointers are touched only in the lanes asked for.
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
    unsafe fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        lanes(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        lanes(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    /// 256-bit vectors.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    /// 512-bit vectors.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    /// Eight ones, then eight zeros: the mask of n lanes starts at element 8 - n.
    static AVX2_MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    /// The operations of one set, as a list of intrinsics.
    macro_rules! simd {
        ($name:ident, $vector:ty, $mask:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $fma:ident, $max:ident,
         |$n:ident| $make_mask:expr, |$from:ident, $lm:ident| $load_masked:expr, |$to:ident, $v:ident, $sm:ident| $store_masked:expr) => {
            // SAFETY: the intrinsics do what the trait says; the caller answers for the processor and the pointers.
            unsafe impl Simd for $name {
                type Vector = $vector;
                type Mask = $mask;
                const LANES: usize = $lanes;

                #[inline(always)]
                unsafe fn splat(x: f32) -> $vector {
                    // SAFETY: the trait's contract.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(from: *const f32) -> $vector {
                    // SAFETY: the trait's contract.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(to: *mut f32, v: $vector) {
                    // SAFETY: the trait's contract.
                    unsafe { $store(to, v) }
                }
                #[inline(always)]
                unsafe fn mask($n: usize) -> $mask {
                    debug_assert!($n <= $lanes);
                    $make_mask
                }
                #[inline(always)]
                unsafe fn load_masked($from: *const f32, $lm: $mask) -> $vector {
                    // SAFETY: the trait's contract; masked lanes are not touched.
                    unsafe { $load_masked }
                }
                #[inline(always)]
                unsafe fn store_masked($to: *mut f32, $v: $vector, $sm: $mask) {
                    // SAFETY: the trait's contract; masked lanes are not touched.
                    unsafe { $store_masked }
                }
                #[inline(always)]
                unsafe fn add(a: $vector, b: $vector) -> $vector {
                    // SAFETY: the trait's contract.
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                unsafe fn fma(a: $vector, b: $vector, c: $vector) -> $vector {
                    // SAFETY: the trait's contract.
                    unsafe { $fma(a, b, c) }
                }
                #[inline(always)]
                unsafe fn max(a: $vector, b: $vector) -> $vector {
                    // SAFETY: the trait's contract.
                    unsafe { $max(a, b) }
                }
            }
        };
    }

    simd!(
        Avx512,
        __m512,
        __mmask16,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_fmadd_ps,
        _mm512_max_ps,
        |n| ((1_u32 << n) - 1) as u16,
        |from, mask| _mm512_maskz_loadu_ps(mask, from),
        |to, v, mask| _mm512_mask_storeu_ps(to, mask, v)
    );
    simd!(
        Avx2,
        __m256,
        __m256i,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_fmadd_ps,
        _mm256_max_ps,
        |n| {
            // SAFETY: 8 elements from 8 - n lie within the 16.
            unsafe { _mm256_loadu_si256(AVX2_MASKS.as_ptr().add(8 - n).cast()) }
        },
        |from, mask| _mm256_maskload_ps(from, mask),
        |to, v, mask| _mm256_maskstore_ps(to, mask, v)
    );
}
