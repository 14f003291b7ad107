//! Element-wise functions.

use estimand_graph::op::{Binary, Unary};
use estimand_tensor::{DType, Result};

use super::{At, GRADIENT};
use crate::message::AttributeProto;
use crate::refuse::no_counterpart;

/// A function of one input.
pub(super) fn unary(at: &mut At<'_, '_, '_, '_>, op: Unary) -> Result<String> {
    let (x, dtype) = (at.x(0)?, at.dtype(0));
    let same = match op {
        Unary::Neg => "Neg",
        Unary::Abs => "Abs",
        Unary::Sign => "Sign",
        Unary::Floor => "Floor",
        Unary::Ceil => "Ceil",
        Unary::Round => "Round",
        Unary::Exp => "Exp",
        Unary::Log => "Log",
        Unary::Sqrt => "Sqrt",
        Unary::Reciprocal => "Reciprocal",
        Unary::Sin => "Sin",
        Unary::Cos => "Cos",
        Unary::Tanh => "Tanh",
        Unary::Sigmoid => "Sigmoid",
        Unary::Erf => "Erf",
        Unary::Softplus => "Softplus",
        Unary::Softsign => "Softsign",
        Unary::Relu if dtype.is_float() => "Relu",
        Unary::Elu => "Elu",
        Unary::Selu => "Selu",
        Unary::LogicalNot => "Not",
        Unary::IsNan => "IsNaN",
        Unary::Relu => {
            let zero = at.number(dtype, 0.0)?;
            return Ok(at.add("Max", &[&x, &zero]));
        }
        Unary::Relu6 => {
            let (low, high) = (at.number(dtype, 0.0)?, at.number(dtype, 6.0)?);
            return Ok(at.add("Clip", &[&x, &low, &high]));
        }
        Unary::Square => return Ok(at.add("Mul", &[&x, &x])),
        Unary::Rsqrt => {
            let root = at.add("Sqrt", &[&x]);
            return Ok(at.add("Reciprocal", &[&root]));
        }
        Unary::Expm1 => {
            // tanh(x / 2) * (e^x + 1) keeps the digits near 0, and holds at both infinities.
            let (half, one) = (at.number(dtype, 0.5)?, at.number(dtype, 1.0)?);
            let half = at.add("Mul", &[&x, &half]);
            let (tanh, exp) = (at.add("Tanh", &[&half]), at.add("Exp", &[&x]));
            let sum = at.add("Add", &[&exp, &one]);
            return Ok(at.add("Mul", &[&tanh, &sum]));
        }
        Unary::Log1p => return log1p(at, &x, dtype),
        Unary::IsFinite => {
            let (nan, infinite) = (at.add("IsNaN", &[&x]), at.add("IsInf", &[&x]));
            let neither = at.add("Or", &[&nan, &infinite]);
            return Ok(at.add("Not", &[&neither]));
        }
    };
    Ok(at.add(same, &[&x]))
}

/// `ln(1 + x)`, with the digits that the sum loses near 0.
fn log1p(at: &mut At<'_, '_, '_, '_>, x: &str, dtype: DType) -> Result<String> {
    let one = at.number(dtype, 1.0)?;
    let sum = at.add("Add", &[x, &one]);
    let log = at.add("Log", &[&sum]);
    let seen = at.add("Sub", &[&sum, &one]);
    let exact = at.add("Equal", &[&seen, x]);
    let tiny = at.add("Equal", &[&sum, &one]);
    let share = at.add("Div", &[x, &seen]);
    let corrected = at.add("Mul", &[&log, &share]);
    let small = at.add("Where", &[&tiny, x, &corrected]);
    Ok(at.add("Where", &[&exact, &log, &small]))
}

