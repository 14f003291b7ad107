//! Elements and rows by their indices. An index below 0 is an error here; ONNX counts it from the
//! end. So it becomes an index beyond the end, which is an error there, too.

use estimand_graph::op::{Gather, OneHot, Op, ScatterNd};
use estimand_tensor::{DType, Dim, Result};

use super::At;
use super::shape::numbers;
use crate::message::AttributeProto;

/// Slices of an axis.
pub(super) fn gather(at: &mut At<'_, '_, '_, '_>, op: &Gather) -> Result<String> {
    let (mut x, mut indices) = (at.x(0)?, at.wide(1)?);
    // A constant was checked when the graph was made.
    if !matches!(at.op_of(1), Op::Constant(_) | Op::Range(_)) {
        let n = at.size_number(at.dims(0)[op.axis])?;
        indices = below_zero_beyond(at, &indices, &n)?;
    }
    if op.batch_dims == 0 {
        return Ok(at.add_with("Gather", &[&x, &indices], vec![AttributeProto::int("axis", op.axis as i64)]));
    }
    // The axis follows the shared ones; the axes between them move behind it, and back afterwards.
    let (n_shared, rank) = (op.batch_dims, at.rank(0));
    let between: Vec<usize> = (n_shared..op.axis).collect();
    if !between.is_empty() {
        let order = (0..n_shared).chain([op.axis]).chain(between.iter().copied()).chain(op.axis + 1..rank);
        x = at.transpose(&x, &order.collect::<Vec<_>>());
    }
    let places = at.unsqueeze(&indices, &[-1])?;
    let shared = vec![AttributeProto::int("batch_dims", n_shared as i64)];
    let found = at.add_with("GatherND", &[&x, &places], shared);
    if between.is_empty() {
        return Ok(found);
    }
    let n_indices = at.rank(1) - n_shared;
    let first = n_shared + n_indices;
    let order = (0..n_shared).chain(first..first + between.len()).chain(n_shared..first);
    let order = order.chain(first + between.len()..rank - 1 + n_indices);
    Ok(at.transpose(&found, &order.collect::<Vec<_>>()))
}

/// Indices, with the size of their axis in place of those below 0.
fn below_zero_beyond(at: &mut At<'_, '_, '_, '_>, indices: &str, size: &str) -> Result<String> {
    let zero = at.scalar(0i64)?;
    let is_below = at.add("Less", &[indices, &zero]);
    Ok(at.add("Where", &[&is_below, size, indices]))
}

/// Coordinates, the last axis of an input, into axes of these sizes.
fn coordinates(at: &mut At<'_, '_, '_, '_>, i: usize, sizes: &[Dim]) -> Result<String> {
    let coordinates = at.wide(i)?;
    let n_axes = at.dims(i).last().and_then(|axes| axes.known()).unwrap_or(0);
    let sizes = at.shape(&sizes[..n_axes])?;
    below_zero_beyond(at, &coordinates, &sizes)
}

/// Elements and slices at coordinates.
pub(super) fn gather_nd(at: &mut At<'_, '_, '_, '_>) -> Result<String> {
    let (x, indices) = (at.x(0)?, coordinates(at, 1, at.dims(0))?);
    Ok(at.add("GatherND", &[&x, &indices]))
}

/// Zeros with elements added at coordinates.
pub(super) fn scatter_nd(at: &mut At<'_, '_, '_, '_>, op: &ScatterNd) -> Result<String> {
    let (indices, updates) = (coordinates(at, 0, op.shape.dims())?, at.x(1)?);
    let zero = at.number(at.dtype(1), 0.0)?;
    let shape = at.shape(op.shape.dims())?;
    let zeros = at.filled(&zero, &shape);
    Ok(scatter_add(at, &zeros, &indices, &updates))
}

/// Adds updates at coordinates.
pub(crate) fn scatter_add(at: &mut At<'_, '_, '_, '_>, onto: &str, indices: &str, updates: &str) -> String {
    at.add_with("ScatterND", &[onto, indices, updates], vec![AttributeProto::text("reduction", "add")])
}

/// Indices as rows of a unit matrix. ONNX counts indices below 0 from the end, so they are compared
/// here.
pub(super) fn one_hot(at: &mut At<'_, '_, '_, '_>, op: &OneHot) -> Result<String> {
    let (indices, on, off) = (at.wide(0)?, at.x(1)?, at.x(2)?);
    let column = at.unsqueeze(&indices, &[op.axis as i64])?;
    let classes = numbers(at, Dim::Known(op.depth))?;
    let n_behind = at.rank(0) - op.axis;
    let shape: Vec<i64> = [op.depth as i64].into_iter().chain(vec![1; n_behind]).collect();
    let classes = at.reshape(&classes, &shape)?;
    let is_it = at.add("Equal", &[&column, &classes]);
    if at.dtype(1) != DType::Bool {
        return Ok(at.add("Where", &[&is_it, &on, &off]));
    }
    let not = at.add("Not", &[&is_it]);
    let (first, second) = (at.add("And", &[&is_it, &on]), at.add("And", &[&not, &off]));
    Ok(at.add("Or", &[&first, &second]))
}
