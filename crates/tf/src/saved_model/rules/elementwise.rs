//! Element-wise ops.

use estimand_graph::op::reading::{Reading, refuse};
use estimand_tensor::{DType, Dim, Error};

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

pub(super) fn clip(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (x, low, high) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    one(x.clip(&low, &high))
}

pub(super) fn bucketize(call: &mut NodeReader<'_, '_>) -> Outputs {
    let boundaries = call.list("boundaries")?.f;
    one(call.tensor(0)?.bucketize(&boundaries))
}
