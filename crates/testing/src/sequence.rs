//! Recurrent cells over sequences with a known number of steps. TensorFlow gets them unrolled.

use estimand_graph::RecurrentInputs;
use estimand_graph::op::{Cell, CellFunction};
use estimand_tensor::{Array, DType, Dim, Result, Shape};

use super::facts::Facts;
use super::generator::{Generator, PoolValue};
use super::leaves;

/// Finds a sequence in the pool, or creates one: [batch, time, inputs].
fn find_sequence(g: &mut Generator) -> Result<PoolValue> {
    let feedable = |d: Dim| d.known().is_some() || d == Dim::BATCH;
    let known = |d: &Dim| d.known().is_some();
    let fits = |i: &PoolValue| {
        let dims = i.tensor.shape().dims();
        i.is_float() && dims.len() == 3 && feedable(dims[0]) && dims[1..].iter().all(known) && i.facts.size() <= 8.0
    };
    if let Some(found) = g.find(fits) {
        return Ok(found);
    }
    let (time, width, n) = (g.dice.between(1, 5), g.dice.between(1, 3), g.batch);
    leaves::float_feed(g, Some((Shape::from([Dim::BATCH, time.into(), width.into()]), vec![n, time, width])))
}

pub(super) fn recurrent(g: &mut Generator) -> Result<bool> {
    let x = find_sequence(g)?;
    let rows = x.tensor.shape().dims()[0];
    let cell =
        g.dice.pick(&[Cell::Simple, Cell::Lstm, Cell::Gru { reset_after: true }, Cell::Gru { reset_after: false }]);
    let (gates, n_states) = match cell {
        Cell::Simple => (1, 1),
        Cell::Lstm => (4, 2),
        Cell::Gru { .. } => (3, 1),
    };
    let units = g.dice.between(1, 3);
    if x.dims[1] > 8 || !g.affords(x.dims[0] * x.dims[1] * units * gates) {
        return Ok(false);
    }
    let kernel = leaves::weights(g, &[x.dims[2], gates * units])?.tensor;
    let projected = x.tensor.matmul(&kernel) * (1.0 / (x.dims[2] as f64 * x.facts.size()).max(1.0));
    let mut states = Vec::new();
    for _ in 0..n_states {
        states.push(match g.dice.chance(40) {
            true => leaves::float_feed(g, Some((Shape::from([rows, units.into()]), vec![x.dims[0], units])))?.tensor,
            false => g.graph.fill(Shape::from([rows, units.into()]), DType::F32, 0.0),
        });
    }
    let bias = match cell {
        Cell::Gru { reset_after: true } => Some(leaves::weights(g, &[gates * units])?.tensor),
        _ => None,
    };
    let n_steps = x.dims[0] * x.dims[1];
    let mask = match g.dice.chance(50) {
        true => {
            let values = (0..n_steps).map(|_| g.dice.chance(60)).collect();
            let value = Array::from_vec([x.dims[0], x.dims[1]], values)?;
            Some(leaves::feed(g, DType::Bool, Shape::from([rows, x.dims[1].into()]), value))
        }
        false => None,
    };
    let kernel = leaves::weights(g, &[units, gates * units])?.tensor * 0.5;
    let inputs = RecurrentInputs { kernel, bias, states, mask, keep: None };
    let activation = g.dice.pick(&[CellFunction::Tanh, CellFunction::Softsign]);
    let outputs = projected.recurrent(cell, activation, CellFunction::Sigmoid, &inputs);
    // Initial states are at most 2.
    if g.dice.chance(40) {
        let last = outputs.states.len() - 1;
        let size = 2.0 + x.dims[1] as f64;
        return g.push(outputs.states[last].clone(), Facts::real(-size, size));
    }
    g.push(outputs.sequence, Facts::real(-2.0, 2.0))
}
