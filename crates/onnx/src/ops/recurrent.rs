//! Recurrent networks as `Loop`: its body takes one step, on nodes that are written like others.
//!
//! ONNX has `LSTM` and `GRU` too. They compute the products of the inputs themselves, which our op
//! is given, and know neither masks in the middle of a sequence nor all of Keras' functions. `Scan`
//! would fit, but onnxruntime refuses sequences without steps.

use estimand_graph::op::{Recurrent, recurrent_loop};
use estimand_graph::slots::{KERNEL, Slots};
use estimand_graph::{Body, Tensor, Value};
use estimand_tensor::{DType, Error, Result, Shape, TensorSpec};

use super::At;
use crate::message::{AttributeProto, GraphProto};
use crate::tensor::inner_value_info;
use crate::writer::Writer;

/// (x, kernel, bias, first states, mask, dropout) -> (`h` after every step, the last states, the
/// values kept for a gradient).
pub(super) fn recurrent(at: &mut At<'_, '_, '_, '_>, op: &Recurrent) -> Result<Vec<String>> {
    let slots = Slots::of(op);
    let units = at.dims(KERNEL)[0].known().ok_or_else(|| Error::internal("a recurrent kernel of unknown size"))?;
    let given = (0..slots.n).map(|i| at.x(i)).collect::<Result<Vec<_>>>()?;
    let body = body(at, op, units, &given)?;
    let dims = at.node.outputs[0].shape.dims();
    let n_steps = at.size_number(dims[1])?;
    let is_true = at.scalar(true)?;
    let states = given[slots.states.clone()].iter().map(String::as_str);
    let inputs: Vec<&str> = [n_steps.as_str(), is_true.as_str()].into_iter().chain(states).collect();
    let mut results = at.add_all("Loop", &inputs, vec![AttributeProto::graph("body", body)], slots.states.len() + 1);
    // The sequence comes first here. Its sizes are told: without steps, a loop does not know them.
    let stacked = results.pop().ok_or_else(|| Error::internal("a loop without results"))?;
    let stacked = at.transpose(&stacked, &[1, 0, 2]);
    let shape = at.shape(dims)?;
    let sequence = at.add_with("Reshape", &[&stacked, &shape], vec![AttributeProto::int("allowzero", 1)]);
    results.insert(0, sequence);
    // Nothing reads the values for the gradient.
    results.push(given[0].clone());
    Ok(results)
}

/// The graph of one step: (number of the step, condition, states) -> (condition, states, `h`). It
/// reads the other inputs of the op from outside.
fn body(at: &mut At<'_, '_, '_, '_>, op: &Recurrent, units: usize, given: &[String]) -> Result<GraphProto> {
    let slots = Slots::of(op);
    let owner = at.node.name.clone();
    let (graph, inputs, states) = recurrent_loop::step_graph(op, at.dtype(0), units);
    graph.check()?;
    let body: &Body = &graph.body();
    let mut inner = Writer::new(body, &mut *at.writer.shared);
    let name = |inner: &mut Writer<'_, '_, '_>, role: &str| inner.shared.unused(&format!("{owner}/step/{role}"));
    let [number, condition] = [name(&mut inner, "number"), name(&mut inner, "condition")];
    let scalar = |dtype: DType| TensorSpec { dtype, shape: Shape::scalar() };
    let mut input = vec![inner_value_info(&number, &scalar(DType::I64))];
    input.push(inner_value_info(&condition, &scalar(DType::Bool)));

    for (i, tensor) in inputs.iter().enumerate() {
        let value = if slots.states.contains(&i) {
            let state = name(&mut inner, "state");
            input.push(inner_value_info(&state, tensor.spec()));
            state
        } else if i == 0 || slots.mask == Some(i) {
            let along = vec![AttributeProto::int("axis", 1)];
            inner.add(&format!("{owner}/step"), ("", "Gather"), &[&given[i], &number], along, 1).remove(0)
        } else {
            given[i].clone()
        };
        inner.feed(tensor.value(), &value);
    }
    let fetches: Vec<Value> = states.iter().map(Tensor::value).collect();
    inner.write(&fetches)?;

    let goes_on = name(&mut inner, "goes_on");
    inner.rename(&condition, &goes_on);
    let mut output = vec![inner_value_info(&goes_on, &scalar(DType::Bool))];
    // `h` is an output twice: for the next step, and for the sequence.
    for &fetch in fetches.iter().chain(&fetches[..1]) {
        let result = name(&mut inner, "result");
        inner.output(&result, fetch)?;
        output.push(inner_value_info(&result, body.spec(fetch)));
    }
    Ok(GraphProto { node: inner.nodes, name: format!("{owner}/step"), initializer: Vec::new(), input, output })
}
