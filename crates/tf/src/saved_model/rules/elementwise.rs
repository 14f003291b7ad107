//! Element-wise ops.

use estimand_graph::op::reading::{Reading, refuse};
use estimand_tensor::{DType, Dim, Error};

use super::super::node_output::NodeOutput;
use super::super::node_reader::{NodeReader, Outputs, one};

/// The division op of old graphs. Integers are divided towards zero.
pub(super) fn div(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (x, y) = (call.tensor(0)?, call.tensor(1)?);
    match x.dtype().is_float() {
        true => one(&x / &y),
        false => Err(refuse("a division of integers that rounds towards zero")),
    }
}

/// The first version of `Select`: a list of conditions selects rows.
pub(super) fn select_rows(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (condition, x, y) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if condition.rank() != 1 || x.rank() < 2 {
        return one(condition.select(&x, &y));
    }
    let mut shape = condition.shape().clone();
    shape.0.resize(x.rank(), Dim::Known(1));
    one(condition.reshape_as(shape).select(&x, &y))
}

pub(super) fn bias_add(call: &mut NodeReader<'_, '_>) -> Outputs {
    let format = call.text_or("data_format", "NHWC")?;
    if format != "NHWC" {
        return Err(refuse(format!("the data format {format}")));
    }
    let (x, bias) = (call.tensor(0)?, call.tensor(1)?);
    one(&x + &bias)
}

pub(super) fn add_n(call: &mut NodeReader<'_, '_>) -> Outputs {
    let mut terms = call.tensors(0..call.n_inputs())?.into_iter();
    let first = terms.next().ok_or_else(|| Error::config("the sum has no inputs; expected at least one"))?;
    one(terms.fold(first, |sum, term| sum + &term))
}

pub(super) fn leaky_relu(call: &mut NodeReader<'_, '_>) -> Outputs {
    let alpha = call.float_or("alpha", 0.2)?;
    one(call.tensor(0)?.leaky_relu(alpha.into()))
}

/// `erfc(x) e^(x^2) / t` from 0.5 to 26 as a polynomial of `t = 1 / (1 + x / 2)`, from the highest
/// power down: a minimax fit to Python's `math.erfc`. Its relative error is below 1e-8.
const ERFC: [f64; 10] = [
    -0.055_014_224_05,
    0.171_795_341_4,
    -0.129_714_177_9,
    -0.072_087_399_5,
    0.023_670_349_58,
    0.071_556_293_52,
    0.179_028_425_4,
    0.246_498_963_8,
    0.282_115_921_4,
    0.282_094_260_8,
];

/// `1 - erf(x)` as long as that has enough digits. Beyond, `e^-(x^2)` times a polynomial: the
/// relative error is below 1e-6 up to where the result underflows.
pub(super) fn erfc(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    // At 3.5, 1 - erf has more digits in f64 than the polynomial.
    let limit = if x.dtype() == DType::F64 { 3.5 } else { 0.5 };
    let far = x.maximum(0.5).minimum(28.0);
    let t = 1.0 / (&far * 0.5 + 1.0);
    let scaled = ERFC[2..].iter().fold(&t * ERFC[0] + ERFC[1], |sum, c| sum * &t + *c) * &t;
    // The rounding error of a large square would be large in its exponential. The square of a
    // multiple of 1/16 is exact.
    let step = (&far * 16.0).floor() * 0.0625;
    let rest = (&far - &step) * (&far + &step);
    let tail = (-step.square()).exp() * (-rest).exp() * scaled;
    one(x.less(limit).select(1.0 - x.erf(), &tail))
}

pub(super) fn is_inf(call: &mut NodeReader<'_, '_>) -> Outputs {
    one(call.tensor(0)?.abs().equal(f64::INFINITY))
}

/// `(e^x - e^-x) / 2`, from `e^x - 1`, which has all digits near 0. The halves do not overflow
/// before the result does.
pub(super) fn sinh(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    let size = x.abs();
    let less = size.expm1();
    let near = (&less + &less / (&less + 1.0)) * 0.5;
    let half = (&size * 0.5).exp();
    let far = &half * 0.5 * &half;
    one(x.sign() * size.less(10.0).select(&near, &far))
}

pub(super) fn cosh(call: &mut NodeReader<'_, '_>) -> Outputs {
    let half = (call.tensor(0)?.abs() * 0.5).exp();
    one((&half * 0.5) * &half + (0.5 / &half) / &half)
}

pub(super) fn tan(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    one(x.sin() / x.cos())
}

/// `ln(|x| + sqrt(x^2 + 1))` with the sign of x. What is added to 1 has all digits near 0.
pub(super) fn asinh(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    let size = x.abs();
    // Beyond 1e8, the square is not needed and may overflow.
    let near = size.minimum(1e8);
    let square = near.square();
    let near = (&near + &square / ((&square + 1.0).sqrt() + 1.0)).log1p();
    let far = size.log() + std::f64::consts::LN_2;
    one(x.sign() * size.less(1e8).select(&near, &far))
}

/// `ln(x + sqrt(x^2 - 1))`, from what x is above 1. Below 1, the first root is NaN.
pub(super) fn acosh(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    let above = x.minimum(1e8) - 1.0;
    let near = (&above + above.sqrt() * (&above + 2.0).sqrt()).log1p();
    let far = x.log() + std::f64::consts::LN_2;
    one(x.greater(1e8).select(&far, &near))
}

pub(super) fn atanh(call: &mut NodeReader<'_, '_>) -> Outputs {
    let x = call.tensor(0)?;
    let size = x.abs();
    one(x.sign() * (&size * 2.0 / (1.0 - &size)).log1p() * 0.5)
}

/// Floats as the integers of their bits. Only the sign of these is known.
pub(super) fn bitcast(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (x, to) = (call.tensor(0)?, call.dtype("type")?);
    match (x.dtype(), to) {
        (DType::F32, DType::I32) => Ok(vec![NodeOutput::Bits(x)]),
        (from, to) => Err(refuse(format!("the bits of {from} as {to}"))),
    }
}

/// The sign bit of floats, by which Keras 3 tells -0 from 0 in `argmax`. A NaN has none here.
pub(super) fn bitwise_and(call: &mut NodeReader<'_, '_>) -> Outputs {
    let not_read = || refuse("`and` of bits, but for the sign of f32");
    let (NodeOutput::Bits(x), bits) = (call.item(0)?, call.constant(1).map_err(|_| not_read())?) else {
        return Err(not_read());
    };
    if bits.dtype() != DType::I32 || bits.len() != 1 || bits.as_slice::<i32>()? != [i32::MIN] {
        return Err(not_read());
    }
    let is_negative = x.less(0.0).logical_or(x.equal(0.0).logical_and(x.reciprocal().less(0.0)));
    let sign = is_negative.cast(DType::I32) * f64::from(i32::MIN);
    one(sign)
}

pub(super) fn clip(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (x, low, high) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    one(x.clip(&low, &high))
}

pub(super) fn bucketize(call: &mut NodeReader<'_, '_>) -> Outputs {
    let boundaries = call.list("boundaries")?.f;
    one(call.tensor(0)?.bucketize(&boundaries))
}
