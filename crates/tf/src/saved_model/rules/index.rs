//! Lookups by index.

use estimand_graph::Tensor;
use estimand_graph::host::Unique;
use estimand_graph::host::sparse::{PartitionPlaces, StitchPlaces, Where};
use estimand_graph::op::reading::{Reading, refuse};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::super::node_reader::{NodeReader, Outputs, one};

pub(super) fn resource_gather(call: &mut NodeReader<'_, '_>) -> Outputs {
    let table = call.variable_value(0)?;
    let indices = call.tensor(1)?;
    if call.int_or("batch_dims", 0)? != 0 {
        return Err(refuse("a lookup with batch_dims"));
    }
    one(table.gather(&indices))
}

pub(super) fn where_true(call: &mut NodeReader<'_, '_>) -> Outputs {
    let condition = call.tensor(0)?;
    one(call.host(Where, &[&condition])?.remove(0))
}

pub(super) fn unique(call: &mut NodeReader<'_, '_>) -> Outputs {
    let list = call.tensor(0)?;
    let places = call.dtype_or("out_idx", Some(DType::I32))?;
    let outputs = call.host(Unique { places }, &[&list])?;
    Ok(outputs.into_iter().map(Into::into).collect())
}

/// (data, the list number of each row): the host partitions the indices, the step moves the rows.
pub(super) fn partition(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (data, lists) = (call.tensor(0)?, call.tensor(1)?);
    let n = usize::try_from(call.int_or("num_partitions", 1)?).unwrap_or(0);
    let (data, lists) = (rows(call, &data, lists.rank())?, rows(call, &lists, lists.rank())?);
    let places = call.host(PartitionPlaces { n }, &[&lists])?;
    Ok(places.iter().map(|places| data.gather(places).into()).collect())
}

/// (lists of row numbers, their data): the host finds the positions, the step moves the rows.
pub(super) fn stitch(call: &mut NodeReader<'_, '_>) -> Outputs {
    let n = call.n_inputs() / 2;
    if n == 0 {
        return Err(Error::config("the node has no inputs to stitch"));
    }
    let (mut all_rows, mut all_data) = (Vec::new(), Vec::new());
    for i in 0..n {
        let (row, data) = (call.tensor(i)?, call.tensor(n + i)?);
        all_data.push(rows(call, &data, row.rank())?);
        all_rows.push(rows(call, &row, row.rank())?);
    }
    let joined = |parts: &[Tensor]| Tensor::concat(&parts.iter().collect::<Vec<_>>(), 0);
    let places = call.host(StitchPlaces, &[&joined(&all_rows)])?.remove(0);
    one(joined(&all_data).gather(&places))
}

/// Merges the first `rank` axes of a tensor into one.
fn rows(call: &NodeReader<'_, '_>, tensor: &Tensor, rank: usize) -> Result<Tensor> {
    let dims = tensor.shape().dims();
    if dims.len() < rank {
        return Err(Error::shape(format!("the data are {}; expected at least {rank} axes", tensor.spec())));
    }
    let n: Dim = call.graph().symbols_mut(|s| s.product(&dims[..rank]))?;
    let shape: Shape = [n].iter().chain(&dims[rank..]).copied().collect();
    Ok(tensor.reshape_as(shape))
}
