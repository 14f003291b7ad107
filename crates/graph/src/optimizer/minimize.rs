//! From a loss to gradients, and from there to the train op.

use std::panic::Location;

use estimand_tensor::{Error, Result};

use super::Optimizer;
use crate::gradient::{Gradient, gradients_at};
use crate::graph::Graph;
use crate::tensor::Tensor;
use crate::variables::{Role, VarId};

/// The arguments of `Optimizer::minimize`: a loss and the variables to change. A `&Tensor`, the
/// loss, converts into one.
///
/// ```
/// # use estimand_graph::{Graph, Initializer, Minimize, Optimizer};
/// # use estimand_update::Sgd;
/// # let g = Graph::new();
/// let a = g.variable("a", [], Initializer::Constant(1.0));
/// let b = g.variable("b", [], Initializer::Constant(2.0));
/// let loss = (&a * &b).square();
/// // Changes `a` alone.
/// let train = Optimizer::new(Sgd::default(), 0.1).minimize(Minimize::new(&loss).variables([&a]));
/// # g.check().unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Minimize {
    loss: Tensor,
    variables: Option<Vec<Tensor>>,
    global_step: Option<Tensor>,
}

impl Minimize {
    /// Changes every trainable variable that the loss depends on.
    pub fn new(loss: &Tensor) -> Minimize {
        Minimize { loss: loss.clone(), variables: None, global_step: None }
    }

    /// Changes only these variables, which must be trainable. By default all trainable variables
    /// change.
    pub fn variables<'a>(mut self, variables: impl IntoIterator<Item = &'a Tensor>) -> Minimize {
        self.variables = Some(variables.into_iter().cloned().collect());
        self
    }

    /// Counts the updates in an existing variable: the global step of a training, as TensorFlow's
    /// estimators do. By default the optimizer has its own counter.
    ///
    /// Several optimizers of one step may share the variable. A run reads its value from before the
    /// step, so the count rises by one.
    pub fn global_step(mut self, step: &Tensor) -> Minimize {
        self.global_step = Some(step.clone());
        self
    }

    /// The variables to change: the given ones, or all that are trainable.
    fn reads(&self, site: &'static Location<'static>) -> Result<Vec<Tensor>> {
        let graph = self.loss.graph();
        if let Some(variables) = &self.variables {
            return variables.iter().map(|variable| Ok(graph.read(variable_of(graph, variable)?, site))).collect();
        }
        let trainable: Vec<VarId> = {
            let body = graph.body();
            let trainable = body.variables().iter().filter(|(_, spec)| spec.role == Role::Model { trainable: true });
            trainable.map(|(id, _)| id).collect()
        };
        if trainable.is_empty() {
            return Err(Error::config("there is nothing to train: the graph has no trainable variable"));
        }
        Ok(trainable.into_iter().map(|id| graph.read(id, site)).collect())
    }
}

impl From<&Tensor> for Minimize {
    fn from(loss: &Tensor) -> Minimize {
        Minimize::new(loss)
    }
}

/// Returns the variable of a graph that a tensor reads.
pub(super) fn variable_of(graph: &Graph, tensor: &Tensor) -> Result<VarId> {
    if !tensor.graph().same(graph) {
        return Err(Error::config(format!("{} is trained, and belongs to another graph", tensor.describe())));
    }
    let id = tensor.variable();
    id.ok_or_else(|| {
        Error::config(format!("{} is not a variable; expected a variable of the graph", tensor.describe()))
    })
}

impl Optimizer {
    /// Returns the train op, which changes the variables that the loss depends on. Fetch it to run
    /// a step.
    ///
    /// `what` is a loss, for all trainable variables, or a [`Minimize`] with more options. The
    /// result is that of [`compute_gradients`](Optimizer::compute_gradients) and
    /// [`apply_gradients`](Optimizer::apply_gradients).
    #[track_caller]
    pub fn minimize(&self, what: impl Into<Minimize>) -> Tensor {
        let site = Location::caller();
        let mut what = what.into();
        let (graph, step) = (what.loss.graph().clone(), what.global_step.take());
        let pairs = self.pairs(&what, site);
        if what.loss.is_poisoned() || graph.check().is_err() {
            return graph.poison();
        }
        if pairs.iter().all(|(gradient, _)| gradient.values().is_none()) {
            let e = Error::config(format!("the loss {} does not depend on any of the variables", what.loss.describe()));
            return graph
                .fail(e.help("check that the variables are used and that no stop_gradient cuts them off"), site);
        }
        self.apply(&graph, pairs, step.as_ref(), site)
    }

    /// Returns the gradient of a loss for each variable, to be changed and then passed to
    /// [`apply_gradients`](Optimizer::apply_gradients).
    ///
    /// `what` is a loss, for all trainable variables, or a [`Minimize`] that lists variables. A
    /// variable that the loss does not depend on has the gradient [`Gradient::None`]. A table that
    /// was read by a lookup has a gradient of rows. Gradients are not clipped here: the optimizer
    /// clips when it applies them.
    ///
    /// ```
    /// use estimand_engine::Session;
    /// use estimand_graph::{Graph, Initializer, Optimizer};
    /// use estimand_update::Sgd;
    ///
    /// let g = Graph::new();
    /// let w = g.variable("w", [2], Initializer::Zeros);
    /// let loss = (&w * g.constant([3.0f32, -0.5])).sum();
    /// let sgd = Optimizer::new(Sgd::default(), 1.0);
    /// // The sign of each gradient.
    /// let pairs = sgd.compute_gradients(&loss).into_iter();
    /// let signs = pairs.map(|(gradient, variable)| (gradient.map_values(|g| g.sign()), variable));
    /// let train = sgd.apply_gradients(signs.collect::<Vec<_>>());
    /// let mut session = Session::new(&g)?;
    /// session.run(&[&train], &[])?;
    /// assert_eq!(session.value("w")?.as_slice::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn compute_gradients(&self, what: impl Into<Minimize>) -> Vec<(Gradient, Tensor)> {
        let site = Location::caller();
        let what = what.into();
        if what.global_step.is_some() {
            let e = Error::config("gradients do not count steps, and a global step was given to compute_gradients");
            what.loss.graph().record(e.help("give it to ApplyGradients::global_step"), site);
        }
        self.pairs(&what, site)
    }

    /// Returns variables with their gradients. The graph keeps errors.
    fn pairs(&self, what: &Minimize, site: &'static Location<'static>) -> Vec<(Gradient, Tensor)> {
        match self.check().and_then(|()| what.reads(site)) {
            Ok(reads) => {
                let found = gradients_at(&what.loss, &reads.iter().collect::<Vec<_>>(), site);
                found.into_iter().zip(reads).collect()
            }
            Err(error) => {
                what.loss.graph().record(error, site);
                Vec::new()
            }
        }
    }
}
