//! One kernel body, compiled for every instruction set.
//!
//! `twins!` wraps an `#[inline(always)]` function in one function per [`Isa`](crate::cpu::isa::Isa)
//! and returns a pointer to the requested one. The compiler turns the body into vectors of the
//! set's width. It never fuses or reorders floating-point operations on its own, so all variants
//! give the same bits.
//!
//! A body must not pass closures to iterator adapters such as `for_each`: if the compiler does not
//! inline them, they are compiled without the set's instructions. Plain `for` loops are safe.

/// Defines `fn name<G..>(isa: Isa) -> unsafe fn(args)`.
macro_rules! twins {
    ($(#[$doc:meta])* $vis:vis fn $name:ident[$($g:ident $(: $bound:path)?),*]($($arg:ident: $t:ty),* $(,)?) = $body:expr) => {
        $(#[$doc])*
        $vis fn $name<$($g $(: $bound)?),*>(isa: $crate::cpu::isa::Isa) -> unsafe fn($($t),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
            #[allow(unused_unsafe)] // a body may be safe
            unsafe fn avx512<$($g $(: $bound)?),*>($($arg: $t),*) {
                // SAFETY: the caller upholds the body's contract.
                unsafe { $body($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(unused_unsafe)] // as above
            unsafe fn avx2<$($g $(: $bound)?),*>($($arg: $t),*) {
                // SAFETY: as above.
                unsafe { $body($($arg),*) }
            }
            #[allow(unused_unsafe)] // as above
            unsafe fn portable<$($g $(: $bound)?),*>($($arg: $t),*) {
                // SAFETY: as above.
                unsafe { $body($($arg),*) }
            }
            match isa {
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::isa::Isa::Avx512 => avx512::<$($g),*>,
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::isa::Isa::Avx2 => avx2::<$($g),*>,
                _ => portable::<$($g),*>,
            }
        }
    };
}
pub(crate) use twins;
