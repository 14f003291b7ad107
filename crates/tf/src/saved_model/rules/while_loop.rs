//! Loops of TensorFlow 2, such as those of Keras' recurrent layers. The condition and the step are
//! read into graphs of their own and compiled. The loop is one op, which runs them
//! (`step_loop.rs`).
//!
//! The number of steps may depend on data. A step must keep the shapes of its arguments. It may
//! read and write lists of tensors, and the lengths of lists must follow from shapes.

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_engine::Compiled;
use estimand_graph::custom::CustomOp;
use estimand_graph::op::reading::Reading;
use estimand_graph::{Executor, Program, State, Tensor, Value, Variables};
use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_wire::FunctionDef;

use super::super::inline::Inlined;
use super::super::node_output::{KnownValue, List, NodeOutput};
use super::super::node_reader::{NodeReader, Outputs};
use super::super::nodes::{Nodes, Reference};
use super::super::numbers::{MOST, Number};
use super::super::reader::Reader;
use super::super::step::StepArguments;
use super::super::step_loop::{Part, Source, StepLoop};

/// How deep loops may be nested.
const DEEPEST: usize = 8;

/// What a loop gets as an argument.
enum Argument {
    /// The same in all steps, and known when the graph is read.
    Given(NodeOutput),
    Value(Tensor),
    List {
        rows: Option<Tensor>,
        n: Number,
        dtype: DType,
    },
}

