//! Ops on tracked integers: shapes, sizes and positions, which TensorFlow computes with ordinary
//! ops.

use std::ops::Range;

use estimand_graph::op::SumTo;
use estimand_graph::op::reading::Reading;
use estimand_tensor::{Binary, DType, Dim, Error, Reduction, Result, Shape};

use super::super::node_output::NodeOutput;
use super::super::node_reader::{NodeReader, Outputs};
use super::super::numbers::{MOST, Number, Numbers};
use super::arithmetic;

/// The outputs of a node on tracked numbers. `None` if the node needs tensors.
pub(super) fn follow(call: &mut NodeReader<'_, '_>) -> Result<Option<Vec<NodeOutput>>> {
    let def = call.def;
    let followed = match def.op.as_str() {
        "Reshape" => reshape(call)?,
        "Cast" => cast(call)?,
        "StopGradient" => call.numbers(0)?,
        "ConcatV2" => {
            let n = call.n_inputs().saturating_sub(1);
            joined(call, 0..n, 1)?
        }
        "Concat" => joined(call, 1..call.n_inputs(), 1)?,
        "GatherV2" | "Gather" => gather(call)?,
        "Sum" if matches!(call.item(1)?, NodeOutput::AxesTo(_)) && call.numbers(0)?.is_none() => {
            return sum_to(call).map(Some);
        }
        "Minimum" if clamped(call)?.is_some() => clamped(call)?,
        op => match (reduction(op), binary_op(op)) {
            (Some(kind), _) => reduce(call, kind)?,
            (_, Some(op)) => binary(call, op)?,
            _ => None,
        },
    };
    Ok(followed.map(|numbers| vec![numbers.into()]))
}

fn reduction(op: &str) -> Option<Reduction> {
    Reduction::ALL.into_iter().find(|kind| kind.tf_name() == op)
}

fn binary_op(op: &str) -> Option<Binary> {
    match op {
        "Add" => Some(Binary::Add),
        _ => Binary::ALL.iter().copied().find(|binary| binary.tf_name() == op),
    }
}

fn binary(call: &NodeReader<'_, '_>, op: Binary) -> Result<Option<Numbers>> {
    match (call.numbers(0)?, call.numbers(1)?) {
        (Some(a), Some(b)) => arithmetic::binary(call.graph(), op, &a, &b),
        _ => Ok(None),
    }
}

/// `min(a, max(a, x))`, which is `a` for every `x`. Keras computes the depth of counts so.
///
/// Both must be single numbers: a list `x` has a list as its result.
fn clamped(call: &mut NodeReader<'_, '_>) -> Result<Option<Numbers>> {
    let single = |numbers: Option<Numbers>| numbers.filter(|numbers| numbers.elements.len() == 1);
    let nodes = call.reader.nodes;
    for (i, other) in [1, 0].into_iter().zip(call.inputs.clone()) {
        let Some(low) = single(call.numbers(i)?) else { continue };
        let def = nodes.def(other.node);
        if def.op != "Maximum" {
            continue;
        }
        for input in nodes.inputs_of(def)? {
            let NodeOutput::Value(known) = call.reader.item(input)? else { continue };
            let Some(high) = single(known.numbers) else { continue };
            let is_least = match (&low.elements[0], &high.elements[0]) {
                (Number::Known(low), Number::Known(high)) => low <= high,
                (Number::Size(low), Number::Size(high)) => low == high,
                _ => false,
            };
            if is_least && low.dims.is_empty() && call.reader.tensor(other)?.rank() == 0 {
                return Ok(Some(low));
            }
        }
    }
    Ok(None)
}

fn reshape(call: &mut NodeReader<'_, '_>) -> Result<Option<Numbers>> {
    let Some(numbers) = call.numbers(0)? else { return Ok(None) };
    Ok(call.elements(1)?.known().and_then(|dims| numbers.reshape(&dims)))
}

fn cast(call: &NodeReader<'_, '_>) -> Result<Option<Numbers>> {
    let to = call.dtype("DstT")?;
    let fits = |numbers: &Numbers| {
        matches!(to, DType::I32 | DType::I64)
            && numbers.known().is_none_or(|known| to == DType::I64 || known.iter().all(|&n| i32::try_from(n).is_ok()))
    };
    Ok(call.numbers(0)?.filter(fits).map(|numbers| Numbers { dtype: to, ..numbers }))
}

fn gather(call: &NodeReader<'_, '_>) -> Result<Option<Numbers>> {
    let (Some(numbers), Some(at)) = (call.numbers(0)?, call.numbers(1)?) else { return Ok(None) };
    let Some(places) = at.known().filter(|_| numbers.dims.len() == 1) else { return Ok(None) };
    let element = |&k: &i64| usize::try_from(k).ok().and_then(|k| numbers.elements.get(k)).cloned();
    let elements: Option<Vec<_>> = places.iter().map(element).collect();
    let elements = elements.ok_or_else(|| {
        Error::index(format!("the indices {places:?} are out of range for {} numbers", numbers.elements.len()))
    })?;
    Ok(Some(Numbers { dtype: numbers.dtype, dims: at.dims, elements }))
}

/// Joins inputs of this rank into one list, if at least one of them is tracked and the others can
/// be.
pub(super) fn joined(call: &mut NodeReader<'_, '_>, range: Range<usize>, rank: usize) -> Result<Option<Numbers>> {
    let mut any = false;
    for i in range.clone() {
        any |= call.numbers(i)?.is_some();
    }
    if !any {
        return Ok(None);
    }
    let mut all: Vec<Numbers> = Vec::new();
    for i in range {
        let numbers = match call.numbers(i)? {
            Some(numbers) => Some(numbers),
            None => Numbers::of_tensor(&call.tensor(i)?),
        };
        match numbers {
            Some(numbers) if numbers.dims.len() == rank => all.push(numbers),
            _ => return Ok(None),
        }
    }
    let elements: Vec<Number> = all.iter().flat_map(|numbers| numbers.elements.clone()).collect();
    Ok((elements.len() <= MOST).then(|| Numbers::list(all[0].dtype, elements)))
}

/// Reduces a whole list of tracked numbers, for example to the number of elements of a shape.
fn reduce(call: &mut NodeReader<'_, '_>, kind: Reduction) -> Result<Option<Numbers>> {
    let Some(numbers) = call.numbers(0)? else { return Ok(None) };
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
    let dims = if call.flag("keep_dims", false)? { vec![1] } else { vec![] };
    Ok(fits.then(|| Numbers { dtype: numbers.dtype, dims, elements: vec![result] }))
}

/// A sum over the axes of a broadcast. The result already has the shape that the following reshape
/// gives it.
fn sum_to(call: &mut NodeReader<'_, '_>) -> Outputs {
    let NodeOutput::AxesTo(sizes) = call.item(1)? else { return Err(Error::internal("axes were expected")) };
    let shape: Shape =
        sizes.elements.iter().map(|n| call.reader.size(n)).collect::<Result<Vec<_>>>()?.into_iter().collect();
    let tensor = call.tensor(0)?;
    let like = call.graph().fill(shape, tensor.dtype(), 0.0);
    Ok(call.add(SumTo, &[&tensor, &like])?.into_iter().map(Into::into).collect())
}
