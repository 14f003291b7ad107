//! Arithmetic with arrays: `+`, `-`, `*`, `/` and unary `-`, between arrays and numbers.
//!
//! An operator cannot return a `Result`, and a library must not panic. So an expression is a
//! [`Computed`]: an array, or the first error with the line of its operator.
//! `broadcast.rs` pairs the elements, `cast.rs` changes dtypes, and `operand.rs` lists the values
//! that may stand beside an operator.
//!
//! ```
//! # use estimand_tensor::Array;
//! let price = Array::from([1500.0f32, 250.0]);
//! let scaled = (&price / 1000.0 - 0.25) * 2;
//! assert_eq!(scaled.array()?, Array::from([2.5f32, 0.0]));
//!
//! let error = (&price + &Array::from([1i64, 2])).array().unwrap_err();
//! assert!(error.to_string().starts_with("f32[2] + i64[2]: the dtypes differ"));
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod broadcast;
mod cast;
mod operand;

pub use operand::{IntoArray, Operand};

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;

use crate::{Array, DType, Element, Error, Result};
use broadcast::Paired;
use operand::{Number, Value};

/// The result of an expression with arrays: an array, or the first error in the expression.
///
/// - A number takes the dtype of the array beside it. A float beside an array of integers makes the
///   result a float of the number's type: `i64 * 0.5` is f64, `i64 * 0.5f32` is f32.
/// - Two arrays need the same dtype. Their shapes are broadcast by NumPy's rule.
/// - `/` never drops a fraction: integers are divided as f64, and a division by 0 gives an infinity
///   or NaN. An integer result that does not fit its dtype is an error.
/// - Booleans and strings have no arithmetic.
/// - A number on the left of an operator is an f64 or i64; on the right, f32 and i32 are possible
///   too.
///
/// [`array`](Computed::array) returns the result. `Dataset::map_feature` takes a `Computed` as it
/// is.
#[derive(Clone)]
#[must_use]
pub struct Computed(Result<Array>);

impl Computed {
    /// The array, or the first error. The error names the operands and the line of the operator.
    pub fn array(self) -> Result<Array> {
        self.0
    }

    /// Converts the result to another dtype, as [`Array::cast`] does.
    #[track_caller]
    pub fn cast(self, dtype: DType) -> Computed {
        let site = Location::caller();
        Computed(self.0.and_then(|array| array.cast(dtype).map_err(|e| e.at(site))))
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(array) => fmt::Debug::fmt(array, f),
            Err(error) => write!(f, "Computed({:?})", error.message()),
        }
    }
}

/// The four operators.
#[derive(Clone, Copy, PartialEq)]
enum Operator {
    Add,
    Sub,
    Mul,
    Div,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Add => "+",
            Operator::Sub => "-",
            Operator::Mul => "*",
            Operator::Div => "/",
        })
    }
}

fn compute(operator: Operator, left: impl Operand, right: impl Operand, site: &Location<'_>) -> Computed {
    let both = || {
        let (left, right) = (left.value()?, right.value()?);
        let (a, b) = alike(operator, &left, &right).map_err(|error| error.at(site))?;
        binary(operator, &a, &b).map_err(|error| error.at(site))
    };
    Computed(both())
}

/// Converts both operands to arrays of the dtype in which the operator computes.
fn alike(operator: Operator, left: &Value, right: &Value) -> Result<(Array, Array)> {
    let place = || format!("{left} {operator} {right}");
    for value in [left, right] {
        if let Value::Array(array) = value
            && !array.dtype().is_number()
        {
            let dtype = array.dtype();
            let error = Error::dtype(None, dtype, format!("{}: a {dtype} has no arithmetic", place()));
            return Err(match dtype {
                DType::Bool => error.help("cast it to a number first: cast(DType::F32)"),
                _ => error,
            });
        }
    }
    let (a, b) = match (left, right) {
        (Value::Array(a), Value::Array(b)) => {
            if a.dtype() != b.dtype() {
                let message = format!("{}: the dtypes differ", place());
                let help = format!("cast one of them: cast(DType::{:?})", a.dtype());
                return Err(Error::dtype(Some(a.dtype()), b.dtype(), message).help(help));
            }
            (a.clone(), b.clone())
        }
        (Value::Array(a), Value::Number(b)) => a.beside(*b).map_err(|e| e.context(format!("in {}", place())))?,
        (Value::Number(a), Value::Array(b)) => {
            let (b, a) = b.beside(*a).map_err(|e| e.context(format!("in {}", place())))?;
            (a, b)
        }
        (Value::Number(_), Value::Number(_)) => return Err(Error::internal("an expression without an array")),
    };
    match operator {
        Operator::Div if a.dtype().is_integer() => Ok((a.cast(DType::F64)?, b.cast(DType::F64)?)),
        _ => Ok((a, b)),
    }
}

impl Array {
    /// This array and a number, both in the dtype of their expression.
    fn beside(&self, number: Number) -> Result<(Array, Array)> {
        let number_as = |dtype| number.array(dtype);
        match (self.dtype().is_integer(), number) {
            (true, Number::Float { dtype, .. }) => Ok((self.cast(dtype)?, number_as(dtype)?)),
            _ => Ok((self.clone(), number_as(self.dtype())?)),
        }
    }
}

