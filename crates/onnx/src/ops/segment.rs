//! Rows that are combined by ids or by row splits.

use estimand_graph::Reduction;
use estimand_graph::op::{Combiner, SparseSegment, UnsortedSegment};
use estimand_tensor::{DType, Dim, Result};

use super::At;
use super::elementwise::no_nan;
use super::index::scatter_add;
use crate::host::ragged::row_ids;
use crate::message::AttributeProto;
use crate::refuse::no_counterpart;

/// Sums the rows with the same id; ids below 0 are dropped.
pub(super) fn unsorted_segment(at: &mut At<'_, '_, '_, '_>, op: &UnsortedSegment) -> Result<String> {
    if op.kind != Reduction::Sum {
        return no_counterpart(at, "opset 17 can only sum rows by their ids");
    }
    let (data, ids, dtype) = (at.x(0)?, at.wide(1)?, at.dtype(0));
    // Dropped rows are summed in one more row, which is cut off.
    let n = at.size(op.num_segments)?;
    let (zero, one) = (at.scalar(0i64)?, at.ints([1])?);
    let is_dropped = at.add("Less", &[&ids, &zero]);
    let ids = at.add("Where", &[&is_dropped, &n, &ids]);
    let ids = at.unsqueeze(&ids, &[-1])?;
    let n_rows = at.add("Add", &[&n, &one]);
    let rest: Vec<Dim> = at.dims(0)[at.rank(1)..].to_vec();
    let sums = sums(at, &data, &ids, &n_rows, &rest, dtype)?;
    let (start, axis) = (at.ints([0])?, at.ints([0])?);
    Ok(at.add("Slice", &[&sums, &start, &n, &axis]))
}

/// Zeros of `[n_rows, rest...]` with rows added at ids.
fn sums(
    at: &mut At<'_, '_, '_, '_>,
    rows: &str,
    ids: &str,
    n_rows: &str,
    rest: &[Dim],
    dtype: DType,
) -> Result<String> {
    let mut shape = n_rows.to_string();
    if !rest.is_empty() {
        let rest = at.shape(rest)?;
        shape = at.add_with("Concat", &[&shape, &rest], vec![AttributeProto::int("axis", 0)]);
    }
    let zero = at.number(dtype, 0.0)?;
    let zeros = at.filled(&zero, &shape);
    Ok(scatter_add(at, &zeros, ids, rows))
}

/// Combines the rows that each ragged row reads.
pub(super) fn sparse_segment(at: &mut At<'_, '_, '_, '_>, op: &SparseSegment) -> Result<String> {
    let (table, index, splits, dtype) = (at.x(0)?, at.x(1)?, at.x(2)?, at.dtype(0));
    let (n_rows, rank) = (at.node.outputs[0].shape.dims()[0], at.rank(0));
    let rest: Vec<Dim> = at.dims(0)[1..].to_vec();
    let ids = row_ids(at, &splits, &index)?;
    let ids = at.unsqueeze(&ids, &[-1])?;
    let mut rows = at.add("Gather", &[&table, &index]);
    let weights = if at.node.inputs.len() > 3 { Some(at.x(3)?) } else { None };
    // A weight for every axis of a row.
    let behind: Vec<i64> = (1..rank as i64).collect();
    if let Some(weights) = &weights {
        let column = if behind.is_empty() { weights.clone() } else { at.unsqueeze(weights, &behind)? };
        rows = at.add("Mul", &[&rows, &column]);
    }
    let n_rows = at.size(n_rows)?;
    let sum = sums(at, &rows, &ids, &n_rows, &rest, dtype)?;
    let shares = match (op.combiner, weights) {
        (Combiner::Sum, _) => return Ok(sum),
        (_, None) => {
            let (one, shape) = (at.number(dtype, 1.0)?, at.shape_of(&index));
            at.filled(&one, &shape)
        }
        (Combiner::Mean, Some(weights)) => weights,
        (Combiner::SqrtN, Some(weights)) => at.add("Mul", &[&weights, &weights]),
    };
    let mut divisor = sums(at, &shares, &ids, &n_rows, &[], dtype)?;
    if op.combiner == Combiner::SqrtN {
        divisor = at.add("Sqrt", &[&divisor]);
    }
    let divisor = if behind.is_empty() { divisor } else { at.unsqueeze(&divisor, &behind)? };
    no_nan(at, &sum, &divisor, dtype)
}
