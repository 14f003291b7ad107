//! The operations on floats, each as a function of one element.

use crate::cpu::isa::Isa;
use crate::cpu::math;
use crate::{Binary, Unary};

use super::kernel::{Kernel, Number, binary, unary};

/// The arithmetic that differs between `f32` (our polynomials, which become vector code) and `f64`
/// (the standard library's).
pub(in crate::cpu) trait Float:
    Number
    + PartialOrd
    + std::ops::Neg<Output = Self>
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Rem<Output = Self>
{
    /// The constant nearest to `x`.
    fn constant(x: f64) -> Self;
    fn abs(self) -> Self;
    fn floor(self) -> Self;
    fn round(self) -> Self;
    fn exp(self) -> Self;
    fn expm1(self) -> Self;
    fn log(self) -> Self;
    fn log1p(self) -> Self;
    fn sqrt(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn erf(self) -> Self;
    fn softplus(self) -> Self;
    fn pow(self, y: Self) -> Self;
}

macro_rules! float {
    ($t:ty, constant: $constant:expr, pow: $pow:path, $($method:ident: $function:expr),* $(,)?) => {
        impl Float for $t {
            #[inline(always)]
            fn constant(x: f64) -> $t {
                $constant(x)
            }
            #[inline(always)]
            fn pow(self, y: $t) -> $t {
                $pow(self, y)
            }
            $(#[inline(always)]
            fn $method(self) -> $t {
                $function(self)
            })*
        }
    };
}

float! {
    f32,
    constant: |x| x as f32, pow: math::pow,
    abs: f32::abs, floor: math::floor, round: math::round, exp: math::exp, expm1: math::expm1, log: math::log,
    log1p: math::log1p, sqrt: f32::sqrt, sin: math::sin, cos: math::cos, tanh: math::tanh,
    sigmoid: math::sigmoid, erf: math::erf, softplus: math::softplus,
}

float! {
    f64,
    constant: |x| x, pow: f64::powf,
    abs: f64::abs, floor: f64::floor, round: f64::round_ties_even, exp: f64::exp, expm1: f64::exp_m1, log: f64::ln,
    log1p: f64::ln_1p, sqrt: f64::sqrt, sin: f64::sin, cos: f64::cos, tanh: f64::tanh,
    sigmoid: |x: f64| 1.0 / (1.0 + (-x).exp()), erf: math::erf_f64,
    softplus: |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p(),
}

const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_SCALE_ALPHA: f64 = 1.758_099_340_847_376_9;

/// The loop of an operation, or `None` if it is not defined on floats.
pub(super) fn unary_kernel<T: Float>(op: Unary, isa: Isa) -> Option<Kernel> {
    Some(match op {
        Unary::Neg => unary!(isa, |x: T| -x),
        Unary::Abs => unary!(isa, |x: T| x.abs()),
        Unary::Sign => unary!(isa, |x: T| sign(x)),
        Unary::Floor => unary!(isa, |x: T| x.floor()),
        Unary::Ceil => unary!(isa, |x: T| ceil(x)),
        Unary::Round => unary!(isa, |x: T| x.round()),
        Unary::Exp => unary!(isa, |x: T| x.exp()),
        Unary::Expm1 => unary!(isa, |x: T| x.expm1()),
        Unary::Log => unary!(isa, |x: T| x.log()),
        Unary::Log1p => unary!(isa, |x: T| x.log1p()),
        Unary::Sqrt => unary!(isa, |x: T| x.sqrt()),
        Unary::Rsqrt => unary!(isa, |x: T| one::<T>() / x.sqrt()),
        Unary::Square => unary!(isa, |x: T| x * x),
        Unary::Reciprocal => unary!(isa, |x: T| one::<T>() / x),
        Unary::Sin => unary!(isa, |x: T| x.sin()),
        Unary::Cos => unary!(isa, |x: T| x.cos()),
        Unary::Tanh => unary!(isa, |x: T| x.tanh()),
        Unary::Sigmoid => unary!(isa, |x: T| x.sigmoid()),
        Unary::Erf => unary!(isa, |x: T| x.erf()),
        Unary::Softplus => unary!(isa, |x: T| x.softplus()),
        Unary::Softsign => unary!(isa, |x: T| x / (one::<T>() + x.abs())),
        Unary::Relu => unary!(isa, |x: T| relu(x)),
        Unary::Relu6 => unary!(isa, |x: T| relu6(x)),
        Unary::Elu => unary!(isa, |x: T| elu(x)),
        Unary::Selu => unary!(isa, |x: T| selu(x)),
        Unary::IsNan => unary!(isa, |x: T| u8::from(is_nan(x))),
        Unary::IsFinite => unary!(isa, |x: T| u8::from(x.abs() < one::<T>() / zero())),
        Unary::LogicalNot => return None,
    })
}

/// The loop of an operation, or `None` if it is not defined on floats.
pub(super) fn binary_kernel<T: Float>(op: Binary, isa: Isa) -> Option<Kernel> {
    Some(match op {
        Binary::Add => binary!(isa, |x: T, y: T| x + y),
        Binary::Sub => binary!(isa, |x: T, y: T| x - y),
        Binary::Mul => binary!(isa, |x: T, y: T| x * y),
        Binary::Div => binary!(isa, |x: T, y: T| x / y),
        Binary::DivNoNan => binary!(isa, |x: T, y: T| if y == zero() { zero() } else { x / y }),
        Binary::FloorDiv => binary!(isa, |x: T, y: T| floor_div(x, y)),
        Binary::FloorMod => binary!(isa, |x: T, y: T| floor_mod(x, y)),
        Binary::Pow => binary!(isa, |x: T, y: T| x.pow(y)),
        Binary::Maximum => binary!(isa, |x: T, y: T| if (x > y) | is_nan(x) { x } else { y }),
        Binary::Minimum => binary!(isa, |x: T, y: T| if (x < y) | is_nan(x) { x } else { y }),
        Binary::SquaredDifference => binary!(isa, |x: T, y: T| (x - y) * (x - y)),
        Binary::Less => binary!(isa, |x: T, y: T| u8::from(x < y)),
        Binary::LessEqual => binary!(isa, |x: T, y: T| u8::from(x <= y)),
        Binary::Greater => binary!(isa, |x: T, y: T| u8::from(x > y)),
        Binary::GreaterEqual => binary!(isa, |x: T, y: T| u8::from(x >= y)),
        Binary::Equal => binary!(isa, |x: T, y: T| u8::from(x == y)),
        Binary::NotEqual => binary!(isa, |x: T, y: T| u8::from(x != y)),
        Binary::ReluGrad => binary!(isa, |g: T, x: T| if x > zero() { g } else { zero() }),
        Binary::Relu6Grad => {
            binary!(isa, |g: T, x: T| if (x > zero()) & (x < T::constant(6.0)) { g } else { zero() })
        }
        Binary::EluGrad => binary!(isa, |g: T, y: T| if y < zero() { g * (y + one()) } else { g }),
        Binary::SeluGrad => binary!(isa, |g: T, x: T| selu_grad(g, x)),
        Binary::SoftplusGrad => binary!(isa, |g: T, x: T| softplus_grad(g, x)),
        Binary::SoftsignGrad => binary!(isa, |g: T, x: T| softsign_grad(g, x)),
        Binary::TanhGrad => binary!(isa, |y: T, g: T| g * (one::<T>() - y * y)),
        Binary::SigmoidGrad => binary!(isa, |y: T, g: T| g * y * (one::<T>() - y)),
        Binary::SqrtGrad => binary!(isa, |y: T, g: T| g * T::constant(0.5) / y),
        Binary::RsqrtGrad => binary!(isa, |y: T, g: T| g * T::constant(-0.5) * (y * y * y)),
        Binary::ReciprocalGrad => binary!(isa, |y: T, g: T| -g * y * y),
        Binary::LogicalAnd | Binary::LogicalOr => return None,
    })
}

#[inline(always)]
fn zero<T: Float>() -> T {
    T::constant(0.0)
}

#[inline(always)]
fn one<T: Float>() -> T {
    T::constant(1.0)
}

#[inline(always)]
#[allow(clippy::eq_op)] // NaN is the only number that differs from itself
fn is_nan<T: Float>(x: T) -> bool {
    x != x
}

/// NaN stays NaN, and both zeros give +0, as in TensorFlow.
#[inline(always)]
fn sign<T: Float>(x: T) -> T {
    let negative = if x < zero() { -one::<T>() } else { zero() };
    let sign = if x > zero() { one() } else { negative };
    if is_nan(x) { x } else { sign }
}

#[inline(always)]
fn ceil<T: Float>(x: T) -> T {
    -T::floor(-x)
}

/// NaN stays NaN: the comparison is false for it.
#[inline(always)]
fn relu<T: Float>(x: T) -> T {
    if x < zero() { zero() } else { x }
}

#[inline(always)]
fn relu6<T: Float>(x: T) -> T {
    let x = relu(x);
    let six = T::constant(6.0);
    if x > six { six } else { x }
}

#[inline(always)]
fn elu<T: Float>(x: T) -> T {
    let below = x.expm1();
    if x < zero() { below } else { x }
}

#[inline(always)]
fn selu<T: Float>(x: T) -> T {
    let below = T::constant(SELU_SCALE_ALPHA) * x.expm1();
    if x < zero() { below } else { T::constant(SELU_SCALE) * x }
}

#[inline(always)]
fn selu_grad<T: Float>(g: T, y: T) -> T {
    let below = g * (y + T::constant(SELU_SCALE_ALPHA));
    if y < zero() { below } else { g * T::constant(SELU_SCALE) }
}

#[inline(always)]
fn softplus_grad<T: Float>(g: T, x: T) -> T {
    g * x.sigmoid()
}

#[inline(always)]
fn softsign_grad<T: Float>(g: T, x: T) -> T {
    let d = one::<T>() + x.abs();
    // Not d * d, which would overflow.
    g / d / d
}

#[inline(always)]
fn floor_div<T: Float>(x: T, y: T) -> T {
    (x / y).floor()
}

/// Uses the exact remainder, as TensorFlow does: `x - y * floor(x / y)` would lose the digits of a
/// large quotient.
#[inline(always)]
fn floor_mod<T: Float>(x: T, y: T) -> T {
    let r = x % y;
    if r != zero() && (r < zero()) != (y < zero()) { r + y } else { r }
}
