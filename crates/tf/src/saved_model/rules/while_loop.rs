//! Loops of TensorFlow 2, such as those of Keras' recurrent layers. The condition and the step are
//! read into graphs of their own and compiled. The loop is one op, which runs them
//! (`step_loop.rs`).
//!
//! The number of steps may depend on data. A step must keep the shapes of its arguments. It may
//! read and write lists of tensors, and the lengths of lists must follow from shapes.

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_graph::custom::CustomOp;
use estimand_graph::op::reading::Reading;
use estimand_graph::{Executor, Graph, State, Tensor, Value, Variables};
use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_wire::FunctionDef;

use super::super::inline::Inlined;
use super::super::node_output::{List, NodeOutput};
use super::super::node_reader::{NodeReader, Outputs};
use super::super::nodes::Nodes;
use super::super::step::StepArguments;
use super::super::step_loop::{Part, StepLoop};
use super::body::{Argument, argument, check_depth, part, reader, refuse_variables, values_of};

/// A step that was read.
struct Step {
    graph: Graph,
    placeholders: StepArguments,
    arguments: Vec<Argument>,
    /// The arguments that it changes, and their next values.
    next: Vec<(usize, Value)>,
    /// The elements that it writes: the list, the index, the item.
    writes: Vec<(usize, Tensor, Tensor)>,
}

pub(super) fn read(call: &mut NodeReader<'_, '_>) -> Outputs {
    check_depth(call)?;
    let step = read_step(call)?;
    let lists = lists(call, &step)?;
    let values = values_of(&step.arguments);
    let value_at = |value: usize| values.iter().position(|(i, _)| *i == value).unwrap_or_default();
    let list_at = |list: usize| lists.iter().position(|(i, _)| *i == list).unwrap_or_default();
    let mut written: Vec<usize> = step.writes.iter().map(|(list, ..)| *list).collect();
    written.dedup();
    let items = step.writes.iter().flat_map(|(_, index, item)| [index.value(), item.value()]);
    let fetches: Vec<Value> = step.next.iter().map(|(_, value)| *value).chain(items).collect();

    let cpu = Cpu::with_threads(1);
    let elements = step.placeholders.elements.iter();
    let compiled = StepLoop {
        condition: read_condition(call, &cpu, &step.arguments)?,
        body: part(&cpu, &step.graph, &fetches, &step.placeholders, &values)?,
        state: cpu.place(&Variables::default(), 0).map(Arc::<dyn State>::from)?,
        n_values: values.len(),
        elements: elements.map(|element| (list_at(element.list), value_at(element.index))).collect(),
        next: step.next.iter().map(|(i, _)| value_at(*i)).collect(),
        writes: step.writes.iter().map(|(list, ..)| list_at(*list)).collect(),
        written: written.iter().map(|&list| list_at(list)).collect(),
        most_steps: call.reader.limits.most_loop_steps(),
    };
    let specs = step.next.iter().map(|(i, _)| values[value_at(*i)].1.spec().clone());
    let specs: Vec<TensorSpec> = specs.chain(written.iter().map(|&i| lists[list_at(i)].1.spec().clone())).collect();
    let mut outputs = (0..call.n_inputs()).map(|i| call.item(i)).collect::<Result<Vec<_>>>()?;
    if specs.is_empty() {
        return Ok(outputs);
    }
    let inputs: Vec<&Tensor> = values.iter().chain(&lists).map(|(_, tensor)| tensor).collect();
    let op = CustomOp::new(&call.def.name, specs, move |arrays: &[Array]| compiled.run(arrays));
    let mut results = call.add(op, &inputs)?.into_iter();
    for ((i, _), tensor) in step.next.iter().zip(&mut results) {
        outputs[*i] = tensor.into();
    }
    for (i, tensor) in written.into_iter().zip(results) {
        outputs[i] = NodeOutput::List(List::Rows(tensor));
    }
    Ok(outputs)
}

