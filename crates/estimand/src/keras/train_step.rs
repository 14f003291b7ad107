//! `train_step`: a training step of one's own in place of the model's loss and optimizer.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use estimand_graph::{Graph, Optimizer, Role, Tensor};
use estimand_nn::layer::AsInputs;
use estimand_tensor::{Error, Result};

use super::model::Model;
use super::programs::Programs;
use super::replay::{Flags, Replay};

/// A function that adds a training step to a graph.
pub(super) type StepFn = Arc<dyn Fn(&TrainStep<'_>) -> Result<Trained> + Send + Sync>;

/// What a training step is made from: the batch, and the layers of the model.
///
/// All calls of a layer use the same weights.
pub struct TrainStep<'a> {
    pub(super) graph: &'a Graph,
    pub(super) inputs: &'a [Tensor],
    pub(super) labels: &'a [Tensor],
    pub(super) weights: Option<&'a Tensor>,
    pub(super) optimizer: &'a Optimizer,
    pub(super) replay: RefCell<Replay<'a>>,
    pub(super) flags: Flags,
}

impl TrainStep<'_> {
    /// The graph of the step, for constants and random numbers.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// The inputs of the model, in order.
    pub fn inputs(&self) -> &[Tensor] {
        self.inputs
    }

    /// The labels of the batch, in order. There may be none.
    pub fn labels(&self) -> &[Tensor] {
        self.labels
    }

    /// The weights of the rows, if the data has them.
    pub fn weights(&self) -> Option<&Tensor> {
        self.weights
    }

    /// The optimizer of `compile`.
    pub fn optimizer(&self) -> &Optimizer {
        self.optimizer
    }

    /// Applies the whole model: Keras' `self(x, training=True)`.
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let outputs = self.replay.borrow_mut().call(self.graph, inputs, self.flags);
        self.graph.check()?;
        Ok(outputs)
    }

    /// Applies one layer or inner model, by its name in the model.
    pub fn layer(&self, name: &str, inputs: &dyn AsInputs) -> Result<Tensor> {
        let inputs = inputs.as_inputs();
        let outputs = self.replay.borrow_mut().call_layer(name, self.graph, inputs.tensors(), self.flags)?;
        self.graph.check()?;
        outputs.into_iter().next().ok_or_else(|| Error::internal("a layer without outputs"))
    }

    /// The trainable weights of a layer or inner model that was applied before, for
    /// [`Minimize::variables`](estimand_graph::Minimize::variables).
    pub fn variables(&self, layer: &str) -> Result<Vec<Tensor>> {
        let names = self.replay.borrow().variables_of(layer)?;
        if names.is_empty() {
            return Err(Error::config(format!("layer `{layer}` has no weights yet"))
                .help("apply it with TrainStep::layer or TrainStep::call first"));
        }
        let is_trainable = |name: &String| {
            let body = self.graph.body();
            let variables = body.variables();
            let id = variables.get(name);
            id.is_some_and(|id| variables.spec(id).role == Role::Model { trainable: true })
        };
        Ok(names.iter().filter(|name| is_trainable(name)).map(|name| self.graph.get_variable(name)).collect())
    }
}

impl fmt::Debug for TrainStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrainStep").field("inputs", &self.inputs).field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// The result of a training step: what it changes, and what it logs.
#[derive(Clone, Debug)]
#[must_use]
pub struct Trained {
    pub(super) train: Vec<Tensor>,
    pub(super) logs: Vec<(String, Tensor)>,
}

impl Trained {
    /// Runs a train op, such as the result of `Optimizer::minimize`.
    pub fn new(train: &Tensor) -> Trained {
        Trained { train: vec![train.clone()], logs: Vec::new() }
    }

    /// Runs another train op in the same step. Each sees the weights from before the step.
    pub fn and(mut self, train: &Tensor) -> Trained {
        self.train.push(train.clone());
        self
    }

    /// Logs a scalar. The logs of an epoch have the mean over its rows.
    pub fn log(mut self, name: &str, value: &Tensor) -> Trained {
        self.logs.push((name.to_string(), value.clone()));
        self
    }
}

impl Model {
    /// Replaces the training step of `fit` and `train_on_batch`: Keras' `train_step`. Evaluations
    /// go on using the losses and metrics of `compile`.
    ///
    /// ```
    /// use estimand::keras::{Compile, Fit, Sequential, TrainStep, Trained};
    /// use estimand::prelude::*;
    ///
    /// let mut model = Sequential::new().input([1]).add(Dense::new(1)).build()?;
    /// model.compile(Compile::new(Optimizer::keras(Adam::default(), 0.1), "mse"))?;
    /// model.set_train_step(|step: &TrainStep<'_>| {
    ///     let predictions = step.call(step.inputs())?;
    ///     // A loss that no name stands for.
    ///     let loss = (&predictions[0] - step.labels()[0].expand_dims(-1)).abs().sqrt().mean();
    ///     Ok(Trained::new(&step.optimizer().minimize(&loss)).log("root_error", &loss))
    /// });
    /// let (x, y) = (Array::from([0f32, 1.0, 2.0]), Array::from([1f32, 3.0, 5.0]));
    /// let history = model.fit(Fit::new((&x, &y)).epochs(100).verbose(0))?;
    /// assert!(history["root_error"][99] < history["root_error"][0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_train_step(&mut self, step: impl Fn(&TrainStep<'_>) -> Result<Trained> + Send + Sync + 'static) {
        self.train_step = Some(Arc::new(step));
        self.programs = Programs::default();
    }
}
