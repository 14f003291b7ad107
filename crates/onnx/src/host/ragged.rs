//! Ragged rows: values and row splits. What depends on the rows of values is computed from the row
//! of each value (`row_ids`).

use estimand_graph::host::Unique;
use estimand_graph::host::ragged::{LookupIds, MultiHot};
use estimand_tensor::{Array, DType, Dim, Result};

use crate::message::AttributeProto;
use crate::ops::At;
use crate::ops::index::scatter_add;

/// The row of each value, i64: the number of rows that have ended before it.
pub(crate) fn row_ids(at: &mut At<'_, '_, '_, '_>, splits: &str, values: &str) -> Result<String> {
    let (zero, one, ones) = (at.scalar(0i64)?, at.scalar(1i64)?, at.ints([1])?);
    let n = at.length_of(values);
    let ends = at.slice(splits, 0, 1, -1)?;
    let shape = at.shape_of(&ends);
    let counts = at.filled(&one, &shape);
    // One more place, for rows that end after the last value.
    let places = at.add("Add", &[&n, &ones]);
    let none = at.filled(&zero, &places);
    let ends = at.unsqueeze(&ends, &[-1])?;
    let ended = scatter_add(at, &none, &ends, &counts);
    let rows = at.add("CumSum", &[&ended, &zero]);
    let (begin, axis) = (at.ints([0])?, at.ints([0])?);
    Ok(at.add("Slice", &[&rows, &begin, &n, &axis]))
}

/// The row splits of rows with these lengths.
fn splits_of_lengths(at: &mut At<'_, '_, '_, '_>, lengths: &str) -> Result<String> {
    let (axis, zero) = (at.scalar(0i64)?, at.ints([0])?);
    let ends = at.add("CumSum", &[lengths, &axis]);
    Ok(at.add_with("Concat", &[&zero, &ends], vec![AttributeProto::int("axis", 0)]))
}

/// The row splits of values with these rows; there are as many rows as `splits` has.
fn splits_of_rows(at: &mut At<'_, '_, '_, '_>, rows: &str, splits: &str) -> Result<String> {
    let (zero, one, ones) = (at.scalar(0i64)?, at.scalar(1i64)?, at.ints([1])?);
    let n = at.length_of(splits);
    let n_rows = at.add("Sub", &[&n, &ones]);
    let none = at.filled(&zero, &n_rows);
    let shape = at.shape_of(rows);
    let counts = at.filled(&one, &shape);
    let places = at.unsqueeze(rows, &[-1])?;
    let lengths = scatter_add(at, &none, &places, &counts);
    splits_of_lengths(at, &lengths)
}

/// Values that are kept: their positions, and their row splits.
struct Kept {
    positions: String,
    rows: String,
    splits: String,
}

fn kept(at: &mut At<'_, '_, '_, '_>, mask: &str, splits: &str) -> Result<Kept> {
    let found = at.add("NonZero", &[mask]);
    let positions = at.reshape(&found, &[-1])?;
    let rows = row_ids(at, splits, mask)?;
    let rows = at.add("Gather", &[&rows, &positions]);
    let splits = splits_of_rows(at, &rows, splits)?;
    Ok(Kept { positions, rows, splits })
}

/// `[b, ...]` -> (values that are not missing, row splits).
pub(super) fn from_dense(at: &mut At<'_, '_, '_, '_>) -> Result<Vec<String>> {
    let (x, dtype, rank) = (at.x(0)?, at.dtype(0), at.rank(0));
    // 1 for a value, 0 for none. Opset 17 does not compare strings.
    let flags = if dtype == DType::Str {
        let attributes = vec![
            AttributeProto::texts("keys_strings", vec![Vec::new()]),
            AttributeProto::ints("values_int64s", [0]),
            AttributeProto::int("default_int64", 1),
        ];
        at.add_ml("LabelEncoder", &[&x], attributes)
    } else {
        let none = at.number(dtype, if dtype.is_float() { 0.0 } else { -1.0 })?;
        let is_none = at.add("Equal", &[&x, &none]);
        let is_value = at.add("Not", &[&is_none]);
        at.cast(&is_value, DType::Bool, DType::I64)
    };
    let places = at.add("NonZero", &[&flags]);
    let places = at.transpose(&places, &[1, 0]);
    let values = at.add("GatherND", &[&x, &places]);
    let axes: Vec<i64> = (1..rank as i64).collect();
    let lengths = if axes.is_empty() { flags } else { at.sum(&flags, &axes, false)? };
    Ok(vec![values, splits_of_lengths(at, &lengths)?])
}

