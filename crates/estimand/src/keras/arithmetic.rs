//! Arithmetic of symbolic values: `&x + &y`, `&x / 127.5 - 1.0`. As in Keras, the result is an
//! operation between layers, which carries no mask.

use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;
use std::sync::Arc;

use estimand_nn::config::Dialect;

use super::operation::{Elementwise, Function, Number, Operand, Operation};
use super::recipe::{CallArguments, Step};
use super::symbol::{KerasTensor, SharedLayer};

/// One side of an operator.
enum Side {
    Value(KerasTensor),
    Number(Number),
}

impl From<KerasTensor> for Side {
    fn from(value: KerasTensor) -> Side {
        Side::Value(value)
    }
}

impl From<&KerasTensor> for Side {
    fn from(value: &KerasTensor) -> Side {
        Side::Value(value.clone())
    }
}

macro_rules! numbers {
    ($($number:ty as $kind:ident),*) => {$(
        impl From<$number> for Side {
            fn from(number: $number) -> Side {
                Side::Number(Number::$kind(number.into()))
            }
        }
    )*};
}
numbers!(f32 as Float, f64 as Float, i32 as Whole, i64 as Whole);

/// The result of an operator at a line of the user.
fn made(function: Elementwise, sides: Vec<Side>, site: &'static Location<'static>) -> KerasTensor {
    let (mut operands, mut values) = (Vec::new(), Vec::new());
    for side in sides {
        operands.push(match side {
            Side::Value(value) => {
                values.push(value);
                Operand::Value
            }
            Side::Number(number) => Operand::Number(number),
        });
    }
    let function = Function::Elementwise(function);
    let operation = Operation { name: None, function, operands, rules: Dialect::default() };
    let layer = SharedLayer::at(Step::Operation(Arc::new(operation)), site);
    layer.call_at(values, CallArguments::default(), site).swap_remove(0)
}

macro_rules! operator {
    ($trait:ident, $method:ident, $function:ident) => {
        operator!(@right $trait, $method, $function, KerasTensor, &KerasTensor, f32, f64, i32, i64);
        operator!(@left $trait, $method, $function, f32, f64, i32, i64);
    };
    (@right $trait:ident, $method:ident, $function:ident, $($right:ty),*) => {$(
        operator!(@one $trait, $method, $function, KerasTensor, $right);
        operator!(@one $trait, $method, $function, &KerasTensor, $right);
    )*};
    (@left $trait:ident, $method:ident, $function:ident, $($left:ty),*) => {$(
        operator!(@one $trait, $method, $function, $left, KerasTensor);
        operator!(@one $trait, $method, $function, $left, &KerasTensor);
    )*};
    (@one $trait:ident, $method:ident, $function:ident, $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = KerasTensor;
            #[track_caller]
            fn $method(self, other: $right) -> KerasTensor {
                made(Elementwise::$function, vec![self.into(), other.into()], Location::caller())
            }
        }
    };
}
operator!(Add, add, Add);
operator!(Sub, sub, Subtract);
operator!(Mul, mul, Multiply);
operator!(Div, div, Divide);

macro_rules! negative {
    ($($value:ty),*) => {$(
        impl Neg for $value {
            type Output = KerasTensor;
            #[track_caller]
            fn neg(self) -> KerasTensor {
                made(Elementwise::Negative, vec![self.into()], Location::caller())
            }
        }
    )*};
}
negative!(KerasTensor, &KerasTensor);
