//! Recurrent networks as TensorFlow's `StatelessWhile`: one function tells whether a step is left,
//! another takes it.
//!
//! The loop passes these values from step to step: the number of the step, a list of the states
//! `h` so far, the states, and what stays the same: the sequence, the kernel, and the other inputs
//! of the op. The functions depend on the cell, its dtype and its number of units, not on rows and
//! steps, so that a reader can compare them with those that we would write ([`ATTRIBUTE`]). If the
//! functions change, we cannot read earlier exports: keep the form that was written before.

use estimand_wire::{DataType, NameAttrList, TensorShapeProto};

use super::function::Function;
use super::recurrent::{Cell, CellFunction, Recurrent, apply};
use super::rules::*;
use super::spelling::{constant, type_list};
use crate::graph::Graph;
use crate::ops::{RecurrentInputs, next_states};
use crate::slots::{KERNEL, Slots};

/// The attribute of a loop that names its cell, as [`describe`] does. TensorFlow ignores it.
pub const ATTRIBUTE: &str = "_estimand_recurrent";

/// The loop inputs before those of the op: the number of the step, and the list.
const N_COUNTERS: usize = 2;

/// Names a cell and its functions: `Lstm Tanh Sigmoid masked`.
pub fn describe(step: &Recurrent) -> String {
    let cell = match step.cell {
        Cell::Simple => "Simple",
        Cell::Lstm => "Lstm",
        Cell::Gru { reset_after: false } => "Gru",
        Cell::Gru { reset_after: true } => "GruResetAfter",
    };
    let masked = if step.masked { " masked" } else { "" };
    let dropped = if step.dropped { " dropped" } else { "" };
    format!("{cell} {:?} {:?}{masked}{dropped}", step.activation, step.recurrent_activation)
}

/// The cell that [`describe`] names.
pub fn described(text: &str) -> Option<Recurrent> {
    let words: Vec<&str> = text.split(' ').collect();
    let (&[cell, activation, recurrent_activation], options) = words.split_first_chunk::<3>()?;
    let cell = match cell {
        "Simple" => Cell::Simple,
        "Lstm" => Cell::Lstm,
        "Gru" => Cell::Gru { reset_after: false },
        "GruResetAfter" => Cell::Gru { reset_after: true },
        _ => return None,
    };
    let function = |name: &str| CellFunction::ALL.into_iter().find(|function| format!("{function:?}") == name);
    let (activation, recurrent_activation) = (function(activation)?, function(recurrent_activation)?);
    let (masked, dropped) = (options.contains(&"masked"), options.contains(&"dropped"));
    let step = Recurrent { cell, activation, recurrent_activation, masked, dropped };
    Some(step).filter(|step| describe(step) == text)
}

/// The inputs of a loop in the order of the op's: the states come first in the loop.
pub fn op_inputs<T: Clone>(step: &Recurrent, loop_inputs: &[T]) -> Option<Vec<T>> {
    let slots = Slots::of(step);
    let of_op = loop_inputs.get(N_COUNTERS..).filter(|rest| rest.len() == slots.n)?;
    let (states, others) = of_op.split_at(step.n_states());
    let mut inputs = others.to_vec();
    inputs.splice(slots.states.start..slots.states.start, states.iter().cloned());
    Some(inputs)
}

/// The positions of the op's inputs in the order of the loop.
fn loop_order(slots: &Slots) -> impl Iterator<Item = usize> {
    let states = slots.states.clone();
    states.clone().chain((0..slots.n).filter(move |at| !states.contains(at)))
}

/// The names of the op's inputs in the functions.
fn argument(slots: &Slots, at: usize) -> String {
    match at {
        0 => "x".to_string(),
        KERNEL => "kernel".to_string(),
        _ if slots.states.contains(&at) => format!("state_{}", at - slots.states.start),
        _ if slots.bias == Some(at) => "bias".to_string(),
        _ if slots.mask == Some(at) => "mask".to_string(),
        _ => "keep".to_string(),
    }
}

