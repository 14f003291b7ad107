//! Selects the loop of an instruction: by the dtype of unary and binary operations, casts,
//! selection and copies.

use crate::cpu::isa::Isa;
use crate::{Binary, DType, Unary};

use super::kernel::{Kernel, Number, select, unary};
use super::{float, integer};

/// The loop of `op` on `dtype`, or `None` if it is not defined.
pub(super) fn unary_kernel(op: Unary, dtype: DType, isa: Isa) -> Option<Kernel> {
    match dtype {
        DType::F32 => float::unary_kernel::<f32>(op, isa),
        DType::F64 => float::unary_kernel::<f64>(op, isa),
        DType::I32 => integer::signed_unary::<i32>(op, isa),
        DType::I64 => integer::signed_unary::<i64>(op, isa),
        DType::Bool => integer::bool_unary(op, isa),
        DType::U8 | DType::Str => None,
    }
}

/// The loop of `op` on `dtype`, or `None` if it is not defined.
pub(super) fn binary_kernel(op: Binary, dtype: DType, isa: Isa) -> Option<Kernel> {
    match dtype {
        DType::F32 => float::binary_kernel::<f32>(op, isa),
        DType::F64 => float::binary_kernel::<f64>(op, isa),
        DType::I32 => integer::signed_binary::<i32>(op, isa),
        DType::I64 => integer::signed_binary::<i64>(op, isa),
        DType::U8 => integer::wrapping_binary::<u8>(op, isa),
        DType::Bool => integer::bool_binary(op, isa),
        DType::Str => None,
    }
}

/// The loop that chooses between two elements of `dtype`.
pub(super) fn select_kernel(dtype: DType, isa: Isa) -> Option<Kernel> {
    match dtype.size() {
        1 => Some(select::<u8>(isa)),
        4 => Some(select::<u32>(isa)),
        8 => Some(select::<u64>(isa)),
        _ => None,
    }
}

/// The loop that copies elements of `dtype`.
pub(super) fn copy_kernel(dtype: DType, isa: Isa) -> Option<Kernel> {
    match dtype.size() {
        1 => Some(unary!(isa, |x: u8| x)),
        4 => Some(unary!(isa, |x: u32| x)),
        8 => Some(unary!(isa, |x: u64| x)),
        _ => None,
    }
}

/// The loop of a cast.
pub(super) fn cast_kernel(from: DType, to: DType, isa: Isa) -> Option<Kernel> {
    match from {
        DType::F32 => cast_from::<f32>(to, isa),
        DType::F64 => cast_from::<f64>(to, isa),
        DType::I32 => cast_from::<i32>(to, isa),
        DType::I64 => cast_from::<i64>(to, isa),
        // A boolean is the byte 0 or 1, which is also its value as a number.
        DType::U8 | DType::Bool => cast_from::<u8>(to, isa),
        DType::Str => None,
    }
}

fn cast_from<T: Castable>(to: DType, isa: Isa) -> Option<Kernel> {
    Some(match to {
        DType::F32 => unary!(isa, |x: T| x.to_f32()),
        DType::F64 => unary!(isa, |x: T| x.to_f64()),
        DType::I32 => unary!(isa, |x: T| x.to_i32()),
        DType::I64 => unary!(isa, |x: T| x.to_i64()),
        DType::U8 => unary!(isa, |x: T| x.to_u8()),
        DType::Bool => unary!(isa, |x: T| x.to_bool()),
        DType::Str => return None,
    })
}

/// The casts of one number type, with the meaning of Rust's `as`.
trait Castable: Number {
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_u8(self) -> u8;
    fn to_bool(self) -> u8;
}

macro_rules! castable {
    ($($t:ty),*) => {$(
        impl Castable for $t {
            castable!(@ $t: to_f32 f32, to_f64 f64, to_i32 i32, to_i64 i64, to_u8 u8);
            #[inline(always)]
            fn to_bool(self) -> u8 {
                u8::from(self != <$t>::default())
            }
        }
    )*};
    (@ $t:ty: $($method:ident $to:ty),*) => {$(
        #[inline(always)]
        #[allow(clippy::unnecessary_cast)] // one of the targets is the type itself
        fn $method(self) -> $to {
            self as $to
        }
    )*};
}
castable!(f32, f64, i32, i64, u8);
