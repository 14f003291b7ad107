//! Gradients: reverse-mode differentiation over the graph, with one rule for each op.
//!
//! A rule gets the node's inputs, its outputs and the gradients of the outputs. It returns the
//! gradients of the inputs as new nodes. The rule is in the op's file (`op/`). The gradient of a
//! lookup in a variable stays a list of rows. This file walks the graph.

mod backprop;

use std::collections::BTreeMap;
use std::panic::Location;

use estimand_tensor::{Binary, DType, Error, Result, Shape};

use crate::graph::Graph;
use crate::looks::look;
use crate::op::{Concat, Op, Reduction};
use crate::tensor::Tensor;
use crate::value::{NodeId, Value};

pub(crate) use backprop::{Backprop, Found, dense, not_differentiable};

/// The gradient of one tensor.
#[derive(Clone, Debug)]
pub enum Gradient {
    /// The result does not depend on the tensor.
    None,
    /// A gradient of the tensor's shape.
    Dense(Tensor),
    /// Gradients of rows of the first axis. An index may occur several times; its rows are added.
    Rows {
        /// `[n]`
        indices: Tensor,
        /// `[n, ...]`
        values: Tensor,
    },
}

impl Gradient {
    /// The values of the gradient, without their row indices.
    pub fn values(&self) -> Option<&Tensor> {
        match self {
            Gradient::None => None,
            Gradient::Dense(values) | Gradient::Rows { values, .. } => Some(values),
        }
    }

    /// Applies a function to the values. A gradient of rows keeps its row indices, and `None` stays
    /// `None`.
    ///
    /// ```
    /// # use estimand_graph::{Graph, Gradient, Initializer, gradients};
    /// # let g = Graph::new();
    /// let table = g.variable("table", [10, 4], Initializer::Zeros);
    /// let loss = table.gather(&g.constant([3i64, 7])).square().sum();
    /// let clipped = gradients(&loss, &[&table]).remove(0).map_values(|g| g.clip(-1.0, 1.0));
    /// assert!(matches!(clipped, Gradient::Rows { .. }));
    /// ```
    #[must_use]
    pub fn map_values(self, change: impl FnOnce(&Tensor) -> Tensor) -> Gradient {
        match self {
            Gradient::None => Gradient::None,
            Gradient::Dense(values) => Gradient::Dense(change(&values)),
            Gradient::Rows { indices, values } => Gradient::Rows { values: change(&values), indices },
        }
    }

    /// The dense form, for a tensor of the given shape; `None` if there is no gradient.
    #[track_caller]
    pub fn to_dense(&self, shape: &Shape) -> Option<Tensor> {
        match self {
            Gradient::None => None,
            Gradient::Dense(g) => Some(g.clone()),
            Gradient::Rows { indices, values } => {
                Some(values.segments(Reduction::Sum, indices, shape.dims()[0], Location::caller()))
            }
        }
    }
}

/// Adds the gradients of the sum of `y`'s elements with respect to each of `xs`.
///
/// The graph keeps errors, as it does for all ops.
#[track_caller]
pub fn gradients(y: &Tensor, xs: &[&Tensor]) -> Vec<Gradient> {
    gradients_at(y, xs, Location::caller())
}

/// Same as [`gradients`], for the line of another caller.
pub(crate) fn gradients_at(y: &Tensor, xs: &[&Tensor], site: &'static Location<'static>) -> Vec<Gradient> {
    let graph = y.graph();
    let none = || xs.iter().map(|_| Gradient::None).collect();
    if y.is_poisoned() || xs.iter().any(|x| x.is_poisoned()) {
        return none();
    }
    if let Some(x) = xs.iter().find(|x| !x.graph().same(graph)) {
        graph.record(
            Error::config(format!(
                "cannot compute the gradient with respect to {}: it belongs to another graph",
                x.describe()
            )),
            site,
        );
        return none();
    }
    if let Some(effect) = xs.iter().copied().chain([y]).find(|t| !t.has_value()) {
        graph.record(effect.no_value("the gradient"), site);
        return none();
    }
    if !y.dtype().is_float() {
        graph.record(
            Error::dtype(
                Some(DType::F32),
                y.dtype(),
                format!("cannot compute the gradient of {}: it is not a float", y.describe()),
            ),
            site,
        );
        return none();
    }
    match Backward::new(graph, y, xs, site).run() {
        Ok(found) => found,
        Err(error) => {
            graph.record(error, site);
            none()
        }
    }
}