/// Writes a recurrent op as a loop.
pub(super) fn spell(step: &Recurrent, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
    let slots = Slots::of(step);
    let owner = def.name.clone();
    let dtype = writer.dtype(node, 0);
    let sequence = writer.spec(node, 0).shape.clone();
    let units = writer.spec(node, KERNEL).shape.dims()[0].known().unwrap_or_default();

    let body = body(step, dtype, units, writer)?;
    let condition = Function { nodes: condition(dtype)?, results: is_left(), arguments: body.arguments.clone() };
    let condition = writer.function("while_cond", condition)?;
    let body = writer.function("while_body", body)?;

    let first = writer.int(&owner, "first", 0)?;
    let n_steps = writer.size(sequence.dims()[1], &owner, "n_steps")?;
    let element = writer.ints(&owner, "element_shape", &mut [-1, units as i64].into_iter())?;
    let list = writer.part(&owner, "list", "TensorListReserve").input(element).input(n_steps);
    let list = writer.add(typed(typed(list, "element_dtype", dtype), "shape_type", DType::I32));

    let mut types = vec![DataType::Int32, DataType::Variant];
    let mut shapes = vec![TensorShapeProto::of([0; 0]), TensorShapeProto::of([0; 0])];
    let mut looped = writer.part(&owner, "while", "StatelessWhile").input(first).input(list);
    for at in loop_order(&slots) {
        let spec = writer.spec(node, at);
        types.push(spec.dtype.into());
        shapes.push(TensorShapeProto::of(spec.shape.dims().iter().map(|d| d.known().map_or(-1, |n| n as i64))));
        looped = looped.input(&def.input[at]);
    }
    let function = |name: String| NameAttrList { name, ..NameAttrList::default() };
    let looped = looped
        .attr("T", types)
        .attr("cond", function(condition))
        .attr("body", function(body))
        .attr("output_shapes", shapes)
        .attr("parallel_iterations", 10i64)
        // TF: its own loops have it. The loop becomes plain nodes, which run faster.
        .attr("_lower_using_switch_merge", true)
        .attr(ATTRIBUTE, describe(step).as_str());
    let looped = writer.add(looped);
    let result = |at: usize| format!("{looped}:{}", N_COUNTERS + at);

    // A list without elements has no other way to know their shape.
    let element = writer.part(&owner, "state_shape", "Shape").input(result(0));
    let element = writer.add(typed(typed(element, "T", dtype), "out_type", DType::I32));
    let stacked = writer.part(&owner, "stack", "TensorListStack").input(format!("{looped}:1")).input(element);
    let stacked = writer.add(typed(stacked, "element_dtype", dtype).attr("num_elements", -1i64));
    let order = writer.ints(&owner, "order", &mut [1, 0, 2].into_iter())?;
    let states = writer.part(&owner, "sequence", "Transpose").input(stacked).input(order);
    let states = writer.add(typed(typed(states, "T", dtype), "Tperm", DType::I32));

    // The values for the gradient are not written: the sequence stands for them.
    let n = step.n_states();
    let input = [states].into_iter().chain((0..n).map(result)).chain([def.input[0].clone()]).collect();
    Ok(NodeDef { op: "IdentityN".into(), input, ..def }.attr("T", type_list(&vec![dtype; n + 2])))
}

fn integer(name: &str, value: i32) -> NodeDef {
    constant(NodeDef::new(name, "Const"), &Array::scalar(value))
}

fn is_left() -> Vec<(String, DataType, String)> {
    vec![("is_left".to_string(), DataType::Bool, "loop/is_left".to_string())]
}

/// The nodes of the condition: the step is below the size of the sequence's second axis.
fn condition(dtype: DType) -> Result<Vec<NodeDef>> {
    let bound = |name: &str, value: i32| -> Result<NodeDef> {
        Ok(constant(NodeDef::new(name, "Const"), &Array::from_vec([1], vec![value])?))
    };
    let shape = NodeDef::new("loop/shape", "Shape").input("x");
    let n_steps = NodeDef::new("loop/n_steps", "StridedSlice")
        .input("loop/shape")
        .input("loop/begin")
        .input("loop/end")
        .input("loop/strides");
    let is_left = NodeDef::new("loop/is_left", "Less").input("t").input("loop/n_steps");
    Ok(vec![
        typed(typed(shape, "T", dtype), "out_type", DType::I32),
        bound("loop/begin", 1)?,
        bound("loop/end", 2)?,
        bound("loop/strides", 1)?,
        typed(typed(n_steps, "T", DType::I32), "Index", DType::I32).attr("shrink_axis_mask", 1i64),
        typed(is_left, "T", DType::I32),
    ])
}

