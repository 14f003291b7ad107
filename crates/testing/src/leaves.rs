//! Leaves: placeholders, variables and constants.

use estimand_graph::{Graph, Initializer, Tensor};
use estimand_tensor::{Array, DType, Dim, Result, Shape};

use super::facts::Facts;
use super::generator::{Generator, PoolValue};

/// Adds a random leaf to the pool.
pub(super) fn any(g: &mut Generator) -> Result<bool> {
    match g.dice.below(10) {
        0..5 => float_feed(g, None).map(|_| true),
        5..8 => {
            let rank = g.dice.below(4);
            let dims: Vec<usize> = (0..rank).map(|_| g.dice.pick(&g.palette.clone())).collect();
            let item = variable(g, &dims)?;
            g.push(item.tensor, item.facts)
        }
        8 => {
            let (shape, dims) = shape(g);
            let item = ints(g, shape, &dims, -5, 9)?;
            g.push(item.tensor, item.facts)
        }
        _ => {
            let (shape, dims) = shape(g);
            let values: Vec<bool> = (0..dims.iter().product()).map(|_| g.dice.chance(50)).collect();
            let tensor = feed(g, DType::Bool, shape, Array::from_vec(&dims, values)?);
            g.push(tensor, Facts::whole(0.0, 1.0))
        }
    }
}

/// A shape of up to three axes, and its sizes in this run. The first axis is often the batch;
/// others are sometimes unknown.
fn shape(g: &mut Generator) -> (Shape, Vec<usize>) {
    let rank = g.dice.pick(&[0, 1, 1, 2, 2, 2, 3, 3]);
    let mut dims = Vec::new();
    let axes = (0..rank)
        .map(|axis| {
            if axis == 0 && g.dice.chance(60) {
                dims.push(g.batch);
                return Dim::BATCH;
            }
            dims.push(g.dice.pick(&g.palette.clone()));
            if g.dice.chance(12) { Graph::ANY } else { Dim::Known(dims[axis]) }
        })
        .collect();
    (axes, dims)
}

/// Adds a float placeholder to the pool, with the given shape and sizes, or random ones.
pub(super) fn float_feed(g: &mut Generator, like: Option<(Shape, Vec<usize>)>) -> Result<PoolValue> {
    let (shape, dims) = match like {
        Some(given) => given,
        None => shape(g),
    };
    let (values, facts) = floats(g, dims.iter().product());
    let tensor = feed(g, DType::F32, shape, Array::from_vec(&dims, values)?);
    g.wrt.push(tensor.clone());
    let item = g.item(tensor, facts)?;
    g.pool.push(item.clone());
    Ok(item)
}

/// Multiples of a quarter, which every executor computes exactly, or reals.
fn floats(g: &mut Generator, n: usize) -> (Vec<f32>, Facts) {
    if g.dice.chance(45) {
        let quarters = (0..n).map(|_| (g.dice.below(17) as f32 - 8.0) / 4.0).collect();
        return (quarters, Facts::exact(-2.0, 2.0, 2));
    }
    (g.dice.reals(n, -2.0, 2.0), Facts::real(-2.0, 2.0))
}

/// A variable, not added to the pool.
pub(super) fn variable(g: &mut Generator, dims: &[usize]) -> Result<PoolValue> {
    g.n_leaves += 1;
    let (values, facts) = floats(g, dims.iter().product());
    let initializer = Initializer::Value(Array::from_vec(dims, values)?);
    let tensor = g.graph.variable(&format!("v{}", g.n_leaves), dims, initializer);
    g.wrt.push(tensor.clone());
    g.item(tensor, facts)
}

/// A float leaf of known sizes: a variable, a placeholder or a constant.
pub(super) fn weights(g: &mut Generator, dims: &[usize]) -> Result<PoolValue> {
    match g.dice.below(4) {
        0 => float_feed(g, Some((Shape::from(dims), dims.to_vec()))),
        1 => {
            let (values, facts) = floats(g, dims.iter().product());
            let tensor = g.graph.constant(Array::from_vec(dims, values)?);
            g.item(tensor, facts)
        }
        _ => variable(g, dims),
    }
}

/// An integer placeholder (i32 or i64) with elements in low..high, not added to the pool.
pub(super) fn ints(g: &mut Generator, shape: Shape, dims: &[usize], low: i64, high: i64) -> Result<PoolValue> {
    let n = dims.iter().product();
    let values: Vec<i64> = (0..n).map(|_| low + g.dice.below((high - low) as usize) as i64).collect();
    let tensor = if g.dice.chance(50) {
        feed(g, DType::I64, shape, Array::from_vec(dims, values)?)
    } else {
        feed(g, DType::I32, shape, Array::from_vec(dims, values.iter().map(|&v| v as i32).collect())?)
    };
    g.item(tensor, Facts::whole(low as f64, (high - 1) as f64))
}

/// Returns the value with clear gaps between its elements, for ops that select some of them. An
/// exact value is returned unchanged.
///
/// It feeds numbers that are far apart, and adds the value on a scale that cannot change their
/// order.
pub(super) fn separated(g: &mut Generator, item: &PoolValue) -> Result<Option<PoolValue>> {
    if item.facts.is_exact() {
        return Ok(Some(item.clone()));
    }
    let feedable = |d: &Dim| d.known().is_some() || *d == Dim::BATCH;
    if !item.tensor.shape().dims().iter().all(feedable) {
        return Ok(None);
    }
    let n = item.len().max(1);
    let gap = 4.0 / n as f64;
    let order = g.dice.permutation(item.len());
    let values = order.into_iter().map(|i| (i as f64 * gap - 2.0) as f32).collect();
    let steps = feed(g, DType::F32, item.tensor.shape().clone(), Array::from_vec(&item.dims, values)?);
    g.wrt.push(steps.clone());
    let scale = 0.2 * gap / item.facts.size().max(1.0);
    let sum = &steps + &item.tensor * scale;
    g.item(sum, Facts::real(-2.5, 2.5)).map(Some)
}

/// A placeholder with its value, not added to the pool.
pub(super) fn feed(g: &mut Generator, dtype: DType, shape: Shape, value: Array) -> Tensor {
    let tensor = g.graph.placeholder(&format!("x{}", g.feeds.len()), dtype, shape);
    g.feeds.push((tensor.clone(), value));
    tensor
}