/// One pass from `y` back to the `xs`.
struct Backward<'a> {
    graph: &'a Graph,
    site: &'static Location<'static>,
    xs: &'a [&'a Tensor],
    /// Whether a node is one of `xs`.
    is_wanted: Vec<bool>,
    /// Whether a node lies between one of `xs` and `y`.
    between: Vec<bool>,
    /// The gradient collected so far for each value.
    arrived: BTreeMap<Value, Gradient>,
}

impl<'a> Backward<'a> {
    fn new(graph: &'a Graph, y: &Tensor, xs: &'a [&'a Tensor], site: &'static Location<'static>) -> Backward<'a> {
        let last = y.value().node.0 as usize;
        let mut is_wanted = vec![false; last + 1];
        for x in xs {
            if let Some(wanted) = is_wanted.get_mut(x.value().node.0 as usize) {
                *wanted = true;
            }
        }
        let between = {
            let body = graph.body();
            let mut between = is_wanted.clone();
            for (i, node) in body.nodes()[..=last].iter().enumerate() {
                // An op that stops gradients does not count as between: ops after it need no
                // gradient rule for it.
                between[i] |=
                    !matches!(node.op, Op::StopGradient(_)) && node.inputs.iter().any(|v| between[v.node.0 as usize]);
            }
            between
        };
        let ones = y.ones_like();
        let arrived = BTreeMap::from([(y.value(), Gradient::Dense(ones))]);
        Backward { graph, site, xs, is_wanted, between, arrived }
    }

    fn run(mut self) -> Result<Vec<Gradient>> {
        for id in (0..self.between.len()).rev() {
            look(1);
            if !self.between[id] || (self.is_wanted[id] && self.is_source(id)) {
                continue;
            }
            let node_id = NodeId(id as u32);
            let (op, inputs, n_outputs, name) = {
                let body = self.graph.body();
                let node = body.node(node_id);
                (node.op.clone(), node.inputs.clone(), node.outputs.len(), node.name.clone())
            };
            let value = |output: usize| Value { node: node_id, output: output as u16 };
            let upstream: Vec<Option<Tensor>> = (0..n_outputs)
                .map(|o| {
                    // The body must not be borrowed while `to_dense` adds a node.
                    let shape = self.graph.body().spec(value(o)).shape.clone();
                    self.arrived.get(&value(o)).and_then(|g| g.to_dense(&shape))
                })
                .collect();
            if inputs.is_empty() || upstream.iter().all(Option::is_none) {
                continue;
            }
            let back = Backprop {
                graph: self.graph,
                site: self.site,
                x: inputs.iter().map(|&v| self.graph.tensor(v)).collect(),
                y: (0..n_outputs).map(|o| self.graph.tensor(value(o))).collect(),
                upstream,
                wanted: inputs.iter().map(|v| self.between[v.node.0 as usize]).collect(),
            };
            let found = op
                .rules()
                .gradient(&back)
                .map_err(|e| e.context(format!("in the gradient of `{name}` ({})", op.name())))?;
            for (input, gradient) in inputs.iter().zip(found) {
                if self.between[input.node.0 as usize] {
                    self.add(*input, gradient);
                }
            }
        }
        let arrived = &mut self.arrived;
        Ok(self.xs.iter().map(|x| arrived.get(&x.value()).cloned().unwrap_or(Gradient::None)).collect())
    }

    fn is_source(&self, id: usize) -> bool {
        self.graph.body().nodes()[id].inputs.is_empty()
    }

    /// Adds a gradient to those collected for a value. Rows stay rows as long as all of them are
    /// rows.
    fn add(&mut self, at: Value, gradient: Gradient) {
        let earlier = self.arrived.remove(&at).unwrap_or(Gradient::None);
        let shape = self.graph.body().spec(at).shape.clone();
        let site = self.site;
        let sum = match (earlier, gradient) {
            (Gradient::None, g) | (g, Gradient::None) => g,
            (Gradient::Rows { indices: i, values: v }, Gradient::Rows { indices: j, values: w })
                if i.dtype() == j.dtype() =>
            {
                Gradient::Rows {
                    indices: self.graph.node(Concat { axis: 0 }, &[&i, &j], site),
                    values: self.graph.node(Concat { axis: 0 }, &[&v, &w], site),
                }
            }
            (a, b) => match (a.to_dense(&shape), b.to_dense(&shape)) {
                (Some(a), Some(b)) => Gradient::Dense(a.binary(Binary::Add, &b, site)),
                (Some(g), None) | (None, Some(g)) => Gradient::Dense(g),
                (None, None) => Gradient::None,
            },
        };
        if !matches!(sum, Gradient::None) {
            self.arrived.insert(at, sum);
        }
    }
}
