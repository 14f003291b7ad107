//! Recurrent ops, which TensorFlow does not have: written step by step, for a number of steps that is known.
//!
//! The steps are those of [`Tensor::recurrent_unrolled`], in a graph of their own that is written in the op's place. What our op keeps for
//! its gradient only its gradient reads; TensorFlow's copy hands the sequence itself on there, and the gradient is derived from
//! the steps anew.

use estimand_tensor::{DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;

use super::{Writer, needed, type_list};
use crate::gradient::gradients;
use crate::graph::{Body, Graph, Node, NodeId, Value};
use crate::op::{CellFunction, Op, Recurrent};
use crate::ops::{RecurrentInputs, RecurrentOutputs};
use crate::slots::{KERNEL, Slots};
use crate::tensor::Tensor;

fn apply(function: CellFunction, x: &Tensor) -> Tensor {
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

/// Placeholders for a recurrent op's inputs, and the steps.
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

impl Writer<'_> {
    pub(super) fn recurrent(&mut self, def: NodeDef, node: &Node, step: &Recurrent) -> Result<NodeDef> {
        let graph = Graph::new();
        let inputs = self.stand_ins(&graph, node, step)?;
        let RecurrentOutputs { sequence, states } = unrolled(step, &inputs);
        let results: Vec<&Tensor> = [&sequence].into_iter().chain(&states).chain([&inputs[0]]).collect();
        self.in_place(def, &graph, &results)
    }

    pub(super) fn recurrent_gradient(&mut self, def: NodeDef, node: &Node, step: &Recurrent) -> Result<NodeDef> {
        let graph = Graph::new();
        let slots = Slots::of(step);
        let inputs = self.stand_ins(&graph, node, step)?;
        let RecurrentOutputs { sequence, states } = unrolled(step, &inputs);
        let results = [&sequence].into_iter().chain(&states);
        let parts = results.zip(&inputs[slots.upstream(step)]).map(|(y, dy)| (y * dy).sum());
        let total = parts.reduce(|a, b| a + b).ok_or_else(|| Error::internal("a cell without a state"))?;
        let sources: Vec<&Tensor> = slots.differentiated().map(|at| &inputs[at]).collect();
        let found = gradients(&total, &sources);
        let dense = found.iter().zip(&sources).map(|(g, x)| g.to_dense(x.shape()).unwrap_or_else(|| x.zeros_like()));
        let dense: Vec<Tensor> = dense.collect();
        self.in_place(def, &graph, &dense.iter().collect::<Vec<_>>())
    }

    /// A placeholder for each input of a node, in a graph of the steps.
    fn stand_ins(&self, graph: &Graph, node: &Node, step: &Recurrent) -> Result<Vec<Tensor>> {
        let shape = &self.spec(node, 0).shape;
        if shape.dims()[1].known().is_none() {
            let text = format!("a recurrent network over {shape}, whose number of steps only the run tells");
            return Err(Error::unsupported(format!("{text}, cannot be written for TensorFlow yet"))
                .help("declare the size of the placeholder's time axis"));
        }
        let units = self.spec(node, KERNEL).shape.dims()[0].known().unwrap_or_default();
        let stand_in = |at: usize| {
            let TensorSpec { dtype, mut shape } = self.spec(node, at).clone();
            if at == 0 {
                shape.0[2] = Dim::Known(step.n_gates() * units);
            }
            // Whatever a size that only the run tells is called outside, here it is the batch.
            let shape: Shape = shape.dims().iter().map(|d| d.known().map_or(Dim::BATCH, Dim::Known)).collect();
            graph.placeholder(&format!("input_{at}"), dtype, shape)
        };
        Ok((0..node.inputs.len()).map(stand_in).collect())
    }

    /// Writes another graph in a node's place. Its placeholders, in order, are the node's inputs, and the node has its results.
    fn in_place(&mut self, def: NodeDef, graph: &Graph, results: &[&Tensor]) -> Result<NodeDef> {
        graph.check()?;
        let body: &Body = &graph.body();
        let values: Vec<Value> = results.iter().map(|t| t.value()).collect();
        let mut inner = Writer::new(body);
        inner.names = self.names.inside(body, &def.name, &def.input);
        let is_input = |id: &NodeId| body.node(*id).op == Op::Placeholder;
        inner.placeholders = (0..body.nodes().len()).map(|i| NodeId(i as u32)).filter(is_input).collect();
        for id in needed(body, &values)? {
            inner.node(id)?;
        }
        let inputs = values.iter().map(|&value| inner.names.tensor(value)).collect();
        let Writer { names, written, .. } = inner;
        self.names.take_all(names);
        self.written.extend(written);
        let dtypes: Vec<DType> = results.iter().map(|t| t.dtype()).collect();
        Ok(NodeDef { op: "IdentityN".into(), input: inputs, ..def }.attr("T", type_list(&dtypes)))
    }
}
