//! What the GraphDef writer writes, the reader reads: random programs and their gradients compute
//! the same bits after both.
//!
//! Where one op is several nodes after reading, sums may round differently.

use std::collections::BTreeMap;

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_graph::{Executor, Graph, Op, Tensor, Value};
use estimand_tensor::{Array, Dim, Error, Result, Shape};
use estimand_testing::{RandomProgram, difference, generate, generate_preprocessing};
use estimand_tf::graph_def::{Names, graph_def};
use estimand_tf::saved_model::read_graph_def;

/// The values of some tensors after a graph was written and read.
fn read_back(program: &RandomProgram, tensors: &[Tensor]) -> Result<Vec<Array>> {
    let body = program.graph.body();
    let names = Names::new(&body);
    let values: Vec<Value> = tensors.iter().map(Tensor::value).collect();
    let written = graph_def(&body, &values)?;
    let present: Vec<&str> = written.node.iter().map(|n| n.name.as_str()).collect();
    let feeds: BTreeMap<String, &(Tensor, Array)> =
        program.feeds.iter().map(|feed| (names.tensor(feed.0.value()), feed)).collect();
    let inputs: Vec<(&str, Shape)> = feeds
        .iter()
        .filter(|(name, _)| present.contains(&name.as_str()))
        .map(|(name, (tensor, _))| (name.as_str(), open_shape(tensor)))
        .collect();
    let outputs: Vec<String> = tensors.iter().map(|t| names.tensor(t.value())).collect();
    let read = read_graph_def(&written, &inputs, &outputs.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut session = Session::with(&read.graph, Cpu::with_threads(1), 0)?;
    let held: Vec<String> = read.graph.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    for name in held {
        let id = body.variables().find(&name)?;
        session.set_value(&name, &body.variables().initial(id, 0)?)?;
    }
    let fetches: Vec<&Tensor> = outputs.iter().map(|name| &read.outputs[name]).collect();
    let fed: Vec<(&Tensor, Array)> =
        inputs.iter().map(|(name, _)| (&read.inputs[*name], feeds[*name].1.clone())).collect();
    session.run(&fetches, &fed)
}

/// The shape of a placeholder as someone who declares it would say it.
fn open_shape(tensor: &Tensor) -> Shape {
    let size = |&dim: &Dim| match dim {
        Dim::Known(_) | Dim::BATCH => dim,
        Dim::Sym(_) => Graph::ANY,
    };
    tensor.shape().dims().iter().map(size).collect()
}

/// Whether a graph has nodes that read or draw what another graph of the same nodes does not.
fn is_repeatable(graph: &Graph) -> bool {
    !graph.body().nodes().iter().any(|node| matches!(node.op, Op::Random(_)))
}

/// Whether a graph has an op that is written as the steps it takes.
fn has_sequences(graph: &Graph) -> bool {
    graph.body().nodes().iter().any(|node| matches!(node.op, Op::Recurrent(_)))
}

fn check(seed: u64, with_gradients: bool) -> Result<()> {
    let program = generate(seed)?;
    let mut tensors = program.fetches.clone();
    if with_gradients {
        tensors.extend(program.differentiate()?.into_iter().flatten());
    }
    if !is_repeatable(&program.graph) {
        return Ok(());
    }
    let expected = program.run(&Cpu::with_threads(1) as &dyn Executor, &tensors, true)?;
    let found = read_back(&program, &tensors)?;
    for ((tensor, a), b) in tensors.iter().zip(&expected).zip(&found) {
        if has_sequences(&program.graph) {
            match difference(a, b)? {
                Some(why) => return Err(Error::internal(format!("`{}`: {why}", tensor.name()))),
                None => continue,
            }
        }
        if a.dims() != b.dims() || a.dtype() != b.dtype() || a.bytes() != b.bytes() {
            return Err(Error::internal(format!("`{}` is {b:?} after reading, {a:?} before", tensor.name())));
        }
    }
    Ok(())
}

#[test]
fn random_programs_come_back() {
    for seed in 0..400 {
        check(seed, false).unwrap_or_else(|e| panic!("program {seed}: {e}"));
    }
}

#[test]
fn gradients_come_back() {
    for seed in 0..200 {
        check(seed, true).unwrap_or_else(|e| panic!("program {seed}: {e}"));
    }
}

/// Lookups are other nodes after reading, so sums may round differently.
#[test]
fn preprocessing_comes_back() {
    for seed in 0..200 {
        let check = || -> Result<()> {
            let program = generate_preprocessing(seed)?;
            let mut tensors = program.fetches.clone();
            tensors.extend(program.differentiate()?.into_iter().flatten());
            let expected = program.run(&Cpu::with_threads(1) as &dyn Executor, &tensors, true)?;
            let found = read_back(&program, &tensors)?;
            for ((tensor, a), b) in tensors.iter().zip(&expected).zip(&found) {
                if let Some(why) = difference(a, b)? {
                    return Err(Error::internal(format!("`{}`: {why}", tensor.name())));
                }
            }
            Ok(())
        };
        check().unwrap_or_else(|e| panic!("program {seed}: {e}"));
    }
}
