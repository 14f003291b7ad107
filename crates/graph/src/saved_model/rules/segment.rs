//! Reductions by segment. The host works out where segments begin; the step reduces.

use estimand_tensor::{DType, Dim, Error, Reduction, Result, Shape};

use super::super::call::{Call, Outputs, one};
use super::super::numbers::Number;
use super::shaping::with_rows;
use crate::host::sparse::SegmentSplits;
use crate::op::{Combiner, Op};
use crate::tensor::Tensor;

fn kind(op: &str) -> Reduction {
    match op {
        _ if op.contains("Max") => Reduction::Max,
        _ if op.contains("Min") => Reduction::Min,
        _ if op.contains("Prod") => Reduction::Prod,
        _ => Reduction::Sum,
    }
}

/// (data, ids, number of segments) in any order.
pub(super) fn unsorted(call: &mut Call<'_, '_>) -> Outputs {
    let (data, ids, num_segments) = (call.tensor(0)?, call.tensor(1)?, call.size(2)?);
    let ids = match ids.rank() {
        1 => with_rows(&ids, first(&data)?),
        _ => ids,
    };
    let op = Op::UnsortedSegment { kind: kind(&call.def.op), num_segments };
    one(call.add(op, &[&data, &ids])?.remove(0))
}

/// (ids, number of bins, weights or nothing): how often each id occurs; those beyond the last bin are not counted.
pub(super) fn bincount(call: &mut Call<'_, '_>) -> Outputs {
    let (ids, n, weights) = (call.tensor(0)?, call.size(1)?, call.tensor(2)?);
    if ids.rank() != 1 {
        return Err(call.refuse(format!("a count in {}", ids.spec())));
    }
    let bins = Number::of(n).tensor(call.graph(), ids.dtype())?;
    let counted = ids.less(&bins).select(&ids, -1i64);
    let has_weights = weights.shape().dims().first() != Some(&Dim::Known(0));
    let weights = match has_weights {
        true => with_rows(&weights, first(&ids)?),
        false => call.graph().fill(ids.shape().clone(), weights.dtype(), 1.0),
    };
    let sums = weights.segment_sum(&counted, n);
    one(if call.flag("binary_output", false)? { sums.minimum(1.0) } else { sums })
}

/// Where segments begin: of ids that never fall, in as many segments as the last id says, or as given.
fn splits(call: &Call<'_, '_>, ids: &Tensor, n: Option<Dim>) -> Result<Tensor> {
    let Some(n) = n else { return Ok(call.host(SegmentSplits, &[ids])?.remove(0)) };
    let count = Number::of(n).tensor(call.graph(), DType::I64)?;
    let splits = call.host(SegmentSplits, &[ids, &count])?.remove(0);
    let n_splits = call.graph().symbols_mut(|s| s.add(n, Dim::Known(1)))?;
    Ok(with_rows(&splits, n_splits))
}

/// (data, ids that never fall).
pub(super) fn sorted(call: &mut Call<'_, '_>) -> Outputs {
    let (data, ids) = (call.tensor(0)?, call.tensor(1)?);
    let ids = with_rows(&ids, first(&data)?);
    let splits = splits(call, &ids, None)?;
    let n = call.graph().symbols_mut(|s| s.sub(splits.shape().dims()[0], Dim::Known(1)));
    let reduced = match call.def.op.as_str() {
        "SegmentMean" => data.segment_mean(&ids, n),
        op => {
            let kind = kind(op);
            let reduced = call.add(Op::UnsortedSegment { kind, num_segments: n }, &[&data, &ids])?.remove(0);
            match kind {
                // TF: the largest and smallest of segments without ids are 0 here, where unsorted ones are the lowest and highest.
                Reduction::Max | Reduction::Min => where_any(&reduced, &ids, n),
                _ => reduced,
            }
        }
    };
    one(reduced)
}

/// 0 for segments that no id names.
fn where_any(reduced: &Tensor, ids: &Tensor, n: Dim) -> Tensor {
    let ones = ids.ones_like();
    let mut shape = Shape::from([n]);
    shape.0.resize(reduced.rank(), Dim::Known(1));
    let any = ones.segment_sum(ids, n).greater(0.0).reshape_as(shape);
    any.select(reduced, reduced.zeros_like())
}

fn combiner(op: &str) -> Combiner {
    match op {
        _ if op.contains("Mean") => Combiner::Mean,
        _ if op.contains("SqrtN") => Combiner::SqrtN,
        _ => Combiner::Sum,
    }
}

/// (data, places in it, ids that never fall[, number of segments]).
pub(super) fn sparse(call: &mut Call<'_, '_>) -> Outputs {
    let (data, places, ids) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let ids = with_rows(&ids, first(&places)?);
    let n = (call.n_inputs() > 3).then(|| call.size(3)).transpose()?;
    let splits = splits(call, &ids, n)?;
    let op = Op::SparseSegment(combiner(&call.def.op));
    one(call.add(op, &[&data, &places, &splits])?.remove(0))
}

/// (gradient, places in the data, ids that never fall, rows of the data).
pub(super) fn sparse_gradient(call: &mut Call<'_, '_>) -> Outputs {
    let (dy, places, ids, n_rows) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.size(3)?);
    let ids = with_rows(&ids, first(&places)?);
    let splits = splits(call, &ids, Some(first(&dy)?))?;
    let op = Op::SparseSegmentGrad(combiner(&call.def.op), n_rows);
    one(call.add(op, &[&dy, &places, &splits])?.remove(0))
}

fn first(tensor: &Tensor) -> Result<Dim> {
    tensor.shape().dims().first().copied().ok_or_else(|| Error::shape("a single number, expected a list"))
}
