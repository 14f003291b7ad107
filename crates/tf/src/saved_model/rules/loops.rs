//! Loops of recurrent networks that we have written become one op again. Other loops run step by
//! step (`while_loop.rs`).
//!
//! An attribute of the loop names the cell, and its functions must be those that we would write for
//! this cell. So a loop that somebody has changed is read as it is, not as something else.

use estimand_graph::op::Recurrent;
use estimand_graph::op::reading::Reading;
use estimand_graph::op::recurrent_loop::{ATTRIBUTE, described, op_inputs};
use estimand_graph::{Graph, RecurrentInputs, Tensor};
use estimand_tensor::{DType, Dim, Error, Result, Shape};
use estimand_wire::FunctionDef;
use estimand_wire::graph_def::Attr;

use super::super::node_output::{List, NodeOutput};
use super::super::node_reader::{NodeReader, Outputs};
use super::super::numbers::{Number, Numbers};
use super::while_loop;
use crate::graph_def::graph_def;

/// The functions of a loop: the condition and the body.
pub(in super::super) type LoopFunctions = [FunctionDef; 2];

pub(super) fn read_while(call: &mut NodeReader<'_, '_>) -> Outputs {
    match recurrent(call)? {
        Some(outputs) => Ok(outputs),
        None => while_loop::read(call),
    }
}

/// Reads a loop that we have written. `None` if it is another.
fn recurrent(call: &mut NodeReader<'_, '_>) -> Result<Option<Vec<NodeOutput>>> {
    let Some(step) = described(&call.text_or(ATTRIBUTE, "")?) else { return Ok(None) };
    let at: Vec<usize> = (0..call.n_inputs()).collect();
    let Some(order) = op_inputs(&step, &at) else { return Ok(None) };
    if call.integer(0)? != 0 || !matches!(call.item(1)?, NodeOutput::List(List::Reserved { .. })) {
        return Ok(None);
    }
    let inputs = order.iter().map(|&i| call.tensor(i)).collect::<Result<Vec<Tensor>>>()?;
    let (dtype, kernel) = (inputs[0].dtype(), inputs[1].shape());
    let Some(units) = kernel.dims().first().and_then(|dim| dim.known()) else { return Ok(None) };
    let expected = functions(call, step, dtype, units)?;
    let is_ours = |key: &str, expected: &FunctionDef| function(call, key).is_some_and(|found| same(found, expected));
    if !is_ours("cond", &expected[0]) || !is_ours("body", &expected[1]) {
        return Ok(None);
    }
    let results = call.add(step, &inputs.iter().collect::<Vec<_>>())?;
    let n_steps = Numbers::scalar(DType::I32, Number::of(inputs[0].shape().dims()[1]));
    let mut outputs = vec![n_steps.into(), NodeOutput::List(List::Columns(results[0].clone()))];
    outputs.extend(results[1..=step.n_states()].iter().cloned().map(NodeOutput::from));
    // Inputs that stay the same in all steps.
    for i in 2 + step.n_states()..call.n_inputs() {
        outputs.push(call.item(i)?);
    }
    Ok(Some(outputs))
}

fn function<'a>(call: &NodeReader<'_, 'a>, key: &str) -> Option<&'a FunctionDef> {
    match call.def.attr.get(key)?.value.as_ref()? {
        Attr::Func(function) if function.attr.is_empty() => call.reader.nodes.library().function(&function.name),
        _ => None,
    }
}

/// Whether two functions compute the same. Their names may differ.
fn same(a: &FunctionDef, b: &FunctionDef) -> bool {
    let (Some(one), Some(other)) = (&a.signature, &b.signature) else { return false };
    let signatures = one.input_arg == other.input_arg && one.output_arg == other.output_arg;
    signatures && a.node_def == b.node_def && a.ret == b.ret
}

/// The functions that we write for a cell.
fn functions(call: &mut NodeReader<'_, '_>, step: Recurrent, dtype: DType, units: usize) -> Result<LoopFunctions> {
    let key = (step, dtype, units);
    if let Some(known) = call.reader.loops.get(&key) {
        return Ok(known.clone());
    }
    let graph = Graph::new();
    let width = units.checked_mul(step.n_gates()).ok_or_else(|| Error::shape("the cell has too many units"))?;
    let place = |name: &str, dtype: DType, shape: &[Dim]| {
        graph.placeholder(name, dtype, shape.iter().copied().collect::<Shape>())
    };
    let x = place("x", dtype, &[Dim::BATCH, Graph::ANY, width.into()]);
    let time = x.shape().dims()[1];
    let state = |name: &str| place(name, dtype, &[Dim::BATCH, units.into()]);
    let inputs = RecurrentInputs {
        kernel: place("kernel", dtype, &[units.into(), width.into()]),
        bias: step.has_bias().then(|| place("bias", dtype, &[width.into()])),
        states: (0..step.n_states()).map(|i| state(&format!("state_{i}"))).collect(),
        mask: step.masked.then(|| place("mask", DType::Bool, &[Dim::BATCH, time])),
        keep: step.dropped.then(|| state("keep")),
    };
    let y = x.recurrent(step.cell, step.activation, step.recurrent_activation, &inputs).sequence;
    graph.check()?;
    let written = graph_def(&graph.body(), &[y.value()])?;
    let mut found = written.library.map_or_else(Vec::new, |library| library.function);
    found.sort_by_key(|function| function.ret.len());
    let found: LoopFunctions =
        found.try_into().map_err(|_| Error::internal("a loop is written without its functions"))?;
    call.reader.loops.insert(key, found.clone());
    Ok(found)
}
