//! Ops on TensorFlow's sparse tensors.

use estimand_graph::host::sparse::{
    CrossOutput, RaggedToSparse, SparseConcat, SparseCross, SparseFillEmptyRows, SparseReorder, SparseReshape,
    SparseSlice, SparseToDense,
};
use estimand_graph::op::reading::{Reading, n_rows, refuse, with_rows};
use estimand_graph::op::sparse_segment::segment_splits;
use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::super::node_output::NodeOutput;
use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::{Number, Numbers};

fn items(tensors: Vec<Tensor>) -> Vec<NodeOutput> {
    tensors.into_iter().map(Into::into).collect()
}

/// The sparse form of a ragged tensor. Of its dense shape only the number of rows is known.
pub(super) fn sparse_of_ragged(
    call: &mut NodeReader<'_, '_>,
    row_splits: &Tensor,
    values: &Tensor,
) -> Result<[NodeOutput; 3]> {
    let outputs = call.host(RaggedToSparse, &[row_splits, values])?;
    let [indices, _, shape] = <[Tensor; 3]>::try_from(outputs).map_err(|_| Error::internal("three results"))?;
    let rows = call.graph().symbols_mut(|s| s.sub(row_splits.shape().dims()[0], Dim::Known(1)));
    let sizes = Numbers::list(DType::I64, vec![Number::of(rows), Number::Element(shape.clone(), 1)]);
    Ok([indices.into(), values.clone().into(), NodeOutput::both(shape, sizes)])
}

pub(super) fn from_ragged(call: &mut NodeReader<'_, '_>) -> Outputs {
    if call.int_or("RAGGED_RANK", 1)? != 1 {
        return Err(refuse("a ragged tensor of more than one ragged axis"));
    }
    let (splits, values) = (call.tensor(0)?.cast(DType::I64), call.tensor(1)?);
    if values.rank() != 1 {
        return Err(refuse(format!("a ragged tensor of {}", values.spec())));
    }
    Ok(sparse_of_ragged(call, &splits, &values)?.into())
}

/// Pads the rows of one ragged axis to a length, or cuts them.
pub(super) fn ragged_to_dense(call: &mut NodeReader<'_, '_>) -> Outputs {
    let kinds = call.list("row_partition_types")?.s;
    let kinds: Vec<&[u8]> = kinds.iter().map(Vec::as_slice).collect();
    let values = call.tensor(1)?;
    if values.rank() != 1 {
        return Err(refuse(format!("a ragged tensor of {}", values.spec())));
    }
    let row_splits = match &kinds[..] {
        [b"ROW_SPLITS"] => call.tensor(3)?.cast(DType::I64),
        [b"FIRST_DIM_SIZE", b"VALUE_ROWIDS"] => {
            let (rows, ids) = (call.size(3)?, call.tensor(4)?.cast(DType::I64));
            segment_splits(call, &with_rows(&ids, n_rows(&values)?), Some(rows))?
        }
        _ => return Err(refuse("a ragged tensor with other partitions than one list of row splits or row numbers")),
    };
    let wanted = match call.elements(0)? {
        // TF: -1 is a shape of which nothing is known.
        shape if shape.dims.is_empty() && shape.known() == Some(vec![-1]) => vec![Number::Known(-1); 2],
        shape => shape.elements,
    };
    let [rows, n_steps] = &wanted[..] else {
        return Err(refuse(format!("a dense shape of {} sizes, where two are expected,", wanted.len())));
    };
    let padding = call.tensor(2)?;
    let mut ragged = RaggedTensor { values, row_splits };
    let rows = match rows {
        Number::Known(-1) => ragged.n_rows(),
        rows => call.reader.size(rows)?,
    };
    let length = match n_steps {
        Number::Known(-1) => ragged.row_lengths().max().maximum(0i64),
        n_steps => n_steps.tensor(call.graph(), DType::I64)?,
    };
    let n_values = n_rows(&ragged.values)?;
    let row = ragged.row_ids();
    // TF: values beyond the length are dropped.
    let fits = (!matches!(n_steps, Number::Known(-1))).then(|| {
        let first = with_rows(&ragged.row_splits.gather(&row), n_values);
        (call.graph().range(n_values, DType::I64) - &first).less(&length)
    });
    if rows == ragged.n_rows() {
        ragged = fits.map_or(ragged.clone(), |fits| ragged.filter(&fits));
        return one(ragged.to_steps(&length, &[], &padding));
    }
    // TF: so are those beyond the last row. Rows that are missing are empty, so that the splits
    // repeat the last one.
    let present = Number::of(ragged.n_rows()).tensor(call.graph(), DType::I64)?;
    let wanted = Number::of(rows).tensor(call.graph(), DType::I64)?;
    let exists = with_rows(&row, n_values).less(&wanted);
    ragged = ragged.filter(&fits.map_or(exists.clone(), |fits| fits.logical_and(&exists)));
    let n_splits = call.graph().symbols_mut(|s| s.add(rows, Dim::Known(1)))?;
    let splits = call.graph().range(n_splits, DType::I64).minimum(&present);
    ragged.row_splits = ragged.row_splits.gather(&splits);
    one(ragged.to_steps(&length, &[], &padding))
}

