//! The operands of an expression with arrays, and the results that functions of arrays may return.

use std::fmt;

use super::Computed;
use crate::{Array, DType, Error, Result};

/// A value that may stand beside an operator with an array: an array, a [`Computed`], or a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand beside an operator with an array",
    note = "use an array, an expression with arrays, or an f32, f64, i32 or i64"
)]
pub trait Operand: sealed::Value {}

/// A value that a function of an array may return: an array, a [`Computed`], or a `Result`.
#[diagnostic::on_unimplemented(
    message = "the function returns `{Self}`; expected an array",
    note = "return an Array, a Result<Array>, or an expression with arrays such as `x / 1000.0`"
)]
pub trait IntoArray: sealed::IntoResult {
    /// The array, or the error.
    fn into_array(self) -> Result<Array>;
}

/// The value of an operand.
#[doc(hidden)]
#[derive(Clone)]
pub enum Value {
    Array(Array),
    Number(Number),
}

/// A number, in the widest type of its kind.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Number {
    Float {
        value: f64,
        /// The number's own type.
        dtype: DType,
    },
    Integer(i64),
}

impl Number {
    /// The number as an array of one element.
    pub(super) fn array(self, dtype: DType) -> Result<Array> {
        let misfit = |value: i64| {
            let message = format!("the number {value} is not a {dtype}");
            Error::dtype(Some(dtype), DType::I64, message).help("cast the array to a wider dtype first")
        };
        match (self, dtype) {
            (Number::Float { value, .. }, DType::F32) => Ok(Array::scalar(value as f32)),
            (Number::Float { value, .. }, DType::F64) => Ok(Array::scalar(value)),
            (Number::Integer(value), DType::F32) => Ok(Array::scalar(value as f32)),
            (Number::Integer(value), DType::F64) => Ok(Array::scalar(value as f64)),
            (Number::Integer(value), DType::I64) => Ok(Array::scalar(value)),
            (Number::Integer(value), DType::I32) => i32::try_from(value).map(Array::scalar).map_err(|_| misfit(value)),
            (Number::Integer(value), DType::U8) => u8::try_from(value).map(Array::scalar).map_err(|_| misfit(value)),
            (Number::Float { .. }, DType::I32 | DType::I64 | DType::U8) | (_, DType::Bool | DType::Str) => {
                Err(Error::internal(format!("a number as {dtype}")))
            }
        }
    }
}

/// `f32[2, 3]`, or the number.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Array(array) => write!(f, "{}{:?}", array.dtype(), array.dims()),
            Value::Number(Number::Float { value, .. }) => write!(f, "{value:?}"),
            Value::Number(Number::Integer(value)) => write!(f, "{value}"),
        }
    }
}

mod sealed {
    use super::*;

    pub trait Value {
        #[doc(hidden)]
        fn value(self) -> Result<super::Value>;
    }

    pub trait IntoResult {}

    impl IntoResult for Array {}
    impl IntoResult for Computed {}
    impl IntoResult for Result<Array> {}
}

macro_rules! operands {
    ($($t:ty: $this:ident => $value:expr),* $(,)?) => {$(
        impl sealed::Value for $t {
            fn value(self) -> Result<Value> {
                let $this = self;
                $value
            }
        }
        impl Operand for $t {}
    )*};
}
operands! {
    Array: array => Ok(Value::Array(array)),
    &Array: array => Ok(Value::Array(array.clone())),
    Computed: computed => computed.0.map(Value::Array),
    &Computed: computed => computed.0.clone().map(Value::Array),
    f32: value => Ok(Value::Number(Number::Float { value: value.into(), dtype: DType::F32 })),
    f64: value => Ok(Value::Number(Number::Float { value, dtype: DType::F64 })),
    i32: value => Ok(Value::Number(Number::Integer(value.into()))),
    i64: value => Ok(Value::Number(Number::Integer(value))),
}

impl IntoArray for Array {
    fn into_array(self) -> Result<Array> {
        Ok(self)
    }
}

impl IntoArray for Computed {
    fn into_array(self) -> Result<Array> {
        self.0
    }
}

impl IntoArray for Result<Array> {
    fn into_array(self) -> Result<Array> {
        self
    }
}