fn binary(operator: Operator, a: &Array, b: &Array) -> Result<Array> {
    macro_rules! floats {
        ($t:ty) => {
            match operator {
                Operator::Add => pairs::<$t>(operator, a, b, |a, b| Some(a + b)),
                Operator::Sub => pairs::<$t>(operator, a, b, |a, b| Some(a - b)),
                Operator::Mul => pairs::<$t>(operator, a, b, |a, b| Some(a * b)),
                Operator::Div => pairs::<$t>(operator, a, b, |a, b| Some(a / b)),
            }
        };
    }
    macro_rules! integers {
        ($t:ty) => {
            match operator {
                Operator::Add => pairs::<$t>(operator, a, b, <$t>::checked_add),
                Operator::Sub => pairs::<$t>(operator, a, b, <$t>::checked_sub),
                Operator::Mul => pairs::<$t>(operator, a, b, <$t>::checked_mul),
                Operator::Div => Err(Error::internal("a division of integers that were not made floats")),
            }
        };
    }
    match a.dtype() {
        DType::F32 => floats!(f32),
        DType::F64 => floats!(f64),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        DType::U8 => integers!(u8),
        DType::Bool | DType::Str => Err(Error::internal("arithmetic with values that are no numbers")),
    }
}

/// Computes all elements. `None` is a result that does not fit.
fn pairs<T: Element + fmt::Display>(
    operator: Operator,
    a: &Array,
    b: &Array,
    function: impl Fn(T, T) -> Option<T>,
) -> Result<Array> {
    let paired = Paired::new(a.dims(), b.dims()).map_err(|e| {
        let sizes = format!("{}{:?} {operator} {}{:?}", a.dtype(), a.dims(), b.dtype(), b.dims());
        Error::shape(format!("{sizes}: {}", e.message()))
    })?;
    let mut results = Vec::new();
    paired.reserve(&mut results)?;
    let (a, b) = (a.as_slice::<T>()?, b.as_slice::<T>()?);
    let mut misfit = None;
    paired.each(|i, j| match function(a[i], b[j]) {
        Some(result) => {
            results.push(result);
            true
        }
        None => {
            misfit = Some((a[i], b[j], results.len()));
            false
        }
    });
    if let Some((a, b, position)) = misfit {
        let message = format!("{a} {operator} {b} does not fit {}, at position {position}", T::DTYPE);
        return Err(Error::data(message).help("cast the array to a wider dtype first: cast(DType::I64) or F64"));
    }
    Array::from_vec(paired.dims(), results)
}

fn negate(operand: impl Operand, site: &Location<'_>) -> Computed {
    fn all<T: Element>(array: &Array, function: impl Fn(T) -> Option<T>) -> Result<Array> {
        let results: Option<Vec<T>> = array.as_slice::<T>()?.iter().map(|&value| function(value)).collect();
        let results = results.ok_or_else(|| {
            Error::data(format!("the smallest {} has no negative that fits", T::DTYPE))
                .help("cast the array to a wider dtype first")
        });
        Array::from_vec(array.dims(), results?)
    }
    let negated = |array: &Array| match array.dtype() {
        DType::F32 => all::<f32>(array, |v| Some(-v)),
        DType::F64 => all::<f64>(array, |v| Some(-v)),
        DType::I32 => all(array, i32::checked_neg),
        DType::I64 => all(array, i64::checked_neg),
        dtype @ (DType::U8 | DType::Bool | DType::Str) => {
            let message = format!("-{dtype}{:?}: a {dtype} has no negative", array.dims());
            Err(Error::dtype(None, dtype, message))
        }
    };
    Computed(operand.value().and_then(|value| match value {
        Value::Array(array) => negated(&array).map_err(|error| error.at(site)),
        Value::Number(_) => Err(Error::internal("an expression without an array")),
    }))
}

/// One impl for all operands on the right, and one float and one integer on the left: the compiler
/// then knows the type of the result before it knows the type of a literal such as `2.0`.
macro_rules! operator {
    ($trait:ident, $method:ident) => {
        operator!(@right $trait, $method, Array, &Array, Computed, &Computed);
        operator!(@left $trait, $method, f64, i64);
    };
    (@right $trait:ident, $method:ident, $($left:ty),*) => {$(
        impl<T: Operand> $trait<T> for $left {
            type Output = Computed;
            #[track_caller]
            fn $method(self, other: T) -> Computed {
                compute(Operator::$trait, self, other, Location::caller())
            }
        }
    )*};
    (@left $trait:ident, $method:ident, $($number:ty),*) => {$(
        operator!(@number $trait, $method, $number, Array, &Array, Computed, &Computed);
    )*};
    (@number $trait:ident, $method:ident, $number:ty, $($right:ty),*) => {$(
        impl $trait<$right> for $number {
            type Output = Computed;
            #[track_caller]
            fn $method(self, other: $right) -> Computed {
                compute(Operator::$trait, self, other, Location::caller())
            }
        }
    )*};
}
operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

macro_rules! negation {
    ($($operand:ty),*) => {$(
        impl Neg for $operand {
            type Output = Computed;
            #[track_caller]
            fn neg(self) -> Computed {
                negate(self, Location::caller())
            }
        }
    )*};
}
negation!(Array, &Array, Computed, &Computed);

#[cfg(test)]
mod tests;