pub(super) fn read(call: &mut NodeReader<'_, '_>) -> Outputs {
    if call.reader.n_loops >= DEEPEST {
        return Err(Error::unsupported(format!("loops are nested {DEEPEST} deep; the limit")));
    }
    let library = call.reader.nodes.library();
    let functions = [library.function_of(call.def, "cond")?, library.function_of(call.def, "body")?];
    let [condition, body] = functions.map(|function| Inlined::body(function, library, &call.def.name));
    let ((condition, condition_names, condition_results), (body, names, results)) = (condition?, body?);
    let n = call.n_inputs();
    for (function, found, n) in [
        (functions[0], condition_names.len(), n),
        (functions[0], condition_results.len(), 1),
        (functions[1], names.len(), n),
        (functions[1], results.len(), n),
    ] {
        if found != n {
            let name = name_of(function);
            return Err(Error::config(format!("the function `{name}` has {found} arguments or results; expected {n}")));
        }
    }
    let nodes = Nodes::new(&body, library)?;
    let names = names.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let results = results.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let arguments = (0..n).map(|i| argument(call, i, nodes.origin(results[i]) == names[i]));
    let arguments = arguments.collect::<Result<Vec<_>>>()?;

    let mut step = reader(call, &nodes, &arguments, &names)?;
    step.read(&results)?;
    let (mut next, mut fetches, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for (i, argument) in arguments.iter().enumerate() {
        let place = |e: Error| e.context(format!("in argument {i} of the loop"));
        match argument {
            _ if nodes.origin(results[i]) == names[i] => {}
            Argument::Given(given) => {
                return Err(place(Error::unsupported(format!("a step changes {}", given.kind()))));
            }
            Argument::Value(value) => {
                let tensor = step.tensor(results[i]).map_err(place)?;
                check_same(value, &tensor).map_err(place)?;
                fetches.push(tensor.value());
                next.push(i);
            }
            Argument::List { .. } => match step.item(results[i]).map_err(place)? {
                NodeOutput::List(List::Argument { at, writes: items }) if at == i => {
                    writes.extend(items.into_iter().map(|(index, item)| (i, index, item)));
                }
                other => {
                    return Err(place(Error::unsupported(format!("a step replaces a list by {}", other.kind()))));
                }
            },
        }
    }
    fetches.extend(writes.iter().flat_map(|(_, index, item)| [index.value(), item.value()]));
    refuse_variables(&step)?;
    let (repeated, evaluated) = (step.repeated_bytes, step.n_evaluated);
    let (graph, step) = (step.graph.clone(), step.step.take().unwrap_or_default());
    (call.reader.repeated_bytes, call.reader.n_evaluated) = (repeated, evaluated);

    // The rows of the lists that steps use.
    let mut lists: Vec<(usize, Tensor)> = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        let Argument::List { rows, n, dtype } = argument else { continue };
        let item = writes.iter().find(|(list, ..)| *list == i).map(|(.., item)| item);
        let is_read = step.elements.iter().any(|element| element.list == i);
        match (rows, item) {
            (Some(rows), Some(_)) => lists.push((i, rows.clone())),
            (Some(rows), None) if is_read => lists.push((i, rows.clone())),
            (None, Some(item)) => {
                let mut shape = Shape::from([call.reader.size(n)?]);
                shape.0.extend(step.outside(&graph, call.graph(), item.shape())?.0);
                let zero = call.graph().constant(Array::zeros(*dtype, [])?);
                lists.push((i, zero.broadcast_to(shape)));
            }
            _ => {}
        }
    }
    call.graph().check()?;

    let values: Vec<(usize, Tensor)> = arguments.iter().enumerate().filter_map(value_of).collect();
    let cpu = Cpu::with_threads(1);
    let at = |list: usize| lists.iter().position(|(i, _)| *i == list).unwrap_or_default();
    let value_at = |value: usize| values.iter().position(|(i, _)| *i == value).unwrap_or_default();
    let changed: Vec<usize> = {
        let mut changed: Vec<usize> = writes.iter().map(|(list, ..)| *list).collect();
        changed.dedup();
        changed
    };
    let compiled = StepLoop {
        condition: read_condition(call, &cpu, &condition, (&condition_names, &condition_results), &arguments)?,
        body: part(&cpu, &graph, &fetches, &step, &values)?,
        state: cpu.place(&Variables::default(), 0).map(Arc::<dyn State>::from)?,
        n_values: values.len(),
        elements: step.elements.iter().map(|element| (at(element.list), value_at(element.index))).collect(),
        next: next.iter().map(|&i| value_at(i)).collect(),
        writes: writes.iter().map(|(list, ..)| at(*list)).collect(),
        written: changed.iter().map(|&list| at(list)).collect(),
        most_steps: call.reader.limits.most_loop_steps(),
    };
    let specs = next.iter().map(|&i| values[value_at(i)].1.spec().clone());
    let specs: Vec<TensorSpec> = specs.chain(changed.iter().map(|&i| lists[at(i)].1.spec().clone())).collect();
    let mut outputs = (0..n).map(|i| call.item(i)).collect::<Result<Vec<_>>>()?;
    if specs.is_empty() {
        return Ok(outputs);
    }
    let inputs: Vec<&Tensor> = values.iter().chain(&lists).map(|(_, tensor)| tensor).collect();
    let op = CustomOp::new(&call.def.name, specs, move |arrays: &[Array]| compiled.run(arrays));
    let results = call.add(op, &inputs)?;
    for (&i, tensor) in next.iter().zip(&results) {
        outputs[i] = tensor.clone().into();
    }
    for (&i, tensor) in changed.iter().zip(&results[next.len()..]) {
        outputs[i] = NodeOutput::List(List::Rows(tensor.clone()));
    }
    Ok(outputs)
}

fn name_of(function: &FunctionDef) -> &str {
    function.signature.as_ref().map_or("", |signature| &signature.name)
}

fn value_of((i, argument): (usize, &Argument)) -> Option<(usize, Tensor)> {
    match argument {
        Argument::Value(tensor) => Some((i, tensor.clone())),
        _ => None,
    }
}

