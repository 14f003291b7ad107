//! Recurrent networks over sequences, and their gradient through all steps.
//!
//! TensorFlow has no such ops. A few steps are written one by one: those of
//! [`Tensor::recurrent_unrolled`], in a separate graph that is written in place of the op. Many
//! steps, or a number that is known only at run time, are written as a loop (`recurrent_loop`).
//! Our op keeps values that only its gradient reads. TensorFlow's version passes the sequence there
//! instead, and derives the gradient from the steps again, which must be known.

pub use estimand_tensor::cpu::recurrent::{Cell, CellFunction, Recurrent};

use super::recurrent_loop;
use super::rules::*;
use crate::gradient::gradients;
use crate::graph::Graph;
use crate::ops::{RecurrentInputs, RecurrentOutputs};
use crate::slots::{KERNEL, Slots};

/// The largest number of steps that are written one by one.
const MAX_UNROLLED: usize = 32;

/// (x `[batch, time, gates * units]`, recurrent kernel, its bias if the cell has one, initial
/// states, mask, dropout) -> (`h` after every step, the last states, the values kept for the
/// gradient).
impl OpRules for Recurrent {
    fn name(&self) -> &'static str {
        match self.cell {
            Cell::Simple => "SimpleRnn",
            Cell::Lstm => "Lstm",
            Cell::Gru { .. } => "Gru",
        }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        results(self, x)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        sizes_fit(self, x)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let slots = Slots::of(self);
        if slots.keep.is_some_and(|keep| back.wanted[keep]) {
            return Err(not_differentiable("the dropout mask of a recurrent network's states"));
        }
        let last = self.n_states();
        if back.upstream[last + 1].is_some() {
            return Err(not_differentiable("an intermediate value of a recurrent network"));
        }
        let mut inputs = back.x.clone();
        inputs[0] = back.y[last + 1].clone();
        inputs.push(back.y[0].clone());
        inputs.extend((0..=last).map(|output| back.dy(output)));
        let first = back.node(RecurrentGrad(*self), &inputs.iter().collect::<Vec<&Tensor>>());
        let mut found = vec![Gradient::None; back.x.len()];
        for (output, at) in slots.differentiated().enumerate() {
            found[at] = Gradient::Dense(back.graph.output(&first, output as u16));
        }
        Ok(found)
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(operations(self, operands.x[0], operands.x[1]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        if writer.spec(node, 0).shape.dims()[1].known().is_none_or(|n| n > MAX_UNROLLED) {
            return recurrent_loop::spell(self, def, node, writer);
        }
        let graph = Graph::new();
        let inputs = stand_ins(&graph, node, self, writer);
        let RecurrentOutputs { sequence, states } = unrolled(self, &inputs);
        let results: Vec<&Tensor> = [&sequence].into_iter().chain(&states).chain([&inputs[0]]).collect();
        writer.in_place(def, &graph, &results)
    }
}

/// (the kept values, then the other inputs of `Recurrent`, `h` after every step, its gradient, the
/// gradients of the last states) -> the gradients of x, kernel, bias and initial states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecurrentGrad(pub Recurrent);

impl OpRules for RecurrentGrad {
    fn name(&self) -> &'static str {
        match self.0.cell {
            Cell::Simple => "SimpleRnnGrad",
            Cell::Lstm => "LstmGrad",
            Cell::Gru { .. } => "GruGrad",
        }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        gradient_results(&self.0, x)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        sizes_fit(&self.0, x)
    }

    fn gradient(&self, _back: &Backprop<'_>) -> Result<Found> {
        Err(not_differentiable("the gradient of a recurrent network"))
    }

