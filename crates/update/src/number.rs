//! The numbers that formulas of rules, schedules and constraints are written for.
//!
//! A formula is a function that is generic over [`Number`]. Read with `f32` it is the body of a
//! kernel, read with `f64` it computes the scalars of a step. Read with a [`Symbol`] it writes the
//! same operations to a [`Tape`], one after the other: the nodes of a graph, for example.
//!
//! A formula never branches on a number: it uses [`Number::select`]. Branches on settings are plain
//! Rust.
//!
//! ```
//! use estimand_update::Number;
//! fn soft_sign<N: Number>(x: N) -> N {
//!     x / (x.number(1.0) + x.abs())
//! }
//! assert_eq!(soft_sign(-1.0f32), -0.5);
//! ```

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The arithmetic that a formula may use.
///
/// Square roots and the four operations round as IEEE says. Formulas must not depend on the result
/// of `max` and `min` with NaN, or on the sign of zero: tapes may differ there.
pub trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The result of a comparison.
    type Condition: Copy;

    /// A constant of this number's type, rounded to it.
    #[must_use]
    fn number(self, value: f64) -> Self;
    /// The nearest `f32`, in this number's type.
    #[must_use]
    fn rounded(self) -> Self;
    /// Square root.
    #[must_use]
    fn sqrt(self) -> Self;
    /// The number without its sign.
    #[must_use]
    fn abs(self) -> Self;
    /// The largest whole number that is not above this one.
    #[must_use]
    fn floor(self) -> Self;
    /// The smallest whole number that is not below this one.
    #[must_use]
    fn ceil(self) -> Self;
    /// Natural logarithm.
    #[must_use]
    fn ln(self) -> Self;
    /// Cosine.
    #[must_use]
    fn cos(self) -> Self;
    /// The larger number.
    #[must_use]
    fn max(self, other: Self) -> Self;
    /// The smaller number.
    #[must_use]
    fn min(self, other: Self) -> Self;
    /// `self^exponent`
    #[must_use]
    fn powf(self, exponent: Self) -> Self;
    /// The magnitude of this number with the sign of another.
    #[must_use]
    fn copysign(self, sign: Self) -> Self;
    /// `self > other`
    fn above(self, other: Self) -> Self::Condition;
    /// `self >= other`
    fn at_least(self, other: Self) -> Self::Condition;
    /// `yes` if the condition holds, else `no`. Both are computed, and either may be NaN.
    fn select(condition: Self::Condition, yes: Self, no: Self) -> Self;
}

macro_rules! float {
    ($t:ty) => {
        impl Number for $t {
            type Condition = bool;

            #[inline(always)]
            fn number(self, value: f64) -> $t {
                value as $t
            }
            #[inline(always)]
            fn rounded(self) -> $t {
                self as f32 as $t
            }
            #[inline(always)]
            fn above(self, other: $t) -> bool {
                self > other
            }
            #[inline(always)]
            fn at_least(self, other: $t) -> bool {
                self >= other
            }
            #[inline(always)]
            fn select(condition: bool, yes: $t, no: $t) -> $t {
                if condition { yes } else { no }
            }
            float!(@methods $t, sqrt(), abs(), floor(), ceil(), ln(), cos());
            float!(@methods $t, max(other), min(other), powf(exponent), copysign(sign));
        }
    };
    (@methods $t:ty, $($method:ident($($other:ident)?)),*) => {$(
        #[inline(always)]
        fn $method(self $(, $other: $t)?) -> $t {
            <$t>::$method(self $(, $other)?)
        }
    )*};
}
float!(f32);
float!(f64);

/// An operation on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `x * y`
    Mul,
    /// `x / y`
    Div,
    /// `-x`
    Neg,
    /// The nearest `f32`, in the type of x.
    Rounded,
    /// Square root.
    Sqrt,
    /// `|x|`
    Abs,
    /// x rounded down.
    Floor,
    /// x rounded up.
    Ceil,
    /// Natural logarithm.
    Ln,
    /// Cosine.
    Cos,
    /// The larger of x and y.
    Max,
    /// The smaller of x and y.
    Min,
    /// `x^y`
    Pow,
    /// `|x|` with the sign of y.
    CopySign,
    /// `x > y`
    Above,
    /// `x >= y`
    AtLeast,
    /// (condition, x, y): x if the condition holds, else y.
    Select,
    /// The mean of all elements of x. Rules that [are whole](crate::UpdateRule::is_whole) use it
    /// and the next two.
    Mean,
    /// The mean of x along an axis, which is gone then. It is counted from the end: -1 is the last.
    MeanAlong(i8),
    /// x with one more axis of size 1 at this place, counted from the end of the result.
    WithAxis(i8),
}

/// Records the operations of a formula. A value is known by the number that the tape gave it.
pub trait Tape {
    /// Records a constant of the type of another value; returns its number.
    fn constant(&self, like: u32, value: f64) -> u32;

    /// Records an operation on earlier values; returns the number of its result.
    fn operation(&self, operation: Operation, inputs: &[u32]) -> u32;
}

/// A number that is known only by its place on a tape.
#[derive(Clone, Copy)]
pub struct Symbol<'t> {
    tape: &'t dyn Tape,
    index: u32,
}

