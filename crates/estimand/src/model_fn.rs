//! What a model function is given: symbols for features and labels, and what to build for.

use std::fmt;
use std::sync::Arc;

use estimand_data::specs_of;
use estimand_graph::{Graph, Init, RaggedTensor, Role, Tensor};
use estimand_tensor::{Batch, BatchSpec, DType, Dim, Error, FeatureSpec, Mode, Result, Shape, nearest_name};
use indexmap::IndexMap;

use crate::{EstimatorSpec, HParams, RunConfig};

/// TensorFlow's name for the number of training steps.
pub(crate) const GLOBAL_STEP: &str = "global_step";

/// Builds a model: called once for each mode, with a graph of its own.
pub type ModelFn = Arc<dyn Fn(&ModelFnContext<'_>) -> Result<EstimatorSpec> + Send + Sync>;

/// What a batch looks like: the features, labels and weights that a model is built for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InputSpec {
    pub(crate) features: BatchSpec,
    pub(crate) labels: BatchSpec,
    pub(crate) weights: bool,
}

impl InputSpec {
    pub(crate) fn of(batch: &Batch) -> InputSpec {
        let (features, labels) = specs_of(batch);
        InputSpec { features, labels, weights: batch.weights().is_some() }
    }
}

/// A feature or label in the graph.
#[derive(Clone, Debug)]
pub enum Input {
    /// The same number of values in every row.
    Dense(Tensor),
    /// Rows of different length.
    Ragged(RaggedTensor),
}

/// Features or labels by name.
#[derive(Clone, Debug)]
pub struct Inputs {
    graph: Graph,
    what: &'static str,
    inputs: IndexMap<String, Input>,
}

impl Inputs {
    fn new(graph: &Graph, what: &'static str, spec: &BatchSpec) -> Inputs {
        let place = |(name, spec): (&String, &FeatureSpec)| {
            let shown = if name.is_empty() { what } else { name };
            let input = match spec {
                FeatureSpec::Dense { dtype, dims, .. } | FeatureSpec::Padded { dtype, dims, .. } => {
                    let dims = dims.iter().map(|&n| Dim::from(n));
                    let padded = matches!(spec, FeatureSpec::Padded { .. }).then_some(Graph::ANY);
                    let shape: Shape = std::iter::once(Dim::BATCH).chain(padded).chain(dims).collect();
                    Input::Dense(graph.placeholder(shown, *dtype, shape))
                }
                FeatureSpec::Ragged { dtype } => Input::Ragged(graph.ragged_placeholder(shown, *dtype)),
            };
            (name.clone(), input)
        };
        Inputs { graph: graph.clone(), what, inputs: spec.iter().map(place).collect() }
    }

    /// The names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inputs.keys().map(String::as_str)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Input)> {
        self.inputs.iter().map(|(name, input)| (name.as_str(), input))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// One by name, if it is there.
    pub fn get(&self, name: &str) -> Option<&Input> {
        self.inputs.get(name)
    }

    /// A dense one by name.
    #[track_caller]
    pub fn dense(&self, name: &str) -> Tensor {
        match self.inputs.get(name) {
            Some(Input::Dense(tensor)) => tensor.clone(),
            Some(Input::Ragged(_)) => {
                let error = Error::shape(format!("{} `{name}` has rows of different length", self.what));
                self.graph.error(error.help("take it with `ragged`"))
            }
            None => self.graph.error(self.unknown(name)),
        }
    }

    /// A ragged one by name.
    #[track_caller]
    pub fn ragged(&self, name: &str) -> RaggedTensor {
        match self.inputs.get(name) {
            Some(Input::Ragged(ragged)) => ragged.clone(),
            Some(Input::Dense(dense)) => RaggedTensor::from_dense(dense),
            None => {
                let poison = self.graph.error(self.unknown(name));
                RaggedTensor { values: poison.clone(), row_splits: poison }
            }
        }
    }

    /// The only one there is, whatever its name.
    #[track_caller]
    pub fn single(&self) -> Tensor {
        match self.inputs.len() {
            1 => self.dense(self.inputs.get_index(0).map_or("", |(name, _)| name)),
            n => {
                let names: Vec<_> = self.names().collect();
                let message = format!("the only {} was asked for, and there are {n}: {}", self.what, names.join(", "));
                self.graph.error(Error::config(message).help("take one by its name"))
            }
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let error = Error::config(format!("there is no {} `{name}`", self.what));
        match nearest_name(name, self.names()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None if self.is_empty() => error.help(format!("the input has no {}s", self.what)),
            None => error.help(format!("there are {}", self.names().collect::<Vec<_>>().join(", "))),
        }
    }
}

/// What a model function builds with.
///
/// ```
/// use estimand::prelude::*;
///
/// fn linear(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
///     let x = cx.feature("x");
///     let w = cx.graph().variable("w", [], Init::Zeros);
///     let y = &x * &w;
///     let spec = EstimatorSpec::new(cx).prediction("y", &y);
///     if cx.mode() == Mode::Predict {
///         return Ok(spec);
///     }
///     let loss = (&y - cx.label()).square().mean();
///     Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
/// }
/// ```
pub struct ModelFnContext<'a> {
    graph: Graph,
    mode: Mode,
    features: Inputs,
    labels: Inputs,
    weights: Option<Tensor>,
    global_step: Tensor,
    params: &'a HParams,
    config: &'a RunConfig,
}

impl<'a> ModelFnContext<'a> {
    pub(crate) fn new(mode: Mode, input: &InputSpec, params: &'a HParams, config: &'a RunConfig) -> ModelFnContext<'a> {
        let graph = Graph::with_mode(mode);
        let global_step = graph.variable_with(GLOBAL_STEP, DType::I64, [0_usize; 0], Init::Zeros, Role::Step);
        let _scope = graph.scope("input");
        let features = Inputs::new(&graph, "feature", &input.features);
        let labels = Inputs::new(&graph, "label", &input.labels);
        let weights = input.weights.then(|| graph.placeholder("weights", DType::F32, [Dim::BATCH]));
        ModelFnContext { graph: graph.clone(), mode, features, labels, weights, global_step, params, config }
    }

    /// The graph to build in.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What to build for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// A dense feature by name. One that is not there is an error of the build, with the line of this call.
    #[track_caller]
    pub fn feature(&self, name: &str) -> Tensor {
        self.features.dense(name)
    }

    /// All features.
    pub fn features(&self) -> &Inputs {
        &self.features
    }

    /// The only label. There is none in prediction.
    #[track_caller]
    pub fn label(&self) -> Tensor {
        if self.mode == Mode::Predict {
            let error = Error::config("labels were asked for in prediction, where there are none");
            return self.graph.error(error.help("return the predictions before the labels are used"));
        }
        self.labels.single()
    }

    /// All labels; empty in prediction.
    pub fn labels(&self) -> &Inputs {
        &self.labels
    }

    /// The weight of every row, if the input has weights.
    pub fn weights(&self) -> Option<&Tensor> {
        self.weights.as_ref()
    }

    /// The number of training steps so far, i64.
    pub fn global_step(&self) -> &Tensor {
        &self.global_step
    }

    /// The parameters of the estimator.
    pub fn params(&self) -> &'a HParams {
        self.params
    }

    /// The configuration of the run.
    pub fn config(&self) -> &'a RunConfig {
        self.config
    }
}

impl fmt::Debug for ModelFnContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, labels) = (self.features.names(), self.labels.names());
        f.debug_struct("ModelFnContext")
            .field("mode", &self.mode)
            .field("features", &features.collect::<Vec<_>>())
            .field("labels", &labels.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
