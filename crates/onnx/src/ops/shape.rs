//! Shapes: reshaping, repeating, joining, sizes as numbers.

use estimand_graph::op::{BandPart, BroadcastTo, Concat, DimSize, Range, Tile};
use estimand_tensor::{DType, Dim, Result};

use super::At;
use crate::message::AttributeProto;

/// The size of an axis as a number.
pub(super) fn dim_size(at: &mut At<'_, '_, '_, '_>, op: &DimSize) -> Result<String> {
    let size = at.size_number(op.dim)?;
    Ok(at.cast(&size, DType::I64, op.dtype))
}

/// 0, 1, 2, ... below a size.
pub(super) fn range(at: &mut At<'_, '_, '_, '_>, op: &Range) -> Result<String> {
    let numbers = numbers(at, op.size)?;
    Ok(at.cast(&numbers, DType::I64, op.dtype))
}

/// 0, 1, 2, ... below a size, i64.
pub(crate) fn numbers(at: &mut At<'_, '_, '_, '_>, size: Dim) -> Result<String> {
    let limit = at.size_number(size)?;
    let (start, step) = (at.scalar(0i64)?, at.scalar(1i64)?);
    Ok(at.add("Range", &[&start, &limit, &step]))
}

/// The same elements in another shape. One size that is known at run time needs no computation.
pub(super) fn reshape(at: &mut At<'_, '_, '_, '_>) -> Result<String> {
    let x = at.x(0)?;
    let dims = at.node.outputs[0].shape.dims();
    let n_open = dims.iter().filter(|dim| dim.known().is_none()).count();
    if n_open == 1 && !dims.contains(&Dim::Known(0)) {
        let dims: Vec<i64> = dims.iter().map(|dim| dim.known().map_or(-1, |n| n as i64)).collect();
        return at.reshape(&x, &dims);
    }
    let shape = at.shape(dims)?;
    // Without it, a size of 0 would mean the size that the input has.
    Ok(at.add_with("Reshape", &[&x, &shape], vec![AttributeProto::int("allowzero", 1)]))
}

/// Repeats axes of size 1.
pub(super) fn broadcast_to(at: &mut At<'_, '_, '_, '_>, op: &BroadcastTo) -> Result<String> {
    let x = at.x(0)?;
    let shape = at.shape(op.shape.dims())?;
    Ok(at.add("Expand", &[&x, &shape]))
}

/// Joins along an axis.
pub(super) fn concat(at: &mut At<'_, '_, '_, '_>, op: &Concat) -> Result<String> {
    let parts = (0..at.node.inputs.len()).map(|i| at.x(i)).collect::<Result<Vec<_>>>()?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(at.add_with("Concat", &parts, vec![AttributeProto::int("axis", op.axis as i64)]))
}

/// Repeats the whole input along each axis.
pub(super) fn tile(at: &mut At<'_, '_, '_, '_>, op: &Tile) -> Result<String> {
    let x = at.x(0)?;
    let repeats = at.ints(op.multiples.iter().map(|&n| n as i64))?;
    Ok(at.add("Tile", &[&x, &repeats]))
}

/// Matrices without what lies outside of a band.
pub(super) fn band_part(at: &mut At<'_, '_, '_, '_>, op: &BandPart) -> Result<String> {
    let (x, dtype, dims) = (at.x(0)?, at.dtype(0), at.dims(0));
    let (rows, columns) = (dims[dims.len() - 2], dims[dims.len() - 1]);
    let row = numbers(at, rows)?;
    let row = at.unsqueeze(&row, &[1])?;
    let column = numbers(at, columns)?;
    let mut kept: Option<String> = None;
    for (limit, from, to) in [(op.lower, &row, &column), (op.upper, &column, &row)] {
        let Some(limit) = limit else { continue };
        let limit = at.scalar(limit as i64)?;
        let distance = at.add("Sub", &[from, to]);
        let inside = at.add("LessOrEqual", &[&distance, &limit]);
        kept = Some(match kept {
            None => inside,
            Some(kept) => at.add("And", &[&kept, &inside]),
        });
    }
    let Some(kept) = kept else { return Ok(x) };
    if dtype == DType::Bool {
        return Ok(at.add("And", &[&x, &kept]));
    }
    let zero = at.number(dtype, 0.0)?;
    Ok(at.add("Where", &[&kept, &x, &zero]))
}