pub(super) fn reshape(call: &mut NodeReader<'_, '_>) -> Outputs {
    let from = call.elements(1)?.elements;
    let from = from.iter().map(|n| call.reader.size(n)).collect::<Result<Vec<Dim>>>()?;
    let to = call.elements(2)?.elements;
    let to = resolved(call, &from, &to)?;
    // Feature columns often reshape to the same shape, even twice.
    if to.as_ref().is_some_and(|to| *to == from) {
        return Ok(vec![call.item(0)?, call.item(1)?]);
    }
    let (indices, shape, wanted) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let outputs = call.host(SparseReshape, &[&indices, &shape, &wanted])?;
    let [indices, reshaped] = <[Tensor; 2]>::try_from(outputs).map_err(|_| Error::internal("two results"))?;
    Ok(vec![
        indices.into(),
        match to {
            Some(to) => NodeOutput::both(reshaped, Numbers::list(DType::I64, to.into_iter().map(Number::of).collect())),
            None => reshaped.into(),
        },
    ])
}

/// The sizes of a new shape, with -1 resolved if that is possible before the run.
fn resolved(call: &mut NodeReader<'_, '_>, from: &[Dim], to: &[Number]) -> Result<Option<Vec<Dim>>> {
    let mut free = None;
    let mut sizes = Vec::with_capacity(to.len());
    for (axis, number) in to.iter().enumerate() {
        match number.known() {
            Some(-1) if free.is_none() => free = Some(axis),
            Some(n) if n < 0 => return Ok(None),
            _ => sizes.push(call.reader.size(number)?),
        }
    }
    if let Some(axis) = free {
        match call.graph().symbols_mut(|s| s.exact_quotient(from, &sizes))? {
            Some(size) => sizes.insert(axis, size),
            None => return Ok(None),
        }
    }
    Ok(Some(sizes))
}

pub(super) fn fill_empty_rows(call: &mut NodeReader<'_, '_>) -> Outputs {
    let [indices, values, shape, default] = &call.tensors(0..4)?[..] else {
        return Err(Error::config("the node does not have four inputs"));
    };
    let rows = call.numbers(2)?.and_then(|n| n.elements.first().cloned());
    let rows = rows.map(|n| call.reader.size(&n)).transpose()?;
    Ok(items(call.host(SparseFillEmptyRows { rows }, &[indices, values, shape, default])?))
}

pub(super) fn to_dense(call: &mut NodeReader<'_, '_>) -> Outputs {
    let [indices, shape, values, default] = &call.tensors(0..4)?[..] else {
        return Err(Error::config("the node does not have four inputs"));
    };
    let sizes = call.elements(1)?.elements;
    let sizes = sizes.iter().map(|n| Ok(Some(call.reader.size(n)?))).collect::<Result<Vec<_>>>()?;
    let op = SparseToDense { shape: sizes, validate: call.flag("validate_indices", true)? };
    one(call.host(op, &[indices, shape, values, default])?.remove(0))
}

pub(super) fn slice(call: &mut NodeReader<'_, '_>) -> Outputs {
    let inputs = call.tensors(0..5)?;
    Ok(items(call.host(SparseSlice, &inputs.iter().collect::<Vec<_>>())?))
}