impl<'t> Symbol<'t> {
    /// The value that a tape knows by this number.
    pub fn new(tape: &'t dyn Tape, index: u32) -> Symbol<'t> {
        Symbol { tape, index }
    }

    /// The number by which the tape knows the value.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The mean of all elements.
    #[must_use]
    pub fn mean(self) -> Symbol<'t> {
        self.then(Operation::Mean, &[])
    }

    /// The mean along an axis, which is gone then. The last axis is -1.
    #[must_use]
    pub fn mean_along(self, axis: i8) -> Symbol<'t> {
        self.then(Operation::MeanAlong(axis), &[])
    }

    /// The same numbers with one more axis of size 1. A last one is -1.
    #[must_use]
    pub fn with_axis(self, axis: i8) -> Symbol<'t> {
        self.then(Operation::WithAxis(axis), &[])
    }

    fn then(self, operation: Operation, others: &[Symbol<'t>]) -> Symbol<'t> {
        let mut inputs = [self.index; 3];
        inputs[1..].iter_mut().zip(others).for_each(|(input, other)| *input = other.index);
        Symbol { index: self.tape.operation(operation, &inputs[..1 + others.len()]), ..self }
    }
}

impl fmt::Debug for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({})", self.index)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident),*) => {$(
        impl<'t> $trait for Symbol<'t> {
            type Output = Symbol<'t>;
            fn $method(self, other: Symbol<'t>) -> Symbol<'t> {
                self.then(Operation::$trait, &[other])
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

impl Neg for Symbol<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.then(Operation::Neg, &[])
    }
}

macro_rules! methods {
    ($($method:ident($($other:ident)?) -> $result:ty: $operation:ident,)*) => {$(
        fn $method(self $(, $other: Self)?) -> $result {
            self.then(Operation::$operation, &[$($other)?])
        }
    )*};
}

impl Number for Symbol<'_> {
    type Condition = Self;

    fn number(self, value: f64) -> Self {
        Symbol { index: self.tape.constant(self.index, value), ..self }
    }

    methods! {
        rounded() -> Self: Rounded,
        sqrt() -> Self: Sqrt,
        abs() -> Self: Abs,
        floor() -> Self: Floor,
        ceil() -> Self: Ceil,
        ln() -> Self: Ln,
        cos() -> Self: Cos,
        max(other) -> Self: Max,
        min(other) -> Self: Min,
        powf(exponent) -> Self: Pow,
        copysign(sign) -> Self: CopySign,
        above(other) -> Self: Above,
        at_least(other) -> Self: AtLeast,
    }

    fn select(condition: Self, yes: Self, no: Self) -> Self {
        condition.then(Operation::Select, &[yes, no])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Writes formulas as text.
    struct Text(RefCell<Vec<String>>);

    impl Text {
        fn push(&self, text: String) -> u32 {
            self.0.borrow_mut().push(text);
            self.0.borrow().len() as u32 - 1
        }
    }

    impl Tape for Text {
        fn constant(&self, _like: u32, value: f64) -> u32 {
            self.push(value.to_string())
        }

        fn operation(&self, operation: Operation, inputs: &[u32]) -> u32 {
            let inputs: Vec<String> = inputs.iter().map(|&i| self.0.borrow()[i as usize].clone()).collect();
            self.push(format!("{operation:?}({})", inputs.join(", ")))
        }
    }

    /// Uses every method, each once.
    fn formula<N: Number>(x: N, y: N) -> [N; 3] {
        let roots = x.sqrt() + y.abs() - x.floor() * y.ceil() / x.ln();
        let sides = N::select(x.above(y), x.max(y), x.min(y)).powf(-x.cos());
        [roots, sides.copysign(y), N::select(x.at_least(x.number(0.5)), x.rounded(), y)]
    }

    #[test]
    fn a_tape_records_the_operations() {
        let tape = Text(RefCell::new(vec!["x".into(), "y".into()]));
        let results = formula(Symbol::new(&tape, 0), Symbol::new(&tape, 1));
        let texts = results.map(|result| tape.0.borrow()[result.index() as usize].clone());
        assert_eq!(
            texts,
            [
                "Sub(Add(Sqrt(x), Abs(y)), Div(Mul(Floor(x), Ceil(y)), Ln(x)))",
                "CopySign(Pow(Select(Above(x, y), Max(x, y), Min(x, y)), Neg(Cos(x))), y)",
                "Select(AtLeast(x, 0.5), Rounded(x), y)",
            ]
        );
    }

    #[test]
    fn a_tape_records_means() {
        let tape = Text(RefCell::new(vec!["x".into()]));
        let x = Symbol::new(&tape, 0);
        let result = x.mean() + x.mean_along(-2).with_axis(-1);
        assert_eq!(tape.0.borrow()[result.index() as usize], "Add(Mean(x), WithAxis(-1)(MeanAlong(-2)(x)))");
    }

    #[test]
    fn floats_compute() {
        let (x, y) = (2.3f64, -1.5f64);
        let [roots, sides, side] = formula(x, y);
        assert_eq!(roots, x.sqrt() + 1.5 + 2.0 / x.ln());
        assert_eq!(sides, -x.powf(-x.cos()));
        assert_eq!(side, f64::from(2.3f32));
    }
}
