//! The functions of gates and candidates. Their slope follows from their value, so nothing else is
//! kept for the gradient.

use crate::cpu::math;

/// A function of each element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CellFunction {
    /// `x`
    Linear,
    /// `max(x, 0)`
    Relu,
    /// `min(max(x, 0), 6)`
    Relu6,
    /// `x` above 0, `e^x - 1` below
    Elu,
    /// Scaled exponential linear unit
    Selu,
    /// `ln(1 + e^x)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `0.2 x + 0.5`, limited to [0, 1]
    HardSigmoid,
    /// Hyperbolic tangent
    Tanh,
    /// `e^x`
    Exponential,
}

impl CellFunction {
    /// Every function.
    pub const ALL: [CellFunction; 11] = [
        CellFunction::Linear,
        CellFunction::Relu,
        CellFunction::Relu6,
        CellFunction::Elu,
        CellFunction::Selu,
        CellFunction::Softplus,
        CellFunction::Softsign,
        CellFunction::Sigmoid,
        CellFunction::HardSigmoid,
        CellFunction::Tanh,
        CellFunction::Exponential,
    ];

    /// The factor of `Selu`.
    pub const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
    /// The alpha of `Selu`: on the left, `Selu` tends to minus this number times the factor.
    pub const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;

    /// Replaces elements by the values of the function.
    #[inline(always)]
    pub(super) fn apply(self, x: &mut [f32]) {
        macro_rules! each {
            ($v:ident => $value:expr) => {
                for x in x {
                    let $v = *x;
                    *x = $value;
                }
            };
        }
        const SCALE: f32 = CellFunction::SELU_SCALE as f32;
        const LEFT: f32 = (CellFunction::SELU_SCALE * CellFunction::SELU_ALPHA) as f32;
        match self {
            CellFunction::Linear => {}
            CellFunction::Relu => each!(v => if v < 0.0 { 0.0 } else { v }),
            CellFunction::Relu6 => each!(v => { let v = if v < 0.0 { 0.0 } else { v }; if v > 6.0 { 6.0 } else { v } }),
            CellFunction::Elu => each!(v => if v < 0.0 { math::expm1(v) } else { v }),
            CellFunction::Selu => each!(v => if v < 0.0 { LEFT * math::expm1(v) } else { SCALE * v }),
            CellFunction::Softplus => each!(v => math::softplus(v)),
            CellFunction::Softsign => each!(v => v / (1.0 + v.abs())),
            CellFunction::Sigmoid => each!(v => math::sigmoid(v)),
            CellFunction::HardSigmoid => {
                each!(v => { let v = 0.2 * v + 0.5; let v = if v < 0.0 { 0.0 } else { v }; if v > 1.0 { 1.0 } else { v } });
            }
            CellFunction::Tanh => each!(v => math::tanh(v)),
            CellFunction::Exponential => each!(v => math::exp(v)),
        }
    }

    /// Multiplies gradients by the slope of the function, given its values.
    #[inline(always)]
    pub(super) fn multiply_slope(self, y: &[f32], d: &mut [f32]) {
        macro_rules! each {
            ($v:ident => $slope:expr) => {
                for (d, y) in d.iter_mut().zip(y) {
                    let $v = *y;
                    *d *= $slope;
                }
            };
        }
        const SCALE: f32 = CellFunction::SELU_SCALE as f32;
        const LEFT: f32 = (CellFunction::SELU_SCALE * CellFunction::SELU_ALPHA) as f32;
        match self {
            CellFunction::Linear => {}
            CellFunction::Relu => each!(v => if v > 0.0 { 1.0 } else { 0.0 }),
            CellFunction::Relu6 => each!(v => if (v > 0.0) & (v < 6.0) { 1.0 } else { 0.0 }),
            CellFunction::Elu => each!(v => if v < 0.0 { v + 1.0 } else { 1.0 }),
            CellFunction::Selu => each!(v => if v < 0.0 { v + LEFT } else { SCALE }),
            CellFunction::Softplus => each!(v => -math::expm1(-v)),
            CellFunction::Softsign => each!(v => { let rest = 1.0 - v.abs(); rest * rest }),
            CellFunction::Sigmoid => each!(v => v * (1.0 - v)),
            CellFunction::HardSigmoid => each!(v => if (v > 0.0) & (v < 1.0) { 0.2 } else { 0.0 }),
            CellFunction::Tanh => each!(v => 1.0 - v * v),
            CellFunction::Exponential => each!(v => v),
        }
    }
}
