//! The operations on integers and booleans. Arithmetic wraps, as in TensorFlow. Dividing by 0 gives
//! 0 and never traps: `run` checks the divisors and reports to its caller, which raises the error.

use crate::cpu::isa::Isa;
use crate::{Binary, Unary};

use super::kernel::{Kernel, Number, binary, unary};

/// A signed integer; bytes have only [`Wrapping`].
pub(super) trait Signed: Wrapping {
    fn wrapping_neg(self) -> Self;
    fn signum(self) -> Self;
    /// The quotient rounded towards minus infinity; 0 if `y` is 0.
    fn floor_div(self, y: Self) -> Self;
    /// The remainder with the sign of `y`; 0 if `y` is 0.
    fn floor_mod(self, y: Self) -> Self;
}

/// An integer whose arithmetic wraps around.
pub(super) trait Wrapping: Number + Ord + From<u8> {
    fn wrapping_add(self, y: Self) -> Self;
    fn wrapping_sub(self, y: Self) -> Self;
    fn wrapping_mul(self, y: Self) -> Self;
}

macro_rules! wrapping {
    ($($t:ty),*) => {$(
        impl Wrapping for $t {
            #[inline(always)]
            fn wrapping_add(self, y: $t) -> $t {
                <$t>::wrapping_add(self, y)
            }
            #[inline(always)]
            fn wrapping_sub(self, y: $t) -> $t {
                <$t>::wrapping_sub(self, y)
            }
            #[inline(always)]
            fn wrapping_mul(self, y: $t) -> $t {
                <$t>::wrapping_mul(self, y)
            }
        }
    )*};
}
wrapping!(i32, i64, u8);

macro_rules! signed {
    ($($t:ty),*) => {$(
        impl Signed for $t {
            #[inline(always)]
            fn wrapping_neg(self) -> $t {
                <$t>::wrapping_neg(self)
            }
            #[inline(always)]
            fn signum(self) -> $t {
                <$t>::signum(self)
            }
            #[inline(always)]
            fn floor_div(self, y: $t) -> $t {
                if y == 0 {
                    return 0;
                }
                // Wrapping, because the smallest integer divided by -1 overflows.
                let (q, r) = (self.wrapping_div(y), self.wrapping_rem(y));
                if r != 0 && (r < 0) != (y < 0) { q - 1 } else { q }
            }
            #[inline(always)]
            fn floor_mod(self, y: $t) -> $t {
                if y == 0 {
                    return 0;
                }
                let r = self.wrapping_rem(y);
                if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
            }
        }
    )*};
}
signed!(i32, i64);

/// The loop of an operation, or `None` if it is not defined on signed integers.
pub(super) fn signed_unary<T: Signed>(op: Unary, isa: Isa) -> Option<Kernel> {
    Some(match op {
        Unary::Neg => unary!(isa, |x: T| x.wrapping_neg()),
        Unary::Abs => unary!(isa, |x: T| if x < T::from(0) { x.wrapping_neg() } else { x }),
        Unary::Sign => unary!(isa, |x: T| x.signum()),
        Unary::Square => unary!(isa, |x: T| x.wrapping_mul(x)),
        Unary::Relu => unary!(isa, |x: T| x.max(T::from(0))),
        Unary::Relu6 => unary!(isa, |x: T| x.max(T::from(0)).min(T::from(6))),
        _ => return None,
    })
}

/// The loop of an operation, or `None` if it is not defined on signed integers.
pub(super) fn signed_binary<T: Signed>(op: Binary, isa: Isa) -> Option<Kernel> {
    Some(match op {
        Binary::FloorDiv => binary!(isa, |x: T, y: T| x.floor_div(y)),
        Binary::FloorMod => binary!(isa, |x: T, y: T| x.floor_mod(y)),
        Binary::SquaredDifference => binary!(isa, |x: T, y: T| {
            let d = x.wrapping_sub(y);
            d.wrapping_mul(d)
        }),
        _ => return wrapping_binary::<T>(op, isa),
    })
}

/// The loop of an operation, or `None` if it is not defined on bytes.
pub(super) fn wrapping_binary<T: Wrapping>(op: Binary, isa: Isa) -> Option<Kernel> {
    Some(match op {
        Binary::Add => binary!(isa, |x: T, y: T| x.wrapping_add(y)),
        Binary::Sub => binary!(isa, |x: T, y: T| x.wrapping_sub(y)),
        Binary::Mul => binary!(isa, |x: T, y: T| x.wrapping_mul(y)),
        Binary::Maximum => binary!(isa, |x: T, y: T| x.max(y)),
        Binary::Minimum => binary!(isa, |x: T, y: T| x.min(y)),
        Binary::Less => binary!(isa, |x: T, y: T| u8::from(x < y)),
        Binary::LessEqual => binary!(isa, |x: T, y: T| u8::from(x <= y)),
        Binary::Greater => binary!(isa, |x: T, y: T| u8::from(x > y)),
        Binary::GreaterEqual => binary!(isa, |x: T, y: T| u8::from(x >= y)),
        Binary::Equal => binary!(isa, |x: T, y: T| u8::from(x == y)),
        Binary::NotEqual => binary!(isa, |x: T, y: T| u8::from(x != y)),
        _ => return None,
    })
}

/// The loop of an operation on booleans, stored as the bytes 0 and 1.
pub(super) fn bool_unary(op: Unary, isa: Isa) -> Option<Kernel> {
    match op {
        Unary::LogicalNot => Some(unary!(isa, |x: u8| x ^ 1)),
        _ => None,
    }
}

/// The loop of an operation on booleans, stored as the bytes 0 and 1.
pub(super) fn bool_binary(op: Binary, isa: Isa) -> Option<Kernel> {
    match op {
        Binary::LogicalAnd => Some(binary!(isa, |x: u8, y: u8| x & y)),
        Binary::LogicalOr => Some(binary!(isa, |x: u8, y: u8| x | y)),
        Binary::Equal | Binary::NotEqual => wrapping_binary::<u8>(op, isa),
        _ => None,
    }
}
