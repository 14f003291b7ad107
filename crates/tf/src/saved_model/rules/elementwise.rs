//! Element-wise ops.

use estimand_graph::op::reading::{Reading, refuse};
use estimand_tensor::{Dim, Error};

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

/// `1 - erf(x)`, which has the rounding errors of numbers near 1: a small result has few digits.
pub(super) fn erfc(call: &mut NodeReader<'_, '_>) -> Outputs {
    one(1.0 - call.tensor(0)?.erf())
}

pub(super) fn clip(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (x, low, high) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    one(x.clip(&low, &high))
}

pub(super) fn bucketize(call: &mut NodeReader<'_, '_>) -> Outputs {
    let boundaries = call.list("boundaries")?.f;
    one(call.tensor(0)?.bucketize(&boundaries))
}