/// An argument, which all steps pass on unchanged if it is `fixed`.
fn argument(call: &mut NodeReader<'_, '_>, i: usize, fixed: bool) -> Result<Argument> {
    let place = |e: Error| e.context(format!("in input {i}"));
    let tensor = match call.item(i)? {
        NodeOutput::Table(table) => return Ok(Argument::Given(NodeOutput::Table(table))),
        NodeOutput::List(List::Reserved { n, dtype }) => return Ok(Argument::List { rows: None, n, dtype }),
        NodeOutput::List(list) => {
            let rows = match list {
                List::Rows(rows) => rows,
                List::Columns(columns) => columns.transpose(&[1, 0, 2]),
                _ => return Err(place(Error::unsupported("a list of a loop is given to a loop inside it"))),
            };
            let (n, dtype) = (Number::of(rows.shape().dims()[0]), rows.dtype());
            return Ok(Argument::List { rows: Some(rows), n, dtype });
        }
        NodeOutput::Variable(_) => call.variable_value(i)?,
        NodeOutput::Saved(name) => return Ok(Argument::Given(NodeOutput::Saved(name))),
        NodeOutput::AxesTo(_) => return Err(place(Error::unsupported("axes are given to a loop"))),
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
        return Err(place(Error::unsupported("strings are given to a loop").help("split the text before the loop")));
    }
    Ok(Argument::Value(tensor))
}

/// A reader of a function, with placeholders for its arguments.
fn reader<'s, 'a: 's>(
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

fn refuse_variables(step: &Reader<'_>) -> Result<()> {
    match step.variables.first() {
        None => Ok(()),
        Some((name, _)) => Err(Error::unsupported(format!("a step of the loop has a variable of its own, `{name}`"))
            .help("create the variable outside of the loop")),
    }
}

/// Reads the condition: one boolean.
fn read_condition(
    call: &mut NodeReader<'_, '_>,
    cpu: &Cpu,
    inlined: &Inlined<'_>,
    (names, results): (&[String], &[String]),
    arguments: &[Argument],
) -> Result<Part> {
    let nodes = Nodes::new(inlined, call.reader.nodes.library())?;
    let names = names.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let results = results.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let mut reader = reader(call, &nodes, arguments, &names)?;
    reader.read(&results)?;
    let place = |e: Error| e.context("in the condition of the loop");
    let tensor = reader.tensor(results[0]).map_err(place)?;
    if tensor.dtype() != DType::Bool || tensor.rank() != 0 {
        return Err(place(Error::unsupported(format!("the result is {}; expected one boolean", tensor.spec()))));
    }
    refuse_variables(&reader)?;
    let step = reader.step.take().unwrap_or_default();
    if !step.elements.is_empty() {
        return Err(place(Error::unsupported("the condition reads a list")));
    }
    let values: Vec<(usize, Tensor)> = arguments.iter().enumerate().filter_map(value_of).collect();
    part(cpu, &reader.graph, &[tensor.value()], &step, &values)
}

/// Compiles a graph of a step.
fn part(
    cpu: &Cpu,
    graph: &estimand_graph::Graph,
    fetches: &[Value],
    step: &StepArguments,
    values: &[(usize, Tensor)],
) -> Result<Part> {
    graph.check()?;
    let program = Program::new(Arc::new(graph.body().clone()), fetches)?;
    let source = |id: &estimand_graph::NodeId| {
        let value = step.values.iter().find(|(_, tensor)| tensor.value().node == *id).map(|(&i, _)| i);
        let value = value.and_then(|i| values.iter().position(|(at, _)| *at == i)).map(Source::Value);
        let element = || step.elements.iter().position(|element| element.tensor.value().node == *id);
        value.or_else(|| element().map(Source::Element)).ok_or_else(|| Error::internal("a step with an unknown feed"))
    };
    let feeds = program.placeholders().iter().map(source).collect::<Result<_>>()?;
    Ok(Part { compiled: Compiled::new(cpu, program)?, feeds })
}

/// Checks that a step keeps the dtype and the known sizes of an argument.
fn check_same(before: &Tensor, after: &Tensor) -> Result<()> {
    let fits = |(a, b): (&Dim, &Dim)| a.known().is_none() || b.known().is_none() || a == b;
    let same = before.rank() == after.rank() && before.shape().dims().iter().zip(after.shape().dims()).all(fits);
    if same && before.dtype() == after.dtype() {
        return Ok(());
    }
    Err(Error::unsupported(format!("a step changes it from {} to {}", before.spec(), after.spec()))
        .help("only loops whose steps keep the shapes of their arguments can be read"))
}
