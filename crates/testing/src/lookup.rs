//! Steps that gather, scatter and group by index.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Dim, Result, Shape};

use super::facts::Facts;
use super::generator::{Generator, PoolValue};
use super::leaves;

/// Indices below a limit: existing ones that fit, or new ones.
fn indices(g: &mut Generator, limit: usize) -> Result<PoolValue> {
    let below = |i: &PoolValue| i.facts.low >= 0.0 && i.facts.high < limit as f64;
    let ids = |i: &PoolValue| matches!(i.tensor.dtype(), DType::I32 | DType::I64) && i.dims.len() <= 2;
    if let Some(found) = g.find(|i| ids(i) && below(i)) {
        return Ok(found);
    }
    let n = g.dice.pick(&g.palette.clone());
    if g.dice.chance(50) {
        let rows = g.batch;
        return leaves::ints(g, Shape::from([Dim::BATCH, n.into()]), &[rows, n], 0, limit as i64);
    }
    leaves::ints(g, Shape::from([n]), &[n], 0, limit as i64)
}

pub(super) fn gather(g: &mut Generator) -> Result<bool> {
    let Some(x) = g.find(|i| !i.dims.is_empty() && i.dims.len() <= 3 && i.dims.iter().all(|&n| n > 0)) else {
        return Ok(false);
    };
    let t = &x.tensor;
    let n_slices = |x: &PoolValue, ids: &PoolValue| x.len() * ids.len();
    match g.dice.below(5) {
        0 | 1 => {
            let ids = indices(g, x.dims[0])?;
            if !g.affords(n_slices(&x, &ids)) {
                return Ok(false);
            }
            g.push(t.gather(&ids.tensor), x.facts)
        }
        2 => {
            let axis = g.dice.below(x.dims.len());
            let ids = indices(g, x.dims[axis])?;
            if !g.affords(n_slices(&x, &ids)) || ids.dims.len() + x.dims.len() > 5 {
                return Ok(false);
            }
            g.push(t.gather_axis(&ids.tensor, axis as i64, 0), x.facts)
        }
        3 if x.dims.len() >= 2 && feedable(t.shape().dims()[0]) => {
            let shape = Shape::from([t.shape().dims()[0], 2.into()]);
            let ids = leaves::ints(g, shape, &[x.dims[0], 2], 0, x.dims[1] as i64)?;
            g.push(t.gather_axis(&ids.tensor, 1, 1), x.facts)
        }
        _ => {
            let depth = g.dice.between(1, x.dims.len());
            let limit = x.dims[..depth].iter().copied().min().unwrap_or(1);
            let n = g.dice.pick(&g.palette.clone());
            let ids = leaves::ints(g, Shape::from([n, depth]), &[n, depth], 0, limit as i64)?;
            let rows = t.gather_nd(&ids.tensor);
            if !x.is_float() || g.dice.chance(50) {
                return g.push(rows, x.facts);
            }
            g.push(rows.scatter_nd(&ids.tensor, t.shape().clone()), x.facts.summed(n))
        }
    }
}

fn feedable(d: Dim) -> bool {
    d.known().is_some() || d == Dim::BATCH
}

/// Sums, extremes or means of rows with the same id. Some ids are negative and dropped.
pub(super) fn segment(g: &mut Generator) -> Result<bool> {
    let Some(x) = g.find(|i| i.is_float() && i.tensor.shape().dims().first().is_some_and(|&d| feedable(d))) else {
        return Ok(false);
    };
    let count = g.dice.pick(&[1, 2, 3, 5]);
    let rows = Shape::from([x.tensor.shape().dims()[0]]);
    let ids = leaves::ints(g, rows, &x.dims[..1], -1, count as i64)?;
    let n = x.dims[0];
    match g.dice.below(5) {
        0 | 1 => g.push(x.tensor.segment_sum(&ids.tensor, count), x.facts.summed(n)),
        2 => g.push(x.tensor.segment_mean(&ids.tensor, count), x.facts.or_zero().rising(|v| v)),
        which => {
            let Some(x) = leaves::separated(g, &x)? else { return Ok(false) };
            // A segment without rows has the lowest (or highest) number of the dtype.
            let extreme = match which {
                3 => x.tensor.segment_max(&ids.tensor, count).maximum(-9.0),
                _ => x.tensor.segment_min(&ids.tensor, count).minimum(9.0),
            };
            g.push(extreme, x.facts.or(&x.facts.within(-9.0, 9.0)))
        }
    }
}

/// One-hot rows of indices, or sizes and ranges as numbers.
pub(super) fn one_hot_or_range(g: &mut Generator) -> Result<bool> {
    if g.dice.chance(50) {
        let ids = indices(g, 5)?;
        // The last index is out of range: a row of zeros.
        return g.push(ids.tensor.one_hot(4, DType::F32), Facts::whole(0.0, 1.0));
    }
    let Some(x) = g.find(|i| !i.dims.is_empty()) else { return Ok(false) };
    let axis = g.dice.below(x.dims.len());
    let n = x.dims[axis] as f64;
    let dtype = g.dice.pick(&[DType::F32, DType::I32, DType::I64]);
    let count: Tensor = match g.dice.chance(50) {
        true => x.tensor.size(axis as i64).cast(dtype),
        false => g.graph.range(x.tensor.shape().dims()[axis], dtype),
    };
    g.push(count, Facts::whole(0.0, n))
}