/// The names of a function's arguments and results in its inlined body, which are checked.
fn inlined<'a>(
    call: &NodeReader<'_, 'a>,
    key: &str,
    n_results: usize,
) -> Result<(Inlined<'a>, Vec<String>, Vec<String>)> {
    let library = call.reader.nodes.library();
    let function = library.function_of(call.def, key)?;
    let body = Inlined::body(function, library, &call.def.name)?;
    for (found, n) in [(body.1.len(), call.n_inputs()), (body.2.len(), n_results)] {
        if found != n {
            let name = name_of(function);
            return Err(Error::config(format!("the function `{name}` has {found} arguments or results; expected {n}")));
        }
    }
    Ok(body)
}

fn name_of(function: &FunctionDef) -> &str {
    function.signature.as_ref().map_or("", |signature| &signature.name)
}

/// Reads the step into a graph of its own.
fn read_step(call: &mut NodeReader<'_, '_>) -> Result<Step> {
    let (inlined, names, results) = inlined(call, "body", call.n_inputs())?;
    let nodes = Nodes::new(&inlined, call.reader.nodes.library())?;
    let names = names.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let results = results.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let is_fixed = |i: usize| nodes.origin(results[i]) == names[i];
    let arguments = (0..names.len()).map(|i| argument(call, i, is_fixed(i))).collect::<Result<Vec<_>>>()?;
    let mut reader = reader(call, &nodes, &arguments, &names)?;
    reader.read(&results)?;
    let (mut next, mut writes) = (Vec::new(), Vec::new());
    for (i, argument) in arguments.iter().enumerate().filter(|(i, _)| !is_fixed(*i)) {
        let place = |e: Error| e.context(format!("in argument {i} of the loop"));
        match argument {
            Argument::Given(given) => {
                return Err(place(Error::unsupported(format!("a step changes {}", given.kind()))));
            }
            Argument::Value(value) => {
                let tensor = reader.tensor(results[i]).map_err(place)?;
                check_same(value, &tensor).map_err(place)?;
                next.push((i, tensor.value()));
            }
            Argument::List { .. } => match reader.item(results[i]).map_err(place)? {
                NodeOutput::List(List::Argument { at, writes: items }) if at == i => {
                    writes.extend(items.into_iter().map(|(index, item)| (i, index, item)));
                }
                other => {
                    return Err(place(Error::unsupported(format!("a step replaces a list by {}", other.kind()))));
                }
            },
        }
    }
    refuse_variables(&reader)?;
    (call.reader.repeated_bytes, call.reader.n_evaluated) = (reader.repeated_bytes, reader.n_evaluated);
    let placeholders = reader.step.take().unwrap_or_default();
    Ok(Step { graph: reader.graph, placeholders, arguments, next, writes })
}

/// The rows of the lists that a step uses. Lists without elements begin with zeros.
fn lists(call: &mut NodeReader<'_, '_>, step: &Step) -> Result<Vec<(usize, Tensor)>> {
    let mut lists = Vec::new();
    for (i, argument) in step.arguments.iter().enumerate() {
        let Argument::List { rows, n, dtype } = argument else { continue };
        let item = step.writes.iter().find(|(list, ..)| *list == i).map(|(.., item)| item);
        let is_read = step.placeholders.elements.iter().any(|element| element.list == i);
        match (rows, item) {
            (Some(rows), item) if item.is_some() || is_read => lists.push((i, rows.clone())),
            (None, Some(item)) => {
                let mut shape = Shape::from([call.reader.size(n)?]);
                shape.0.extend(step.placeholders.outside(&step.graph, call.graph(), item.shape())?.0);
                let zero = call.graph().constant(Array::zeros(*dtype, [])?);
                lists.push((i, zero.broadcast_to(shape)));
            }
            _ => {}
        }
    }
    call.graph().check()?;
    Ok(lists)
}

/// Reads the condition: one boolean.
fn read_condition(call: &mut NodeReader<'_, '_>, cpu: &Cpu, arguments: &[Argument]) -> Result<Part> {
    let (inlined, names, results) = inlined(call, "cond", 1)?;
    let nodes = Nodes::new(&inlined, call.reader.nodes.library())?;
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
    part(cpu, &reader.graph, &[tensor.value()], &step, &values_of(arguments))
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