/// The function that takes a step.
fn body(step: &Recurrent, dtype: DType, units: usize, writer: &mut dyn Spelling) -> Result<Function> {
    let slots = Slots::of(step);
    let of_time = [0].into_iter().chain(slots.mask);
    let at_step = |at: usize| format!("loop/{}", argument(&slots, at));
    let dtype_of = |at: usize| if slots.mask == Some(at) { DType::Bool } else { dtype };

    let mut nodes = vec![integer("loop/axis", 1), integer("loop/one", 1)];
    for at in of_time.clone() {
        let now = NodeDef::new(at_step(at), "GatherV2").input(argument(&slots, at)).input("t").input("loop/axis");
        let now = typed(typed(now, "Tparams", dtype_of(at)), "Tindices", DType::I32);
        nodes.push(typed(now, "Taxis", DType::I32));
    }
    let (graph, _, states) = step_graph(step, dtype, units);
    let is_of_time = |at: usize| of_time.clone().any(|of_time| of_time == at);
    let names: Vec<String> =
        (0..slots.n).map(|at| if is_of_time(at) { at_step(at) } else { argument(&slots, at) }).collect();
    let (inner, states) = writer.nodes_of(&graph, &names, &states.iter().collect::<Vec<_>>())?;
    nodes.extend(inner);
    let next = NodeDef::new("loop/next", "AddV2").input("t").input("loop/one");
    nodes.push(typed(next, "T", DType::I32));
    let list = NodeDef::new("loop/list", "TensorListSetItem").input("list").input("t").input(&states[0]);
    nodes.push(typed(list, "element_dtype", dtype));

    let mut arguments = vec![("t".to_string(), DataType::Int32), ("list".to_string(), DataType::Variant)];
    let mut results = vec![
        ("t_out".to_string(), DataType::Int32, "loop/next".to_string()),
        ("list_out".to_string(), DataType::Variant, "loop/list".to_string()),
    ];
    for at in loop_order(&slots) {
        let (name, dtype) = (argument(&slots, at), DataType::from(dtype_of(at)));
        let is_state = slots.states.contains(&at);
        let value = if is_state { states[at - slots.states.start].clone() } else { name.clone() };
        results.push((format!("{name}_out"), dtype, value));
        arguments.push((name, dtype));
    }
    Ok(Function { arguments, nodes, results })
}

/// Builds the graph of one step. Returns a placeholder for each input of the op, without the axis
/// of time, and the states after the step.
pub fn step_graph(step: &Recurrent, dtype: DType, units: usize) -> (Graph, Vec<Tensor>, Vec<Tensor>) {
    let graph = Graph::new();
    let inputs = step_inputs(&graph, step, dtype, units);
    let states = one_step(step, &inputs);
    (graph, inputs, states)
}

/// A placeholder for each input of the op, without the axis of time.
fn step_inputs(graph: &Graph, step: &Recurrent, dtype: DType, units: usize) -> Vec<Tensor> {
    let slots = Slots::of(step);
    let width = step.n_gates() * units;
    let input = |at: usize| {
        let shape: Shape = match at {
            0 => [Dim::BATCH, width.into()].into(),
            KERNEL => [units, width].into(),
            _ if slots.bias == Some(at) => [width].into(),
            _ if slots.mask == Some(at) => [Dim::BATCH].into(),
            _ => [Dim::BATCH, units.into()].into(),
        };
        let dtype = if slots.mask == Some(at) { DType::Bool } else { dtype };
        graph.placeholder(&argument(&slots, at), dtype, shape)
    };
    (0..slots.n).map(input).collect()
}

fn one_step(step: &Recurrent, inputs: &[Tensor]) -> Vec<Tensor> {
    let slots = Slots::of(step);
    let others = RecurrentInputs {
        kernel: inputs[KERNEL].clone(),
        bias: slots.bias.map(|at| inputs[at].clone()),
        states: inputs[slots.states.clone()].to_vec(),
        mask: None,
        keep: slots.keep.map(|at| inputs[at].clone()),
    };
    let counts = slots.mask.map(|at| inputs[at].expand_dims(1));
    let function = |function: CellFunction| move |x: &Tensor| apply(function, x);
    let (activation, recurrent) = (function(step.activation), function(step.recurrent_activation));
    next_states(step.cell, &inputs[0], counts.as_ref(), &others.states, [&activation, &recurrent], &others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names() {
        let cells = [Cell::Simple, Cell::Lstm, Cell::Gru { reset_after: false }, Cell::Gru { reset_after: true }];
        for (cell, activation) in cells.into_iter().flat_map(|cell| CellFunction::ALL.map(|f| (cell, f))) {
            for (masked, dropped) in [(false, false), (true, false), (false, true), (true, true)] {
                let recurrent_activation = CellFunction::Sigmoid;
                let step = Recurrent { cell, activation, recurrent_activation, masked, dropped };
                assert_eq!(described(&describe(&step)), Some(step));
            }
        }
        for text in ["", "Lstm", "Lstm Tanh", "Lstm Tanh tanh", "Lstm Tanh Tanh dropped masked", "Lstm  Tanh Tanh"] {
            assert_eq!(described(text), None, "{text}");
        }
    }

    #[test]
    fn the_inputs_of_a_loop_are_those_of_the_op() {
        let functions = (CellFunction::Tanh, CellFunction::Sigmoid);
        let step = Recurrent {
            cell: Cell::Lstm,
            activation: functions.0,
            recurrent_activation: functions.1,
            masked: true,
            dropped: true,
        };
        let of_loop = ["t", "list", "h", "c", "x", "kernel", "mask", "keep"];
        assert_eq!(op_inputs(&step, &of_loop).unwrap(), ["x", "kernel", "h", "c", "mask", "keep"]);
        assert_eq!(op_inputs(&step, &of_loop[1..]), None);
        let order: Vec<usize> = loop_order(&Slots::of(&step)).collect();
        assert_eq!(order, [2, 3, 0, 1, 4, 5]);
    }
}
