//! The arithmetic that kernels over several dtypes need.

use crate::Element;

/// An element that can be added, multiplied and ordered. Integers wrap, as in TensorFlow.
pub trait Number: Element + PartialOrd {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// The smallest finite value.
    const LOWEST: Self;
    /// The largest finite value.
    const HIGHEST: Self;

    /// `self + other`
    fn plus(self, other: Self) -> Self;
    /// `self * other`
    fn times(self, other: Self) -> Self;
    /// `self / other`; integers are rounded towards zero, and dividing them by 0 gives 0.
    fn over(self, other: Self) -> Self;
    /// A count as a value of this type.
    fn from_count(count: usize) -> Self;
    /// Whether the value is NaN.
    fn is_nan(self) -> bool;
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn over(self, other: Self) -> Self {
                self / other
            }

            #[inline(always)]
            fn from_count(count: usize) -> Self {
                count as $t
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        }
    )*};
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn over(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }

            #[inline(always)]
            fn from_count(count: usize) -> Self {
                count as $t
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        }
    )*};
}
integers!(i32, i64, u8);
