//! Steps that reduce, scan or rank axes.

use estimand_graph::{Axes, Running};
use estimand_tensor::{DType, Result};

use super::facts::Facts;
use super::generator::{Generator, PoolValue};
use super::{leaves, pointwise};

pub(super) fn reduce(g: &mut Generator) -> Result<bool> {
    let Some(x) = g.find(|i| !i.dims.is_empty()) else { return Ok(false) };
    let axes: Vec<i64> = (0..x.dims.len() as i64).filter(|_| g.dice.chance(60)).collect();
    let n: usize = axes.iter().map(|&a| x.dims[a as usize]).product();
    let axes = if g.dice.chance(40) { Axes::of(axes).keep_dims() } else { Axes::of(axes) };
    let (t, f) = (&x.tensor, x.facts);
    if t.dtype() == DType::Bool {
        let fact = Facts::whole(0.0, 1.0);
        return match g.dice.chance(50) {
            true => g.push(t.all_axes(axes), fact),
            false => g.push(t.any_axes(axes), fact),
        };
    }
    match g.dice.below(8) {
        0..3 => g.push(t.sum_axes(axes), f.summed(n)),
        // An empty set has no mean, maximum or minimum.
        3 | 4 if n > 0 && x.is_float() => g.push(t.mean_axes(axes), f.rising(|v| v)),
        5 | 6 if n > 0 => {
            let Some(x) = leaves::separated(g, &x)? else { return Ok(false) };
            let t = &x.tensor;
            match g.dice.chance(50) {
                true => g.push(t.max_axes(axes), x.facts),
                false => g.push(t.min_axes(axes), x.facts),
            }
        }
        7 if x.is_float() && n <= 8 => {
            let scale = 1.5 / f.size().max(1.0);
            let largest = 1.5f64.powi(n as i32);
            g.push((t * scale).prod_axes(axes), Facts::real(-largest, largest))
        }
        _ if n > 0 && x.is_float() => g.push(t.logsumexp_axes(axes), f.rising(|v| v + (n as f64).ln())),
        _ => Ok(false),
    }
}

pub(super) fn scan_or_rank(g: &mut Generator) -> Result<bool> {
    let Some(x) = g.find(|i| !i.dims.is_empty() && i.tensor.dtype() != DType::Bool) else { return Ok(false) };
    let axis = g.dice.below(x.dims.len());
    let (n, last) = (x.dims[axis], x.dims[x.dims.len() - 1]);
    let along = Running::along(axis as i64);
    let along = if g.dice.chance(50) { along.exclusive() } else { along };
    let reverse = g.dice.chance(50);
    let along = if reverse { along.reverse() } else { along };
    let known = |i: &PoolValue, axis: usize| i.tensor.shape().dims()[axis].known().is_some();
    match g.dice.below(6) {
        0 | 1 => g.push(x.tensor.cumsum(along), x.facts.summed(n)),
        2 if x.is_float() && n <= 8 => {
            // The gradient divides by the elements.
            let (t, f) = pointwise::positive(&x);
            let t = t * (1.5 / f.high);
            let largest = 1.5f64.powi(n as i32);
            g.push(t.cumprod(along), Facts::real(0.0, largest))
        }
        3 | 4 if n > 0 => {
            let Some(x) = leaves::separated(g, &x)? else { return Ok(false) };
            let indices = Facts::whole(0.0, n as f64 - 1.0);
            match reverse {
                true => g.push(x.tensor.argmax(axis as i64), indices),
                false => g.push(x.tensor.argmin(axis as i64), indices),
            }
        }
        // TF: its gradient of top_k does not support rows without elements.
        _ if x.is_float() && last > 0 && known(&x, x.dims.len() - 1) => {
            let Some(x) = leaves::separated(g, &x)? else { return Ok(false) };
            let (values, indices) = x.tensor.top_k(g.dice.below(last + 1));
            g.push(values, x.facts)?;
            g.push(indices, Facts::whole(0.0, last as f64))
        }
        _ => Ok(false),
    }
}
