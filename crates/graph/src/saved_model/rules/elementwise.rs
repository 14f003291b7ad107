//! Element-wise ops.

use estimand_tensor::{Binary, DType, Dim, Error};

use super::super::call::{Call, Outputs, one};
use super::super::numbers::Numbers;
use super::arithmetic;
use crate::host::text;
use crate::op::Op;

pub(super) fn unary(call: &mut Call<'_, '_>) -> Outputs {
    let op = super::unary(&call.def.op).ok_or_else(|| Error::internal("not an element-wise op"))?;
    let x = call.tensor(0)?;
    Ok(vec![call.add(Op::Unary(op), &[&x])?.remove(0).into()])
}

pub(super) fn binary(call: &mut Call<'_, '_>) -> Outputs {
    let op = super::binary(&call.def.op).ok_or_else(|| Error::internal("not an element-wise op"))?;
    if let (Some(a), Some(b)) = (call.numbers(0)?, call.numbers(1)?)
        && let Some(numbers) = arithmetic::binary(call.graph(), op, &a, &b)?
    {
        return one(numbers);
    }
    let (x, y) = (call.tensor(0)?, call.tensor(1)?);
    if x.dtype() == DType::Str && matches!(op, Binary::Equal | Binary::NotEqual) {
        let op = text::StringEqual { negated: op == Binary::NotEqual };
        return one(call.host(op, &[&x, &y])?.remove(0));
    }
    Ok(vec![call.add(Op::Binary(op), &[&x, &y])?.remove(0).into()])
}

/// Division of old graphs: of integers towards zero.
pub(super) fn div(call: &mut Call<'_, '_>) -> Outputs {
    let (x, y) = (call.tensor(0)?, call.tensor(1)?);
    match x.dtype().is_float() {
        true => one(&x / &y),
        false => Err(call.refuse("a division of integers that rounds towards zero")),
    }
}

pub(super) fn cast(call: &mut Call<'_, '_>) -> Outputs {
    let to = call.dtype("DstT")?;
    if let Some(numbers) = call.numbers(0)?
        && matches!(to, DType::I32 | DType::I64)
        && numbers.known().is_none_or(|known| to == DType::I64 || known.iter().all(|&n| i32::try_from(n).is_ok()))
    {
        return one(Numbers { dtype: to, ..numbers });
    }
    one(call.tensor(0)?.cast(to))
}

pub(super) fn select(call: &mut Call<'_, '_>) -> Outputs {
    let (condition, x, y) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    one(condition.select(&x, &y))
}

/// The first `Select`: a list of conditions chooses rows.
pub(super) fn select_rows(call: &mut Call<'_, '_>) -> Outputs {
    let (condition, x, y) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if condition.rank() != 1 || x.rank() < 2 {
        return one(condition.select(&x, &y));
    }
    let mut shape = condition.shape().clone();
    shape.0.resize(x.rank(), Dim::Known(1));
    one(condition.reshape_as(shape).select(&x, &y))
}

pub(super) fn bias_add(call: &mut Call<'_, '_>) -> Outputs {
    let format = call.text_or("data_format", "NHWC")?;
    if format != "NHWC" {
        return Err(call.refuse(format!("the data format {format}")));
    }
    let (x, bias) = (call.tensor(0)?, call.tensor(1)?);
    one(&x + &bias)
}

pub(super) fn add_n(call: &mut Call<'_, '_>) -> Outputs {
    let mut terms = call.tensors(0..call.n_inputs())?.into_iter();
    let first = terms.next().ok_or_else(|| Error::config("a sum of nothing"))?;
    one(terms.fold(first, |sum, term| sum + &term))
}

pub(super) fn leaky_relu(call: &mut Call<'_, '_>) -> Outputs {
    let alpha = call.float_or("alpha", 0.2)?;
    one(call.tensor(0)?.leaky_relu(alpha.into()))
}

pub(super) fn clip(call: &mut Call<'_, '_>) -> Outputs {
    let (x, low, high) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    one(x.clip(&low, &high))
}

pub(super) fn print(call: &mut Call<'_, '_>) -> Outputs {
    let message = call.text_or("message", "")?;
    one(call.tensor(0)?.print(message.trim_end_matches(": ")))
}

pub(super) fn bucketize(call: &mut Call<'_, '_>) -> Outputs {
    let boundaries = call.list("boundaries")?.f;
    one(call.tensor(0)?.bucketize(&boundaries))
}
