//! Converts arrays from one dtype to another.

use crate::{Array, DType, Element, Error, Result};

impl Array {
    /// Converts every element to another dtype, as `Tensor::cast` does: floats lose their fraction
    /// and stop at the ends of an integer's range, NaN becomes 0, a number is true unless it is 0.
    /// Strings cannot be converted.
    ///
    /// ```
    /// # use estimand_tensor::{Array, DType};
    /// assert_eq!(Array::from([1.5f32, -0.5]).cast(DType::I64)?, Array::from([1i64, 0]));
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn cast(&self, dtype: DType) -> Result<Array> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        match self.dtype() {
            DType::F32 => from::<f32>(self, dtype),
            DType::F64 => from::<f64>(self, dtype),
            DType::I32 => from::<i32>(self, dtype),
            DType::I64 => from::<i64>(self, dtype),
            DType::U8 => from::<u8>(self, dtype),
            DType::Bool => from::<bool>(self, dtype),
            DType::Str => Err(Error::dtype(None, DType::Str, format!("an array of strings cannot be cast to {dtype}"))),
        }
    }
}

fn from<T: Castable>(array: &Array, dtype: DType) -> Result<Array> {
    fn all<T: Castable, U: Element>(array: &Array, cast: impl Fn(T) -> U) -> Result<Array> {
        Array::from_vec(array.dims(), array.as_slice::<T>()?.iter().map(|&value| cast(value)).collect())
    }
    match dtype {
        DType::F32 => all(array, T::to_f32),
        DType::F64 => all(array, T::to_f64),
        DType::I32 => all(array, T::to_i32),
        DType::I64 => all(array, T::to_i64),
        DType::U8 => all(array, T::to_u8),
        DType::Bool => all(array, |value: T| value != T::default()),
        DType::Str => Err(Error::dtype(None, T::DTYPE, format!("an array of {} cannot be cast to strings", T::DTYPE))),
    }
}

/// The casts of one element type, with the meaning of Rust's `as`.
trait Castable: Element {
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_u8(self) -> u8;
}

macro_rules! castable {
    ($($t:ty: $value:ident => $number:expr),* $(,)?) => {$(
        impl Castable for $t {
            castable!(@ $value => $number; to_f32 f32, to_f64 f64, to_i32 i32, to_i64 i64, to_u8 u8);
        }
    )*};
    (@ $value:ident => $number:expr; $($method:ident $to:ty),*) => {$(
        #[allow(clippy::unnecessary_cast)] // one of the targets is the type itself
        fn $method(self) -> $to {
            let $value = self;
            $number as $to
        }
    )*};
}
castable!(f32: v => v, f64: v => v, i32: v => v, i64: v => v, u8: v => v, bool: v => u8::from(v));