/// A function of two inputs.
pub(super) fn binary(at: &mut At<'_, '_, '_, '_>, op: Binary) -> Result<String> {
    let dtype = at.dtype(0);
    let (mut x, mut y) = (at.x(0)?, at.x(1)?);
    // Runtimes compute with wider integers.
    let wide = if dtype == DType::U8 { DType::I32 } else { dtype };
    (x, y) = (at.cast(&x, dtype, wide), at.cast(&y, dtype, wide));
    let result = match op {
        Binary::Add => at.add("Add", &[&x, &y]),
        Binary::Sub => at.add("Sub", &[&x, &y]),
        Binary::Mul => at.add("Mul", &[&x, &y]),
        Binary::Div => at.add("Div", &[&x, &y]),
        Binary::DivNoNan => no_nan(at, &x, &y, dtype)?,
        Binary::FloorDiv => floor_div(at, &x, &y, dtype)?,
        Binary::FloorMod => floor_mod(at, &x, &y, dtype)?,
        Binary::Pow => at.add("Pow", &[&x, &y]),
        Binary::Maximum => at.add("Max", &[&x, &y]),
        Binary::Minimum => at.add("Min", &[&x, &y]),
        Binary::SquaredDifference => {
            let difference = at.add("Sub", &[&x, &y]);
            at.add("Mul", &[&difference, &difference])
        }
        Binary::Less => at.add("Less", &[&x, &y]),
        Binary::LessEqual => at.add("LessOrEqual", &[&x, &y]),
        Binary::Greater => at.add("Greater", &[&x, &y]),
        Binary::GreaterEqual => at.add("GreaterOrEqual", &[&x, &y]),
        Binary::Equal => at.add("Equal", &[&x, &y]),
        Binary::NotEqual => {
            let equal = at.add("Equal", &[&x, &y]);
            at.add("Not", &[&equal])
        }
        Binary::LogicalAnd => at.add("And", &[&x, &y]),
        Binary::LogicalOr => at.add("Or", &[&x, &y]),
        Binary::ReluGrad
        | Binary::Relu6Grad
        | Binary::EluGrad
        | Binary::SeluGrad
        | Binary::SoftplusGrad
        | Binary::SoftsignGrad
        | Binary::TanhGrad
        | Binary::SigmoidGrad
        | Binary::SqrtGrad
        | Binary::RsqrtGrad
        | Binary::ReciprocalGrad => return no_counterpart(at, GRADIENT),
    };
    let (from, to) = if op.output(dtype) == DType::Bool { (DType::Bool, DType::Bool) } else { (wide, dtype) };
    Ok(at.cast(&result, from, to))
}

/// `x / y`, 0 where y is 0.
pub(super) fn no_nan(at: &mut At<'_, '_, '_, '_>, x: &str, y: &str, dtype: DType) -> Result<String> {
    let zero = at.number(dtype, 0.0)?;
    let quotient = at.add("Div", &[x, y]);
    let is_zero = at.add("Equal", &[y, &zero]);
    Ok(at.add("Where", &[&is_zero, &zero, &quotient]))
}

/// ONNX divides integers towards 0.
fn floor_div(at: &mut At<'_, '_, '_, '_>, x: &str, y: &str, dtype: DType) -> Result<String> {
    let quotient = at.add("Div", &[x, y]);
    if dtype.is_float() {
        return Ok(at.add("Floor", &[&quotient]));
    }
    let product = at.add("Mul", &[&quotient, y]);
    let rest = at.add("Sub", &[x, &product]);
    let is_below = opposite(at, &rest, y, dtype)?;
    let one = at.cast(&is_below, DType::Bool, dtype);
    Ok(at.add("Sub", &[&quotient, &one]))
}

/// The rest that has the sign of y.
fn floor_mod(at: &mut At<'_, '_, '_, '_>, x: &str, y: &str, dtype: DType) -> Result<String> {
    let rest = at.add_with("Mod", &[x, y], vec![AttributeProto::int("fmod", dtype.is_float().into())]);
    if !dtype.is_float() {
        return Ok(rest);
    }
    let is_below = opposite(at, &rest, y, dtype)?;
    let raised = at.add("Add", &[&rest, y]);
    Ok(at.add("Where", &[&is_below, &raised, &rest]))
}

/// Whether a rest is not 0 and has another sign than y.
fn opposite(at: &mut At<'_, '_, '_, '_>, rest: &str, y: &str, dtype: DType) -> Result<String> {
    let zero = at.number(dtype, 0.0)?;
    let is_zero = at.add("Equal", &[rest, &zero]);
    let is_rest = at.add("Not", &[&is_zero]);
    let (below, under) = (at.add("Less", &[rest, &zero]), at.add("Less", &[y, &zero]));
    let differ = at.add("Xor", &[&below, &under]);
    Ok(at.add("And", &[&is_rest, &differ]))
}

/// One or the other, where a condition holds.
pub(super) fn select(at: &mut At<'_, '_, '_, '_>) -> Result<String> {
    let (condition, x, y) = (at.x(0)?, at.x(1)?, at.x(2)?);
    if at.dtype(1) != DType::Bool {
        return Ok(at.add("Where", &[&condition, &x, &y]));
    }
    // onnxruntime does not select between booleans.
    let first = at.add("And", &[&condition, &x]);
    let not = at.add("Not", &[&condition]);
    let second = at.add("And", &[&not, &y]);
    Ok(at.add("Or", &[&first, &second]))
}
