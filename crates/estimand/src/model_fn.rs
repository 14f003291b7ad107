//! The argument of a model function: symbolic features and labels, the mode, the parameters and the
//! configuration.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use estimand_data::specs_of;
use estimand_graph::{Graph, Initializer, Line, Role, Tensor};
use estimand_nn::{Input, Inputs};
use estimand_tensor::{Batch, BatchSpec, DType, Dim, Error, Mode, Result};
use indexmap::IndexMap;

use crate::{EstimatorSpec, HParams, RunConfig, Summaries};

/// TensorFlow's name of the variable that counts training steps.
pub(crate) const GLOBAL_STEP: &str = "global_step";

/// A function that builds a model. It is called once per mode, each time with a new graph.
pub type ModelFn = Arc<dyn Fn(&ModelFnContext<'_>) -> Result<EstimatorSpec> + Send + Sync>;

/// The shape and dtype of a batch: the features, labels and weights that a model is built for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InputSpec {
    pub(crate) features: BatchSpec,
    pub(crate) labels: BatchSpec,
    pub(crate) weights: bool,
    /// The names of the classes that labels stand for, if the input knows them.
    pub(crate) classes: Option<Vec<String>>,
}

impl InputSpec {
    pub(crate) fn of(batch: &Batch) -> InputSpec {
        let (features, labels) = specs_of(batch);
        InputSpec { features, labels, weights: batch.weights().is_some(), classes: None }
    }
}

/// The inputs of an exported model, as its model function gets them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) features: IndexMap<String, Input>,
    pub(crate) labels: IndexMap<String, Input>,
    /// The weight of every row.
    pub(crate) weights: Option<Tensor>,
}

/// Gives nodes and errors of this library a line of the user's program while the guards live.
pub(crate) fn lines(graph: &Graph, site: &'static Location<'static>) -> [Line; 2] {
    [graph.line(site, file!()), graph.line(site, estimand_nn::SOURCE)]
}

/// The context in which a model function builds its graph.
///
/// ```
/// use estimand::prelude::*;
///
/// fn linear(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
///     let x = cx.feature("x");
///     let w = cx.graph().variable("w", [], Initializer::Zeros);
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
    summaries: Summaries,
    params: &'a HParams,
    config: &'a RunConfig,
}

impl<'a> ModelFnContext<'a> {
    /// Makes the graph of a mode with its inputs. `site` is the line that made the estimator.
    pub(crate) fn new(
        mode: Mode,
        input: &InputSpec,
        params: &'a HParams,
        config: &'a RunConfig,
        site: &'static Location<'static>,
    ) -> ModelFnContext<'a> {
        let graph = Graph::with_mode(mode);
        let _lines = lines(&graph, site);
        let global_step = graph.variable_with(GLOBAL_STEP, DType::I64, [0_usize; 0], Initializer::Zeros, Role::Step);
        let _scope = graph.scope("input");
        let features = Inputs::new(&graph, "feature", &input.features);
        let labels = Inputs::new(&graph, "label", &input.labels);
        let weights = input.weights.then(|| graph.placeholder("weights", DType::F32, [Dim::BATCH]));
        let summaries = Summaries::of(&graph);
        ModelFnContext { graph: graph.clone(), mode, features, labels, weights, global_step, summaries, params, config }
    }

    /// Makes the context of a model whose inputs `receive` makes in the graph.
    pub(crate) fn receiving<R: Clone + Into<Received>>(
        mode: Mode,
        params: &'a HParams,
        config: &'a RunConfig,
        site: &'static Location<'static>,
        receive: impl FnOnce(&Graph) -> Result<R>,
    ) -> Result<(ModelFnContext<'a>, R)> {
        let mut cx = ModelFnContext::new(mode, &InputSpec::default(), params, config, site);
        let _lines = lines(&cx.graph, site);
        let received = receive(&cx.graph)?;
        let Received { features, labels, weights } = received.clone().into();
        cx.features = Inputs::of(&cx.graph, "feature", features);
        cx.labels = Inputs::of(&cx.graph, "label", labels);
        cx.weights = weights;
        Ok((cx, received))
    }

    /// The same context with one feature more.
    pub(crate) fn with_feature(&self, name: &str, tensor: Tensor) -> ModelFnContext<'a> {
        let known = self.features.iter().map(|(name, input)| (name.to_string(), input.clone()));
        let features = known.chain([(name.to_string(), Input::Dense(tensor))]);
        ModelFnContext {
            graph: self.graph.clone(),
            mode: self.mode,
            features: Inputs::of(&self.graph, "feature", features),
            labels: self.labels.clone(),
            weights: self.weights.clone(),
            global_step: self.global_step.clone(),
            summaries: self.summaries.clone(),
            params: self.params,
            config: self.config,
        }
    }

    /// The graph to build in.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the mode to build for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns a dense feature by name. A missing feature is a build error that names the line of
    /// this call.
    #[track_caller]
    pub fn feature(&self, name: &str) -> Tensor {
        self.features.dense(name)
    }

    /// All features.
    pub fn features(&self) -> &Inputs {
        &self.features
    }

    /// Returns the only label. In prediction there is no label.
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

    /// Collects summaries of the model for TensorBoard: `cx.summary().scalar("rate", &rate)`.
    ///
    /// Training writes them every `save_summary_steps`. Evaluation writes precision-recall curves.
    /// It writes the other summaries only if it has its own
    /// [`SummarySaverHook`](crate::hook::SummarySaverHook).
    pub fn summary(&self) -> &Summaries {
        &self.summaries
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