/// `[b, ...]` -> (all values, row splits).
pub(super) fn from_rows(at: &mut At<'_, '_, '_, '_>) -> Result<Vec<String>> {
    let (x, dims) = (at.x(0)?, at.dims(0));
    let values = at.reshape(&x, &[-1])?;
    let n_rows = at.size(dims[0])?;
    let mut width = at.scalar(1i64)?;
    for &dim in &dims[1..] {
        let size = at.size(dim)?;
        width = at.add("Mul", &[&width, &size]);
    }
    let lengths = at.filled(&width, &n_rows);
    Ok(vec![values, splits_of_lengths(at, &lengths)?])
}

/// (ids, row splits, weights) -> (distinct ids, the place of each kept id among them, row splits,
/// weights), without ids below 0.
pub(super) fn lookup_ids(at: &mut At<'_, '_, '_, '_>, op: &LookupIds) -> Result<Vec<String>> {
    let (ids, splits) = (at.wide(0)?, at.x(1)?);
    let weights = if at.node.inputs.len() > 2 { Some(at.x(2)?) } else { None };
    let zero = at.scalar(0i64)?;
    let mut mask = at.add("GreaterOrEqual", &[&ids, &zero]);
    if let Some(weights) = weights.as_ref().filter(|_| op.drop_light) {
        // NaN is kept, as it is not at most 0.
        let zero = at.scalar(0f32)?;
        let is_light = at.add("LessOrEqual", &[weights, &zero]);
        let is_heavy = at.add("Not", &[&is_light]);
        mask = at.add("And", &[&mask, &is_heavy]);
    }
    let kept = kept(at, &mask, &splits)?;
    let ids = at.add("Gather", &[&ids, &kept.positions]);
    let (distinct, places) = distinct(at, &ids);
    let places = at.cast(&places, DType::I64, DType::I32);
    let weights = weights.map(|weights| at.add("Gather", &[&weights, &kept.positions]));
    Ok([distinct, places, kept.splits].into_iter().chain(weights).collect())
}

/// The distinct values in the order in which they appear, and the place of each value among them.
fn distinct(at: &mut At<'_, '_, '_, '_>, x: &str) -> (String, String) {
    let mut found = at.add_all("Unique", &[x], vec![AttributeProto::int("sorted", 0)], 3);
    let places = found.remove(2);
    (found.remove(0), places)
}

/// Distinct values.
pub(super) fn unique(at: &mut At<'_, '_, '_, '_>, op: &Unique) -> Result<Vec<String>> {
    let (x, dtype) = (at.x(0)?, at.dtype(0));
    let wide = match dtype {
        DType::I32 | DType::U8 | DType::Bool => DType::I64,
        other => other,
    };
    let x = at.cast(&x, dtype, wide);
    let (values, places) = distinct(at, &x);
    let values = at.cast(&values, wide, dtype);
    Ok(vec![values, at.cast(&places, DType::I64, op.places)])
}