    /// Two products instead of one: for the gradients of the states and of the kernel.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(operations(&self.0, operands.y[0], operands.y[1]).saturating_mul(2))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let shape = &writer.spec(node, 0).shape;
        if shape.dims()[1].known().is_none() {
            let name = self.0.name();
            let text = format!("the gradient of {name} over a number of steps that is known only at run time");
            return Err(Error::unsupported(format!("{text} cannot be written for TensorFlow yet"))
                .help("pad the sequence to a size that is known, or export the model for predictions only"));
        }
        let (step, graph) = (&self.0, Graph::new());
        let slots = Slots::of(step);
        let inputs = stand_ins(&graph, node, step, writer);
        let RecurrentOutputs { sequence, states } = unrolled(step, &inputs);
        let results = [&sequence].into_iter().chain(&states);
        let parts = results.zip(&inputs[slots.upstream(step)]).map(|(y, dy)| (y * dy).sum());
        let total = parts.reduce(|a, b| a + b).ok_or_else(|| Error::internal("a cell without a state"))?;
        let sources: Vec<&Tensor> = slots.differentiated().map(|at| &inputs[at]).collect();
        let found = gradients(&total, &sources);
        let dense = found.iter().zip(&sources).map(|(g, x)| g.to_dense(x.shape()).unwrap_or_else(|| x.zeros_like()));
        let dense: Vec<Tensor> = dense.collect();
        writer.in_place(def, &graph, &dense.iter().collect::<Vec<_>>())
    }
}

/// Whether the sizes of the inputs of a recurrent op, or of its gradient, agree.
fn sizes_fit(step: &Recurrent, x: &[&[usize]]) -> bool {
    let (batch, time, units) = (x[0][0], x[0][1], x[KERNEL][0]);
    let slots = Slots::of(step);
    let is_gradient = x.len() > slots.n;
    let width = if is_gradient { step.n_kept() } else { step.n_gates() } * units;
    let sequences = if is_gradient { slots.sequence()..slots.upstream(step).start + 1 } else { 0..0 };
    let last = if is_gradient { slots.upstream(step).start + 1..x.len() } else { 0..0 };
    x[0] == [batch, time, width]
        && slots.states.chain(slots.keep).chain(last).all(|at| x[at] == [batch, units])
        && slots.mask.is_none_or(|mask| x[mask] == [batch, time])
        && sequences.into_iter().all(|at| x[at] == [batch, time, units])
}

/// The operations: the product with the recurrent kernel, its sum with the input's product, and a
/// function and a product for each gate.
fn operations(step: &Recurrent, x: &[usize], kernel: &[usize]) -> u64 {
    let products = if step.cell == (Cell::Gru { reset_after: false }) { 2 } else { 1 };
    product(&[2 * products * kernel[0], count(x)]).saturating_add(product(&[3, count(x)]))
}

/// The sizes that determine all others.
struct Sizes {
    batch: Dim,
    time: Dim,
    units: usize,
}

/// Checks the inputs that a recurrent op and its gradient share. Of the first input only rows and
/// steps are read.
fn common(step: &Recurrent, x: &[&TensorSpec]) -> Result<Sizes> {
    let slots = Slots::of(step);
    accepts(x[0].dtype.is_float(), x[0].dtype)?;
    expect_rank(3, x[0], "sequence")?;
    expect_rank(2, x[KERNEL], "recurrent kernel")?;
    let (batch, time) = (x[0].shape.dims()[0], x[0].shape.dims()[1]);
    let (units, width) = (x[KERNEL].shape.dims()[0].known(), x[KERNEL].shape.dims()[1].known());
    let Some(units) = units.filter(|&n| n > 0 && width == n.checked_mul(step.n_gates())) else {
        let expected = format!("expected [units, {} * units]", step.n_gates());
        return Err(Error::shape(format!("the recurrent kernel is {}, {expected}", x[KERNEL])));
    };
    let floats = |what: &str, at: usize, shape: Shape| {
        same_dtype(x[0], x[at])?;
        expect_equal(what, &x[at].shape, &shape)
    };
    same_dtype(x[0], x[KERNEL])?;
    if let Some(bias) = slots.bias {
        floats("recurrent bias", bias, Shape::from([step.n_gates() * units]))?;
    }
    for state in slots.states {
        floats("first state", state, Shape::from([batch, units.into()]))?;
    }
    if let Some(mask) = slots.mask {
        expect_dtype(DType::Bool, x[mask], "mask")?;
        expect_equal("mask", &x[mask].shape, &Shape::from([batch, time]))?;
    }
    if let Some(keep) = slots.keep {
        floats("dropout of the state", keep, Shape::from([batch, units.into()]))?;
    }
    Ok(Sizes { batch, time, units })
}

fn expect_inputs(x: &[&TensorSpec], expected: usize) -> Result<()> {
    match x.len() == expected {
        true => Ok(()),
        false => Err(Error::config(format!("the cell was given {} inputs; expected {expected}", x.len()))),
    }
}

