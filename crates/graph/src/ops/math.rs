//! Element-wise math.

use std::panic::Location;

use estimand_tensor::{Binary, DType, Unary};

use crate::op::{Cast, Print, Select, StopGradient};
use crate::tensor::{IntoTensor, Tensor};

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {
        impl Tensor {
            $($(#[$doc])* #[track_caller] pub fn $name(&self) -> Tensor {
                self.unary(Unary::$op, Location::caller())
            })*
        }
    };
}

unary_methods! {
    /// `|x|`
    abs => Abs,
    /// -1, 0 or 1
    sign => Sign,
    /// Largest integer not above x
    floor => Floor,
    /// Smallest integer not below x
    ceil => Ceil,
    /// Nearest integer, halves to even
    round => Round,
    /// `e^x`
    exp => Exp,
    /// `e^x - 1`, exact near 0
    expm1 => Expm1,
    /// Natural logarithm
    log => Log,
    /// `ln(1 + x)`, exact near 0
    log1p => Log1p,
    /// Square root
    sqrt => Sqrt,
    /// `1 / sqrt(x)`
    rsqrt => Rsqrt,
    /// `x * x`
    square => Square,
    /// `1 / x`
    reciprocal => Reciprocal,
    /// Sine
    sin => Sin,
    /// Cosine
    cos => Cos,
    /// Hyperbolic tangent
    tanh => Tanh,
    /// `1 / (1 + e^-x)`
    sigmoid => Sigmoid,
    /// Error function
    erf => Erf,
    /// `ln(1 + e^x)`
    softplus => Softplus,
    /// `x / (1 + |x|)`
    softsign => Softsign,
    /// `max(x, 0)`
    relu => Relu,
    /// `min(max(x, 0), 6)`
    relu6 => Relu6,
    /// `x` above 0, `e^x - 1` below
    elu => Elu,
    /// Scaled exponential linear unit
    selu => Selu,
    /// Boolean not
    logical_not => LogicalNot,
    /// Is not a number
    is_nan => IsNan,
    /// Neither infinite nor NaN
    is_finite => IsFinite,
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {
        impl Tensor {
            $($(#[$doc])* #[track_caller] pub fn $name(&self, other: impl IntoTensor) -> Tensor {
                let site = Location::caller();
                let other = self.beside(other, site);
                self.binary(Binary::$op, &other, site)
            })*
        }
    };
}

binary_methods! {
    /// `x / y`, 0 where y is 0
    div_no_nan => DivNoNan,
    /// `floor(x / y)`
    floor_div => FloorDiv,
    /// `x - y * floor(x / y)`: the sign of y
    floor_mod => FloorMod,
    /// `x^y`
    pow => Pow,
    /// The larger of the two
    maximum => Maximum,
    /// The smaller of the two
    minimum => Minimum,
    /// `(x - y)^2`
    squared_difference => SquaredDifference,
    /// `x < y`
    less => Less,
    /// `x <= y`
    less_equal => LessEqual,
    /// `x > y`
    greater => Greater,
    /// `x >= y`
    greater_equal => GreaterEqual,
    /// `x == y`
    equal => Equal,
    /// `x != y`
    not_equal => NotEqual,
    /// Whether both are true
    logical_and => LogicalAnd,
    /// Whether either is true
    logical_or => LogicalOr,
}

impl Tensor {
    /// Converts to another dtype. Floats lose their fraction; a number is true unless it is 0.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return self.clone();
        }
        self.then(Cast { to: dtype }, &[], Location::caller())
    }

    /// `x` where this (boolean) tensor is true, `y` elsewhere.
    #[track_caller]
    pub fn select(&self, x: impl IntoTensor, y: impl IntoTensor) -> Tensor {
        let site = Location::caller();
        // A number takes the dtype of the other branch; two numbers are f32.
        let dtype = x.own_dtype().or(y.own_dtype()).unwrap_or(DType::F32);
        let (x, y) = (x.into_tensor(self.graph(), dtype, site), y.into_tensor(self.graph(), dtype, site));
        self.then(Select, &[&x, &y], site)
    }

    /// Returns the tensor and stops its gradient.
    #[track_caller]
    pub fn stop_gradient(&self) -> Tensor {
        self.then(StopGradient, &[], Location::caller())
    }

    /// Prints the value to stderr whenever it is computed; returns it unchanged.
    #[track_caller]
    pub fn print(&self, label: &str) -> Tensor {
        self.then(Print { label: label.into() }, &[], Location::caller())
    }

    /// Limits values to `[low, high]`.
    #[track_caller]
    pub fn clip(&self, low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
        let site = Location::caller();
        let (low, high) = (self.beside(low, site), self.beside(high, site));
        self.binary(Binary::Minimum, &high, site).binary(Binary::Maximum, &low, site)
    }

    /// `x` above 0, `alpha * x` below.
    #[track_caller]
    pub fn leaky_relu(&self, alpha: f64) -> Tensor {
        let site = Location::caller();
        let (zero, alpha) = (self.number(0.0, site), self.number(alpha, site));
        let below = self.binary(Binary::Mul, &alpha, site);
        self.binary(Binary::Greater, &zero, site).then(Select, &[self, &below], site)
    }

    /// `x * sigmoid(x)`
    #[track_caller]
    pub fn swish(&self) -> Tensor {
        let site = Location::caller();
        self.binary(Binary::Mul, &self.unary(Unary::Sigmoid, site), site)
    }

    /// Gaussian error linear unit, exact: `x / 2 * (1 + erf(x / sqrt 2))`.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        let site = Location::caller();
        let scaled = self.binary(Binary::Div, &self.number(std::f64::consts::SQRT_2, site), site);
        let gate = self.number(1.0, site).binary(Binary::Add, &scaled.unary(Unary::Erf, site), site);
        self.number(0.5, site).binary(Binary::Mul, self, site).binary(Binary::Mul, &gate, site)
    }
}