/// (ids, row splits, weights) -> (row and id of each id below the depth, its weight or 1).
pub(super) fn multi_hot(at: &mut At<'_, '_, '_, '_>, op: &MultiHot) -> Result<Vec<String>> {
    let (ids, splits) = (at.wide(0)?, at.x(1)?);
    let (low, high) = (at.scalar(0i64)?, at.scalar(op.depth as i64)?);
    let (above, below) = (at.add("GreaterOrEqual", &[&ids, &low]), at.add("Less", &[&ids, &high]));
    let mask = at.add("And", &[&above, &below]);
    let kept = kept(at, &mask, &splits)?;
    let ids = at.add("Gather", &[&ids, &kept.positions]);
    let (rows, ids_column) = (at.unsqueeze(&kept.rows, &[1])?, at.unsqueeze(&ids, &[1])?);
    let places = at.add_with("Concat", &[&rows, &ids_column], vec![AttributeProto::int("axis", 1)]);
    let counts = if at.node.inputs.len() > 2 {
        let weights = at.x(2)?;
        at.add("Gather", &[&weights, &kept.positions])
    } else {
        let (one, shape) = (at.scalar(1f32)?, at.shape_of(&ids));
        at.filled(&one, &shape)
    };
    Ok(vec![places, counts])
}

/// (mask, row splits) -> (the positions of the kept values, their row splits).
pub(super) fn filter(at: &mut At<'_, '_, '_, '_>) -> Result<Vec<String>> {
    let (mask, splits) = (at.x(0)?, at.x(1)?);
    let kept = kept(at, &mask, &splits)?;
    Ok(vec![kept.positions, kept.splits])
}

/// (values of each, row splits of each) -> (the order of the values, row splits): rows are joined.
pub(super) fn concat(at: &mut At<'_, '_, '_, '_>) -> Result<Vec<String>> {
    let n = at.node.inputs.len() / 2;
    let axis = || vec![AttributeProto::int("axis", 0)];
    let mut rows = Vec::new();
    for i in 0..n {
        let (values, splits) = (at.x(i)?, at.x(n + i)?);
        rows.push(row_ids(at, &splits, &values)?);
    }
    let rows = at.add_with("Concat", &rows.iter().map(String::as_str).collect::<Vec<_>>(), axis());
    // A sort by row that keeps the order of values of one row.
    let n_values = at.length_of(&rows);
    let rising = [axis(), vec![AttributeProto::int("largest", 0), AttributeProto::int("sorted", 1)]].concat();
    let order = at.add_all("TopK", &[&rows, &n_values], rising, 2).remove(1);
    let splits = at.x(n)?;
    Ok(vec![order, splits_of_rows(at, &rows, &splits)?])
}

/// (values, row splits, the number of steps, padding) -> `[rows, steps, dims...]`.
pub(super) fn to_steps(at: &mut At<'_, '_, '_, '_>) -> Result<String> {
    let (values, splits, padding) = (at.x(0)?, at.x(1)?, at.x(3)?);
    let dims: &[Dim] = at.node.outputs[0].shape.dims();
    let shape = at.shape(dims)?;
    let mut width = at.size(dims[1])?;
    let step: i64 = dims[2..].iter().filter_map(|dim| dim.known()).product::<usize>() as i64;
    let step = at.constant(&Array::from([step]))?;
    width = at.add("Mul", &[&width, &step]);
    let rows = row_ids(at, &splits, &values)?;
    let begins = at.add("Gather", &[&splits, &rows]);
    let (zero, one) = (at.scalar(0i64)?, at.scalar(1i64)?);
    let n = at.length_of(&values);
    let n = at.reshape(&n, &[])?;
    let numbers = at.add("Range", &[&zero, &n, &one]);
    let within = at.add("Sub", &[&numbers, &begins]);
    let firsts = at.add("Mul", &[&rows, &width]);
    let places = at.add("Add", &[&firsts, &within]);
    let places = at.unsqueeze(&places, &[-1])?;
    let n_rows = at.size(dims[0])?;
    let total = at.add("Mul", &[&n_rows, &width]);
    let empty = at.filled(&padding, &total);
    let flat = at.add("ScatterND", &[&empty, &places, &values]);
    Ok(at.add_with("Reshape", &[&flat, &shape], vec![AttributeProto::int("allowzero", 1)]))
}
