//! Steps that move elements without changing them, except for borders.

use estimand_graph::{Graph, Mirror, Tensor};
use estimand_tensor::{DType, Dim, Result, Shape};

use super::generator::{Generator, PoolValue};
use super::leaves;

pub(super) fn any(g: &mut Generator) -> Result<bool> {
    let Some(x) = g.find(|i| i.tensor.rank() > 0 && i.tensor.rank() < 5) else { return Ok(false) };
    let (t, rank) = (&x.tensor, x.dims.len());
    let axis = g.dice.below(rank);
    let known = t.shape().known().is_some();
    let numeric = t.dtype() != DType::Bool;
    match g.dice.below(16) {
        0 | 1 => reshape(g, &x),
        2 => {
            let place = g.dice.below(rank + 1) as i64;
            g.push(t.expand_dims(place), x.facts)
        }
        3 => g.push(t.squeeze(&[]), x.facts),
        4 => {
            let perm = g.dice.permutation(rank);
            g.push(t.transpose(&perm), x.facts)
        }
        5 => broadcast(g, &x),
        6 | 7 => join(g, &x, axis),
        8 => slice(g, &x),
        9 if known => strided_slice(g, &x),
        10 if numeric => pad(g, &x),
        // TF: mirror padding of an empty tensor is refused, even without a border.
        11 if known && numeric && x.len() > 0 => mirror_pad(g, &x),
        12 => {
            let multiples: Vec<usize> = (0..rank).map(|_| g.dice.pick(&[1, 1, 2, 3])).collect();
            if !g.affords(x.len() * multiples.iter().product::<usize>()) {
                return Ok(false);
            }
            g.push(t.tile(&multiples), x.facts)
        }
        13 => {
            let axes: Vec<i64> = (0..rank as i64).filter(|_| g.dice.chance(50)).collect();
            g.push(t.reverse(&axes), x.facts)
        }
        14 if rank > 1 => {
            // TF: the number of diagonals is at most the size of the axis.
            let diagonals =
                |g: &mut Generator, n: usize| if g.dice.chance(30) { None } else { Some(g.dice.below(n + 1)) };
            let (lower, upper) = (diagonals(g, x.dims[rank - 2]), diagonals(g, x.dims[rank - 1]));
            g.push(t.band_part(lower, upper), x.facts.or_zero())
        }
        _ => split(g, &x, axis),
    }
}

/// Merges neighbouring axes, splits one axis, or reshapes to two axes with one size left open.
fn reshape(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let t = &x.tensor;
    let mut shape = t.shape().clone();
    match g.dice.below(3) {
        0 => return g.push(t.flatten(), x.facts),
        1 => {
            // Split a known axis by one of its factors.
            let divisible = |d: &Dim| d.known().and_then(|n| [2, 3, 5].into_iter().find(|f| n > *f && n % f == 0));
            let split = shape.dims().iter().enumerate().find_map(|(i, d)| divisible(d).map(|f| (i, f)));
            let Some((axis, factor)) = split else { return Ok(false) };
            let n = x.dims[axis];
            shape.0[axis] = Dim::Known(n / factor);
            shape.0.insert(axis + 1, Dim::Known(factor));
        }
        _ => {
            let last = shape.dims()[shape.rank() - 1];
            if last == Dim::Known(0) {
                return Ok(false);
            }
            shape = Shape::from([Graph::ANY, last]);
        }
    }
    g.push(t.reshape_as(shape), x.facts)
}

/// Adds a first axis, and broadcasts axes of size 1.
fn broadcast(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let mut shape = x.tensor.shape().clone();
    for d in shape.0.iter_mut().filter(|d| **d == Dim::Known(1)) {
        *d = Dim::Known(g.dice.between(1, 3));
    }
    if g.dice.chance(50) {
        shape.0.insert(0, Dim::Known(2));
    }
    if !g.affords(x.len() * 60) {
        return Ok(false);
    }
    g.push(x.tensor.broadcast_to(shape), x.facts)
}

