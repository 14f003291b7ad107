//! Reductions by segment. The host computes where segments begin; the step reduces.

use estimand_graph::Tensor;
use estimand_graph::op::UnsortedSegment;
use estimand_graph::op::reading::{Reading, n_rows, refuse, with_rows};
use estimand_graph::op::sparse_segment::segment_splits;
use estimand_tensor::{Dim, Reduction, Shape};

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

/// (ids, number of bins, weights or nothing): counts how often each id occurs. Ids beyond the last
/// bin are not counted.
pub(super) fn bincount(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (ids, n, weights) = (call.tensor(0)?, call.size(1)?, call.tensor(2)?);
    if ids.rank() != 1 {
        return Err(refuse(format!("a count of {}, which is not a list,", ids.spec())));
    }
    let bins = Number::of(n).tensor(call.graph(), ids.dtype())?;
    let counted = ids.less(&bins).select(&ids, -1i64);
    let has_weights = weights.shape().dims().first() != Some(&Dim::Known(0));
    let weights = match has_weights {
        true => with_rows(&weights, n_rows(&ids)?),
        false => call.graph().fill(ids.shape().clone(), weights.dtype(), 1.0),
    };
    let sums = weights.segment_sum(&counted, n);
    one(if call.flag("binary_output", false)? { sums.minimum(1.0) } else { sums })
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
