//! Element types. A dtype is a run-time value; `Element` connects it to the Rust type that stores
//! it.

use std::fmt;

/// The type of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DType {
    /// 32-bit float, the type of the engine's arithmetic.
    F32,
    /// 64-bit float: metric sums and the reference executor.
    F64,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer: ids, indices, steps.
    I64,
    /// Byte: raw images.
    U8,
    /// Boolean, one byte.
    Bool,
    /// Byte string of any length.
    Str,
}

impl DType {
    /// Every dtype, in the order of their declaration.
    pub const ALL: [DType; 7] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::Bool, DType::Str];

    /// The number of bytes of one element in a buffer. Strings are stored elsewhere and have no
    /// fixed size.
    pub fn size(self) -> usize {
        match self {
            DType::F32 | DType::I32 => 4,
            DType::F64 | DType::I64 => 8,
            DType::U8 | DType::Bool => 1,
            DType::Str => 0,
        }
    }

    /// `f32` or `f64`.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// `i32`, `i64` or `u8`.
    pub fn is_integer(self) -> bool {
        matches!(self, DType::I32 | DType::I64 | DType::U8)
    }

    /// A float or an integer, which arithmetic is defined on.
    pub fn is_number(self) -> bool {
        self.is_float() || self.is_integer()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::Bool => "bool",
            DType::Str => "string",
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that an [`Array`](crate::Array) stores directly.
///
/// Sealed: the buffer code relies on these types being plain data of exactly `DType::size` bytes.
pub trait Element: sealed::Sealed + Copy + PartialEq + Default + fmt::Debug + Send + Sync + 'static {
    /// The dtype of this element.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
        }
    )*};
}
elements!(f32 => F32, f64 => F64, i32 => I32, i64 => I64, u8 => U8, bool => Bool);
