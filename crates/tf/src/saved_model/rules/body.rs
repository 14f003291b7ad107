//! Functions that are read into graphs of their own: the steps and conditions of loops, and the
//! branches of conditionals.

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_engine::Compiled;
use estimand_graph::op::reading::Reading;
use estimand_graph::{Graph, NodeId, Program, Tensor, Value};
use estimand_tensor::{DType, Error, Result, Shape, TensorSpec};

use super::super::node_output::{KnownValue, List, NodeOutput};
use super::super::node_reader::NodeReader;
use super::super::nodes::{Nodes, Reference};
use super::super::numbers::{MOST, Number};
use super::super::reader::Reader;
use super::super::step::StepArguments;
use super::super::step_loop::{Part, Source};

/// How deep loops and conditionals may be nested.
const DEEPEST: usize = 8;

/// What a function gets as an argument.
pub(super) enum Argument {
    /// The same in all steps, and known when the graph is read.
    Given(NodeOutput),
    Value(Tensor),
    List {
        rows: Option<Tensor>,
        n: Number,
        dtype: DType,
    },
}

/// Refuses a node inside of too many others.
pub(super) fn check_depth(call: &NodeReader<'_, '_>) -> Result<()> {
    match call.reader.n_loops >= DEEPEST {
        true => Err(Error::unsupported(format!("loops and conditionals are nested {DEEPEST} deep; the limit"))),
        false => Ok(()),
    }
}

/// The arguments that are tensors, each with its position.
pub(super) fn values_of(arguments: &[Argument]) -> Vec<(usize, Tensor)> {
    arguments.iter().enumerate().filter_map(value_of).collect()
}

fn value_of((i, argument): (usize, &Argument)) -> Option<(usize, Tensor)> {
    match argument {
        Argument::Value(tensor) => Some((i, tensor.clone())),
        _ => None,
    }
}

/// An argument, which is known to stay the same if it is `fixed`.
pub(super) fn argument(call: &mut NodeReader<'_, '_>, i: usize, fixed: bool) -> Result<Argument> {
    let place = |e: Error| e.context(format!("in input {i}"));
    let tensor = match call.item(i)? {
        NodeOutput::Table(table) => return Ok(Argument::Given(NodeOutput::Table(table))),
        NodeOutput::List(List::Reserved { n, dtype }) => return Ok(Argument::List { rows: None, n, dtype }),
        NodeOutput::List(list) => {
            let rows = match list {
                List::Rows(rows) => rows,
                List::Columns(columns) => columns.transpose(&[1, 0, 2]),
                _ => return Err(place(Error::unsupported("a list of a loop is given to a function inside it"))),
            };
            let (n, dtype) = (Number::of(rows.shape().dims()[0]), rows.dtype());
            return Ok(Argument::List { rows: Some(rows), n, dtype });
        }
        NodeOutput::Variable(_) => call.variable_value(i)?,
        NodeOutput::Saved(name) => return Ok(Argument::Given(NodeOutput::Saved(name))),
        NodeOutput::AxesTo(_) => return Err(place(Error::unsupported("axes are given to it"))),
        NodeOutput::Bits(_) => return Err(place(Error::unsupported("the bits of floats are given to it"))),
        NodeOutput::Value(known) => {
            let KnownValue { array, numbers, .. } = *known;
            let array = match numbers {
                Some(numbers) => numbers.array()?,
                None => array.filter(|array| array.len() <= MOST),
            };
            match array.filter(|_| fixed) {
                Some(array) => return Ok(Argument::Given(array.into())),
                None => call.tensor(i)?,
            }
        }
    };
    if tensor.dtype() == DType::Str {
        return Err(place(Error::unsupported("strings are given to it").help("split the text before it")));
    }
    Ok(Argument::Value(tensor))
}

/// A reader of a function, with placeholders for its arguments.
pub(super) fn reader<'s, 'a: 's>(
    call: &NodeReader<'_, 'a>,
    nodes: &'s Nodes<'s>,
    arguments: &[Argument],
    names: &[Reference],
) -> Result<Reader<'s>> {
    let around = &*call.reader;
    let mut reader = Reader::new(nodes, around.surroundings, around.limits);
    (reader.repeated_bytes, reader.n_evaluated) = (around.repeated_bytes, around.n_evaluated);
    reader.n_loops = around.n_loops + 1;
    let mut step = StepArguments::default();
    for (at, (argument, &reference)) in arguments.iter().zip(names).enumerate() {
        match argument {
            Argument::Given(given) => reader.give(reference, given.clone()),
            Argument::Value(tensor) => {
                let placeholder = step.placeholder(&reader.graph, &nodes.def(reference.node).name, tensor.spec())?;
                reader.give(reference, placeholder.clone());
                step.values.insert(at, placeholder);
            }
            Argument::List { rows, dtype, .. } => {
                reader.give(reference, NodeOutput::List(List::Argument { at, writes: Vec::new() }));
                if let Some(rows) = rows {
                    let shape: Shape = rows.shape().dims()[1..].iter().copied().collect();
                    step.lists.insert(at, TensorSpec { dtype: *dtype, shape });
                }
            }
        }
    }
    reader.step = Some(step);
    Ok(reader)
}

pub(super) fn refuse_variables(step: &Reader<'_>) -> Result<()> {
    match step.variables.first() {
        None => Ok(()),
        Some((name, _)) => Err(Error::unsupported(format!("the function has a variable of its own, `{name}`"))
            .help("create the variable outside of the function")),
    }
}

/// Compiles the graph of a function.
pub(super) fn part(
    cpu: &Cpu,
    graph: &Graph,
    fetches: &[Value],
    step: &StepArguments,
    values: &[(usize, Tensor)],
) -> Result<Part> {
    graph.check()?;
    let program = Program::new(Arc::new(graph.body().clone()), fetches)?;
    let source = |id: &NodeId| {
        let value = step.values.iter().find(|(_, tensor)| tensor.value().node == *id).map(|(&i, _)| i);
        let value = value.and_then(|i| values.iter().position(|(at, _)| *at == i)).map(Source::Value);
        let element = || step.elements.iter().position(|element| element.tensor.value().node == *id);
        value.or_else(|| element().map(Source::Element)).ok_or_else(|| Error::internal("a step with an unknown feed"))
    };
    let feeds = program.placeholders().iter().map(source).collect::<Result<_>>()?;
    Ok(Part { compiled: Compiled::new(cpu, program)?, feeds })
}