pub(super) fn concat(call: &mut NodeReader<'_, '_>) -> Outputs {
    let axis = call.int_or("concat_dim", 0)?;
    let inputs = call.tensors(0..call.n_inputs())?;
    Ok(items(call.host(SparseConcat { axis }, &inputs.iter().collect::<Vec<_>>())?))
}

pub(super) fn reorder(call: &mut NodeReader<'_, '_>) -> Outputs {
    let inputs = call.tensors(0..3)?;
    Ok(items(call.host(SparseReorder, &inputs.iter().collect::<Vec<_>>())?))
}

pub(super) fn cross(call: &mut NodeReader<'_, '_>) -> Outputs {
    let n = usize::try_from(call.int_or("N", 0)?).unwrap_or(usize::MAX);
    let mut n_tensors = call.n_inputs();
    let output = match call.def.op.as_str() {
        "SparseCrossV2" => {
            n_tensors = n_tensors.saturating_sub(1);
            let separator = call.constant(n_tensors)?;
            CrossOutput::Joined { separator: separator.strings()?.next().unwrap_or_default().to_vec() }
        }
        _ if call.flag("hashed_output", false)? => CrossOutput::Hashed {
            n_buckets: call.int_or("num_buckets", 0)?,
            hash_key: call.int_or("hash_key", 0)? as u64,
        },
        _ => CrossOutput::Joined { separator: b"_X_".to_vec() },
    };
    if n.checked_mul(3).is_none_or(|sparse| sparse > n_tensors) {
        return Err(Error::config(format!(
            "the node has {n_tensors} inputs for {n} sparse keys; expected three for each key"
        )));
    }
    let mut inputs = call.tensors(0..n_tensors)?;
    // TF: a cross takes integers as i64.
    for key in inputs.iter_mut().skip(n) {
        if key.dtype() == DType::I32 {
            *key = key.cast(DType::I64);
        }
    }
    let rows = match n {
        0 => inputs.first().and_then(|key| key.shape().dims().first().copied()).map(Number::of),
        _ => call.numbers(2 * n)?.and_then(|n| n.elements.first().cloned()),
    };
    let outputs = call.host(SparseCross { n_sparse: n, output }, &inputs.iter().collect::<Vec<_>>())?;
    let [indices, values, shape] = <[Tensor; 3]>::try_from(outputs).map_err(|_| Error::internal("three results"))?;
    let rows = rows.unwrap_or_else(|| Number::Element(shape.clone(), 0));
    let sizes = Numbers::list(DType::I64, vec![rows, Number::Element(shape.clone(), 1)]);
    Ok(vec![indices.into(), values.into(), NodeOutput::both(shape, sizes)])
}

/// (indices, values, dense shape, matrix): rows of the matrix, weighted and summed.
pub(super) fn dense_matmul(call: &mut NodeReader<'_, '_>) -> Outputs {
    if call.flag("adjoint_a", false)? || call.flag("adjoint_b", false)? {
        return Err(refuse("a product with a transposed sparse matrix"));
    }
    let (indices, values, matrix) = (call.tensor(0)?, call.tensor(1)?, call.tensor(3)?);
    let rows = call.elements(2)?.elements;
    let [rows, _] = &rows[..] else {
        return Err(Error::shape("the sparse tensor does not have two axes; expected a matrix"));
    };
    let rows = call.reader.size(rows)?;
    let column = |k: i64| {
        let at = call.graph().constant(estimand_tensor::Array::scalar(k));
        with_rows(&indices.gather_axis(&at, 1, 0), values.shape().dims()[0])
    };
    let (row, place) = (column(0), column(1));
    // A segment sum drops rows below 0. Here they are as wrong as rows beyond the last, so they
    // become such rows.
    let beyond = Number::of(rows).tensor(call.graph(), DType::I64)?;
    let row = row.less(0i64).select(&beyond, &row);
    let weights = values.reshape_as(Shape::from([values.shape().dims()[0], Dim::Known(1)]));
    one((matrix.gather(&place) * &weights).segment_sum(&row, rows))
}