/// The results of a recurrent op: the states of all steps, the last states, and the kept values.
pub(crate) fn results(step: &Recurrent, x: &[&TensorSpec]) -> Result<Specs> {
    expect_inputs(x, Slots::of(step).n)?;
    let Sizes { batch, time, units } = common(step, x)?;
    expect_equal("sequence", &x[0].shape, &Shape::from([batch, time, (step.n_gates() * units).into()]))?;
    let sequence = |n: usize| Shape::from([batch, time, (n * units).into()]);
    let states = (0..step.n_states()).map(|_| Shape::from([batch, units.into()]));
    let shapes = [sequence(1)].into_iter().chain(states).chain([sequence(step.n_kept())]);
    Ok(shapes.map(|shape| TensorSpec { dtype: x[0].dtype, shape }).collect())
}

fn gradient_results(step: &Recurrent, x: &[&TensorSpec]) -> Result<Specs> {
    let slots = Slots::of(step);
    let upstream = slots.upstream(step);
    expect_inputs(x, upstream.end)?;
    let Sizes { batch, time, units } = common(step, x)?;
    for at in [slots.sequence(), upstream.start] {
        same_dtype(x[0], x[at])?;
        expect_equal("sequence of states", &x[at].shape, &Shape::from([batch, time, units.into()]))?;
    }
    for at in upstream.skip(1) {
        same_dtype(x[0], x[at])?;
        expect_equal("gradient of a state", &x[at].shape, &Shape::from([batch, units.into()]))?;
    }
    let shape = |at: usize| match at {
        0 => Shape::from([batch, time, (step.n_gates() * units).into()]),
        _ => x[at].shape.clone(),
    };
    Ok(slots.differentiated().map(|at| TensorSpec { dtype: x[0].dtype, shape: shape(at) }).collect())
}

/// Adds a placeholder for each input of a node to the graph of the steps.
fn stand_ins(graph: &Graph, node: &Node, step: &Recurrent, writer: &mut dyn Spelling) -> Vec<Tensor> {
    let units = writer.spec(node, KERNEL).shape.dims()[0].known().unwrap_or_default();
    let stand_in = |at: usize| {
        let TensorSpec { dtype, mut shape } = writer.spec(node, at).clone();
        if at == 0 {
            shape.0[2] = Dim::Known(step.n_gates() * units);
        }
        // Every size that is known only at run time becomes the batch size of this graph.
        let shape: Shape = shape.dims().iter().map(|d| d.known().map_or(Dim::BATCH, Dim::Known)).collect();
        graph.placeholder(&format!("input_{at}"), dtype, shape)
    };
    (0..node.inputs.len()).map(stand_in).collect()
}

/// Unrolls the steps on placeholders for the inputs of a recurrent op.
fn unrolled(step: &Recurrent, inputs: &[Tensor]) -> RecurrentOutputs {
    let slots = Slots::of(step);
    let at = |slot: Option<usize>| slot.map(|at| inputs[at].clone());
    let others = RecurrentInputs {
        kernel: inputs[KERNEL].clone(),
        bias: at(slots.bias),
        states: inputs[slots.states].to_vec(),
        mask: at(slots.mask),
        keep: at(slots.keep),
    };
    let function = |function: CellFunction| move |x: &Tensor| apply(function, x);
    let (activation, recurrent) = (function(step.activation), function(step.recurrent_activation));
    inputs[0].recurrent_unrolled(step.cell, &activation, &recurrent, &others)
}

pub(super) fn apply(function: CellFunction, x: &Tensor) -> Tensor {
    match function {
        CellFunction::Linear => x.clone(),
        CellFunction::Relu => x.relu(),
        CellFunction::Relu6 => x.relu6(),
        CellFunction::Elu => x.elu(),
        CellFunction::Selu => x.selu(),
        CellFunction::Softplus => x.softplus(),
        CellFunction::Softsign => x.softsign(),
        CellFunction::Sigmoid => x.sigmoid(),
        CellFunction::HardSigmoid => (x * 0.2 + 0.5).clip(0.0, 1.0),
        CellFunction::Tanh => x.tanh(),
        CellFunction::Exponential => x.exp(),
    }
}
