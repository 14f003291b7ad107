//! The contract of merges.

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, Mode, Result};

use super::differences::check_gradients;
use super::{ensure, ensure_same, rows};
use crate::merge::Merge;

/// Checks a merge with inputs of at least two rows each: rows, gradients, same bits, no variables.
pub fn check_merge(merge: &dyn Merge, inputs: &[Array]) -> Result<()> {
    check(merge, inputs).map_err(|e| e.context(format!("in the merge contract, for {merge:?}")))
}

/// A merge applied to placeholders.
fn applied(merge: &dyn Merge, inputs: &[Array]) -> (Graph, Vec<Tensor>, Tensor) {
    let graph = Graph::with_mode(Mode::Train);
    let x: Vec<Tensor> = inputs.iter().enumerate().map(|(i, input)| rows(&graph, &format!("x{i}"), input)).collect();
    let y = merge.apply(&x.iter().collect::<Vec<_>>());
    (graph, x, y)
}

fn check(merge: &dyn Merge, inputs: &[Array]) -> Result<()> {
    let (graph, x, y) = applied(merge, inputs);
    graph.check()?;
    ensure(graph.body().variables().is_empty(), || "the merge has variables; expected none".to_string())?;
    let feeds = |inputs: &[Array]| x.iter().zip(inputs.to_vec()).collect::<Vec<(&Tensor, Array)>>();

    let (mut one, mut three) =
        (Session::with(&graph, Cpu::with_threads(1), 3)?, Session::with(&graph, Cpu::with_threads(3), 4)?);
    let whole = one.run(&[&y], &feeds(inputs))?.remove(0);
    ensure_same("the result on 1 and 3 threads", &whole, &three.run(&[&y], &feeds(inputs))?.remove(0))?;
    let n = inputs.first().and_then(|input| input.dims().first().copied()).unwrap_or(0);
    ensure(whole.dims().first() == Some(&n), || format!("{n} rows gave a result of the shape {:?}", whole.dims()))?;
    for row in 0..n {
        let alone = inputs.iter().map(|input| input.rows(row..row + 1)).collect::<Result<Vec<Array>>>()?;
        let alone = one.run(&[&y], &feeds(&alone))?.remove(0);
        ensure_same(&format!("row {row} alone and in its batch"), &alone, &whole.rows(row..row + 1)?)?;
    }

    // Every element has a different weight, so that no two gradients agree by chance.
    let slope = (graph.range(y.channels(), y.dtype()) * 1.3 + 0.4).cos();
    let total = (&y - slope).square().sum();
    let mut feeds = feeds(inputs);
    for _ in 0..feeds.len() {
        // Finite differences are taken of the first fed tensor.
        check_gradients(&graph, &total, &feeds)?;
        feeds.rotate_left(1);
    }
    Ok(())
}
