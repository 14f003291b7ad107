//! Products and sums of sizes that cannot overflow silently.
//!
//! Kernels read and write through pointers as far as their sizes allow. In a release build
//! `2^32 * 2^32` is 0, which matches an empty slice. So every product of sizes that a pointer
//! relies on is computed here, once per call of a kernel.

use crate::shape::checked_len;

/// The product of sizes; 0 if one of them is 0. A sum of seven such products still fits.
///
/// # Panics
/// If the product is larger than any array.
#[track_caller]
#[inline]
pub(crate) fn product(sizes: &[usize]) -> usize {
    match checked_len(sizes) {
        Some(product) => product,
        None => too_large(sizes, "multiply"),
    }
}

/// The sum of sizes.
///
/// # Panics
/// If the sum is larger than any array.
#[track_caller]
#[inline]
pub(crate) fn sum(sizes: &[usize]) -> usize {
    let sum = sizes.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size));
    match sum.filter(|&sum| checked_len(&[sum]).is_some()) {
        Some(sum) => sum,
        None => too_large(sizes, "add up"),
    }
}

#[track_caller]
#[cold]
#[inline(never)]
fn too_large(sizes: &[usize], how: &str) -> ! {
    panic!("the sizes {sizes:?} {how} to more elements than an array can have");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn what_fits_is_computed_and_the_rest_refused() {
        assert_eq!((product(&[]), product(&[3, 5]), sum(&[]), sum(&[3, 5])), (1, 15, 0, 8));
        assert_eq!(product(&[1 << 40, 1 << 40, 0]), 0, "an empty array has any other sizes");
        let message = |f: fn() -> usize| *catch_unwind(f).unwrap_err().downcast::<String>().unwrap();
        assert!(message(|| product(&[1 << 32, 1 << 32])).contains("[4294967296, 4294967296] multiply to more"));
        assert!(message(|| sum(&[usize::MAX, 2])).contains("[18446744073709551615, 2] add up to more"));
        assert!(message(|| sum(&[1 << 61])).contains("add up"));
    }
}