/// Joins with another value whose sizes differ in one known axis at most, or with a copy along a
/// new axis.
fn join(g: &mut Generator, x: &PoolValue, axis: usize) -> Result<bool> {
    let t = &x.tensor;
    if g.dice.chance(30) {
        let copy = t.reverse(&[axis as i64]);
        let place = g.dice.below(x.dims.len() + 1) as i64;
        return g.push(Tensor::stack(&[t, &copy], place), x.facts);
    }
    let dims = t.shape().dims();
    if dims[axis].known().is_none() {
        return Ok(false);
    }
    let fits = |i: &PoolValue| {
        let same = |(k, d): (usize, &Dim)| if k == axis { d.known().is_some() } else { *d == dims[k] };
        i.tensor.dtype() == t.dtype()
            && i.dims.len() == dims.len()
            && i.tensor.shape().dims().iter().enumerate().all(same)
    };
    let other = match g.find(|i| fits(i) && i.tensor.value() != t.value()) {
        Some(other) => other,
        None if x.is_float() && dims.iter().all(|d| d.known().is_some() || *d == Dim::BATCH) => {
            let (mut shape, mut sizes) = (t.shape().clone(), x.dims.to_vec());
            sizes[axis] = g.dice.pick(&g.palette.clone());
            shape.0[axis] = Dim::Known(sizes[axis]);
            leaves::float_feed(g, Some((shape, sizes)))?
        }
        None => return Ok(false),
    };
    if !g.affords(x.len() + other.len()) {
        return Ok(false);
    }
    g.push(Tensor::concat(&[t, &other.tensor], axis as i64), x.facts.or(&other.facts))
}

fn slice(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let mut begin = Vec::new();
    let mut size = Vec::new();
    for (&n, d) in x.dims.iter().zip(x.tensor.shape().dims()) {
        let first = if d.known().is_some() || g.dice.chance(30) { g.dice.below(n) } else { 0 };
        begin.push(first);
        // For an unknown size, the slice reaches to the end.
        let open = d.known().is_none() || g.dice.chance(40);
        size.push(if open { -1 } else { g.dice.between(0, n - first) as i64 });
    }
    g.push(x.tensor.slice(&begin, &size), x.facts)
}

fn strided_slice(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let ranges: Vec<(i64, i64, i64)> = x
        .dims
        .iter()
        .map(|&n| {
            let n = n as i64;
            let edge = g.dice.below(3) as i64;
            match g.dice.below(4) {
                0 => (0, n, 1),
                1 => (edge, n, 2),
                2 => (-1, -n - 1, -1),
                _ => (n - 1 - edge, edge, -2),
            }
        })
        .collect();
    g.push(x.tensor.strided_slice(&ranges), x.facts)
}

fn pad(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let paddings: Vec<(usize, usize)> = x.dims.iter().map(|_| (g.dice.below(3), g.dice.below(2))).collect();
    let padded: usize = x.dims.iter().zip(&paddings).map(|(n, p)| n + p.0 + p.1).product();
    if !g.affords(padded) {
        return Ok(false);
    }
    let value = if x.facts.is_exact() { 1.0 } else { 0.0 };
    let facts = x.facts.or(&x.facts.within(value, value));
    g.push(x.tensor.pad(&paddings, value), facts)
}

fn mirror_pad(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let symmetric = g.dice.chance(50);
    let mirror = if symmetric { Mirror::Symmetric } else { Mirror::Reflect };
    let most = |n: usize| if symmetric { n } else { n.saturating_sub(1) }.min(2);
    let paddings: Vec<(usize, usize)> =
        x.dims.iter().map(|&n| (g.dice.below(most(n) + 1), g.dice.below(most(n) + 1))).collect();
    let padded: usize = x.dims.iter().zip(&paddings).map(|(n, p)| n + p.0 + p.1).product();
    if !g.affords(padded) {
        return Ok(false);
    }
    g.push(x.tensor.mirror_pad(&paddings, mirror), x.facts)
}

fn split(g: &mut Generator, x: &PoolValue, axis: usize) -> Result<bool> {
    if x.tensor.shape().dims()[axis].known().is_none() {
        return Ok(false);
    }
    let first = g.dice.below(x.dims[axis] + 1);
    for part in x.tensor.split(&[first, x.dims[axis] - first], axis as i64) {
        g.push(part, x.facts)?;
    }
    Ok(true)
}
