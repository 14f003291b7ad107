//! Reductions, scans and soft maxima.

use estimand_tensor::{DType, Dim, Error, Reduction, Result, Shape};

use super::super::call::{Call, Outputs, one};
use super::super::item::Item;
use super::super::numbers::{Number, Numbers};
use crate::host::sparse::Top;
use crate::op::{AxisSet, Op};

fn kind(op: &str) -> Result<Reduction> {
    let all = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Prod,
        Reduction::Max,
        Reduction::Min,
        Reduction::All,
        Reduction::Any,
    ];
    all.into_iter().find(|kind| kind.tf_name() == op).ok_or_else(|| Error::internal("not a reduction"))
}

pub(super) fn reduce(call: &mut Call<'_, '_>) -> Outputs {
    let kind = kind(&call.def.op)?;
    let keep_dims = call.flag("keep_dims", false)?;
    if let Some(numbers) = call.numbers(0)?
        && let Some(result) = of_sizes(call, kind, &numbers, keep_dims)?
    {
        return one(result);
    }
    if let (Item::AxesTo(_), Reduction::Sum) = (call.item(1)?, kind) {
        return sum_to(call);
    }
    let axes = call.integers(1)?;
    let tensor = call.tensor(0)?;
    let axes: AxisSet =
        axes.iter().map(|&a| call.axis(a, tensor.rank())).collect::<Result<Vec<_>>>()?.into_iter().collect();
    one(call.add(Op::Reduce { kind, axes, keep_dims }, &[&tensor])?.remove(0))
}

/// A sum over the axes along which something was broadcast. It already has the shape that a reshape gives it next.
fn sum_to(call: &mut Call<'_, '_>) -> Outputs {
    let Item::AxesTo(sizes) = call.item(1)? else { return Err(Error::internal("axes were expected")) };
    let shape: Shape =
        sizes.elements.iter().map(|n| call.reader.size(n)).collect::<Result<Vec<_>>>()?.into_iter().collect();
    let tensor = call.tensor(0)?;
    let like = call.graph().fill(shape, tensor.dtype(), 0.0);
    one(call.add(Op::SumTo, &[&tensor, &like])?.remove(0))
}

/// The number of elements of a shape, and the like: all of a list of followed numbers.
fn of_sizes(call: &mut Call<'_, '_>, kind: Reduction, numbers: &Numbers, keep_dims: bool) -> Result<Option<Numbers>> {
    let axes = call.integers(1)?;
    let whole = numbers.dims.len() == 1 && matches!(axes[..], [0 | -1]);
    let dims: Option<Vec<Dim>> = numbers.elements.iter().map(Number::dim).collect();
    let result = match (kind, &numbers.elements[..], dims) {
        _ if !whole => return Ok(None),
        (Reduction::Prod | Reduction::Sum | Reduction::Max | Reduction::Min, [single], _) => single.clone(),
        (Reduction::Prod, _, Some(dims)) => Number::of(call.graph().symbols_mut(|s| s.product(&dims))?),
        (Reduction::Sum, _, Some(dims)) => {
            let sum = dims.iter().try_fold(Dim::Known(0), |sum, &d| call.graph().symbols_mut(|s| s.add(sum, d)))?;
            Number::of(sum)
        }
        _ => return Ok(None),
    };
    let fits = numbers.dtype != DType::I32 || result.known().is_none_or(|n| i32::try_from(n).is_ok());
    let dims = if keep_dims { vec![1] } else { vec![] };
    Ok(fits.then(|| Numbers { dtype: numbers.dtype, dims, elements: vec![result] }))
}

pub(super) fn arg_max(call: &mut Call<'_, '_>) -> Outputs {
    let (tensor, axis) = (call.tensor(0)?, call.integer(1)?);
    let axis = call.axis(axis, tensor.rank())?;
    let output = call.dtype_or("output_type", Some(DType::I64))?;
    let op = Op::ArgMax { axis, min: call.def.op == "ArgMin", output };
    one(call.add(op, &[&tensor])?.remove(0))
}

pub(super) fn cumulate(call: &mut Call<'_, '_>) -> Outputs {
    let (tensor, axis) = (call.tensor(0)?, call.integer(1)?);
    let axis = call.axis(axis, tensor.rank())?;
    let (exclusive, reverse) = (call.flag("exclusive", false)?, call.flag("reverse", false)?);
    let op = Op::Cumulate { product: call.def.op == "Cumprod", axis, exclusive, reverse };
    one(call.add(op, &[&tensor])?.remove(0))
}

pub(super) fn top_k(call: &mut Call<'_, '_>) -> Outputs {
    // Without `sorted` any order will do, so also ours.
    let tensor = call.tensor(0)?;
    let outputs = match call.size(1)? {
        Dim::Known(k) => call.add(Op::TopK(k), &[&tensor])?,
        k => {
            let count = call.tensor(1)?;
            call.host(Top { k }, &[&tensor, &count])?
        }
    };
    Ok(outputs.into_iter().map(Into::into).collect())
}

pub(super) fn softmax(call: &mut Call<'_, '_>) -> Outputs {
    let op = if call.def.op == "Softmax" { Op::Softmax } else { Op::LogSoftmax };
    let tensor = call.tensor(0)?;
    one(call.add(op, &[&tensor])?.remove(0))
}

pub(super) fn cross_entropy(call: &mut Call<'_, '_>) -> Outputs {
    let (logits, labels) = (call.tensor(0)?, call.tensor(1)?);
    let outputs = match call.def.op.as_str() {
        "SoftmaxCrossEntropyWithLogits" => call.add(Op::SoftmaxCrossEntropy, &[&logits, &labels])?,
        _ => {
            let rows = logits.shape().dims().first().copied().unwrap_or(Dim::Known(1));
            let labels = super::shaping::with_rows(&labels, rows);
            call.add(Op::SparseSoftmaxCrossEntropy, &[&logits, &labels])?
        }
    };
    Ok(outputs.into_iter().map(Into::into).collect())
}
