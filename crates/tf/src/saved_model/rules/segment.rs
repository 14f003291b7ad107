//! Reductions by segment. The host computes where segments begin; the step reduces.

use estimand_graph::op::UnsortedSegment;
use estimand_graph::op::reading::{Reading, n_rows, refuse, with_rows};
use estimand_graph::op::sparse_segment::segment_splits;
use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{DType, Dim, Reduction, Result, Shape};

use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::Number;

fn kind(op: &str) -> Reduction {
    match op {
        _ if op.contains("Max") => Reduction::Max,
        _ if op.contains("Min") => Reduction::Min,
        _ if op.contains("Prod") => Reduction::Prod,
        _ => Reduction::Sum,
    }
}

/// (ids, number of bins, weights or nothing): counts how often each id occurs, in the whole list or
/// in each row of a matrix. Ids beyond the last bin are not counted.
pub(super) fn bincount(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (ids, n, weights) = (call.tensor(0)?, call.size(1)?, call.tensor(2)?);
    match ids.rank() {
        1 => counts(call, &ids, None, n, &weights),
        2 => {
            let (rows, width) = (ids.shape().dims()[0], ids.shape().dims()[1]);
            let row = call.graph().range(rows, DType::I64).reshape_as(Shape::from([rows, Dim::Known(1)]));
            let flat = Shape::from([call.graph().symbols_mut(|s| s.mul(rows, width))?]);
            let row = row.broadcast_to(ids.shape().clone()).reshape_as(flat.clone());
            let has_weights = has_elements(&weights);
            let weights = if has_weights { weights.reshape_as(flat.clone()) } else { weights };
            counts(call, &ids.reshape_as(flat), Some((&row, rows)), n, &weights)
        }
        _ => Err(refuse(format!("a count of {}, which is neither a list nor a matrix,", ids.spec()))),
    }
}

/// (row splits, ids, number of bins, weights or nothing): counts how often each id occurs in each
/// row.
pub(super) fn ragged_bincount(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (splits, ids) = (call.tensor(0)?.cast(DType::I64), call.tensor(1)?);
    let (n, weights) = (call.size(2)?, call.tensor(3)?);
    if splits.rank() != 1 || ids.rank() != 1 {
        return Err(refuse(format!("a count of the rows of {}, split by {},", ids.spec(), splits.spec())));
    }
    let ragged = RaggedTensor { values: ids, row_splits: splits };
    let row = with_rows(&ragged.row_ids(), n_rows(&ragged.values)?);
    counts(call, &ragged.values, Some((&row, ragged.n_rows())), n, &weights)
}

fn has_elements(weights: &Tensor) -> bool {
    weights.shape().dims().first() != Some(&Dim::Known(0))
}

/// Counts ids below `n`. With the row of each id and the number of rows, counts them by row. An id
/// below 0 fails the run: in the row before its own it would be counted for somebody else.
fn counts(call: &NodeReader<'_, '_>, ids: &Tensor, rows: Option<(&Tensor, Dim)>, n: Dim, weights: &Tensor) -> Outputs {
    let graph = call.graph();
    let ids = ids.cast(DType::I64);
    let bins = Number::of(n).tensor(graph, DType::I64)?;
    let is_binary = call.flag("binary_output", false)?;
    // TF: whether an id occurs does not depend on its weights.
    let weights = match has_elements(weights) && !is_binary {
        true => with_rows(weights, n_rows(&ids)?),
        false => graph.fill(ids.shape().clone(), weights.dtype(), 1.0),
    };
    let counted = ids.less(&bins);
    // A segment sum drops places below 0, and refuses those beyond the last.
    let sum = |places: &Tensor, n: Dim| -> Result<Tensor> {
        let beyond = Number::of(n).tensor(graph, DType::I64)?;
        let places = ids.less(0i64).select(&beyond, counted.select(places, -1i64));
        Ok(weights.segment_sum(&places, n))
    };
    let sums = match rows {
        None => sum(&ids, n)?,
        Some((row, n_rows)) => {
            let total = graph.symbols_mut(|s| s.mul(n_rows, n))?;
            sum(&(row * &bins + &ids), total)?.reshape_as(Shape::from([n_rows, n]))
        }
    };
    one(if is_binary { sums.minimum(1.0) } else { sums })
}

/// (data, non-decreasing segment ids).
pub(super) fn sorted(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (data, ids) = (call.tensor(0)?, call.tensor(1)?);
    let ids = with_rows(&ids, n_rows(&data)?);
    let splits = segment_splits(call, &ids, None)?;
    let n = call.graph().symbols_mut(|s| s.sub(splits.shape().dims()[0], Dim::Known(1)));
    let reduced = match call.def.op.as_str() {
        "SegmentMean" => data.segment_mean(&ids, n),
        op => {
            let kind = kind(op);
            let reduced = call.add(UnsortedSegment { kind, num_segments: n }, &[&data, &ids])?.remove(0);
            match kind {
                // TF: the maximum and minimum of an empty segment are 0 here. For unsorted segments
                // they are the lowest and highest number.
                Reduction::Max | Reduction::Min => where_any(&reduced, &ids, n),
                _ => reduced,
            }
        }
    };
    one(reduced)
}

/// Replaces segments without ids with 0.
fn where_any(reduced: &Tensor, ids: &Tensor, n: Dim) -> Tensor {
    let ones = ids.ones_like();
    let mut shape = Shape::from([n]);
    shape.0.resize(reduced.rank(), Dim::Known(1));
    let any = ones.segment_sum(ids, n).greater(0.0).reshape_as(shape);
    any.select(reduced, reduced.zeros_like())
}
