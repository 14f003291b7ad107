//! `EstimatorSpec`, the result of a model function: predictions, loss, metrics, optimizer, hooks
//! and exports.

use std::fmt;

use estimand_graph::{Minimize, Optimizer, Tensor};
use estimand_nn::metric::Metric;
use estimand_tensor::{Array, DType, Error, Mode, Result};
use indexmap::IndexMap;

use crate::from_input::FromInput;
use crate::hook::Hook;
use crate::model_fn::ModelFnContext;
use crate::running_metrics;
use crate::saver::Retention;
use crate::session::TrainSession;

/// The default signature key of a served model.
pub const SERVING_DEFAULT: &str = "serving_default";

/// The output of an exported model under one signature key.
#[derive(Clone, Debug)]
pub enum ExportOutput {
    /// Scores of classes, and their names.
    Classification {
        /// One score per class.
        scores: Option<Tensor>,
        /// The names of the classes, as strings.
        classes: Option<Tensor>,
    },
    /// One number per row.
    Regression {
        /// The numbers.
        value: Tensor,
    },
    /// Any tensors by name.
    Predict(IndexMap<String, Tensor>),
}

/// A check that runs before training begins.
pub type ReadyCheck = Box<dyn Fn(&TrainSession) -> Result<()>>;

/// A model for one mode. Parts that the mode does not need may be present; they are ignored.
///
/// | mode | needs |
/// |---|---|
/// | train | `loss`, and `optimizer` or `train_op` |
/// | evaluate | `loss` |
/// | predict | predictions |
#[must_use]
pub struct EstimatorSpec {
    pub(crate) mode: Mode,
    pub(crate) predictions: IndexMap<String, Tensor>,
    pub(crate) loss: Option<Tensor>,
    pub(crate) train_op: Option<Tensor>,
    pub(crate) optimizer: Option<Optimizer>,
    /// The prefix of the names of the optimizer's slots.
    pub(crate) optimizer_scope: Option<String>,
    pub(crate) metrics: IndexMap<String, Metric>,
    pub(crate) running_metrics: IndexMap<String, Metric>,
    pub(crate) export_outputs: IndexMap<String, ExportOutput>,
    /// What changes the variables in a hook, if the train op does not. An exported training has no
    /// hooks.
    pub(crate) trained_by: Option<&'static str>,
    pub(crate) training_hooks: Vec<Box<dyn Hook>>,
    pub(crate) training_chief_hooks: Vec<Box<dyn Hook>>,
    pub(crate) evaluation_hooks: Vec<Box<dyn Hook>>,
    pub(crate) prediction_hooks: Vec<Box<dyn Hook>>,
    pub(crate) initial_values: Vec<(String, Array)>,
    /// Initial values that are chosen from the input of a training.
    pub(crate) from_input: Option<FromInput>,
    pub(crate) ready_checks: Vec<ReadyCheck>,
    pub(crate) retention: Option<Retention>,
}

impl EstimatorSpec {
    /// An empty spec for the mode of a context.
    pub fn new(cx: &ModelFnContext<'_>) -> EstimatorSpec {
        EstimatorSpec {
            mode: cx.mode(),
            predictions: IndexMap::new(),
            loss: None,
            train_op: None,
            optimizer: None,
            optimizer_scope: None,
            metrics: IndexMap::new(),
            running_metrics: IndexMap::new(),
            export_outputs: IndexMap::new(),
            trained_by: None,
            training_hooks: Vec::new(),
            training_chief_hooks: Vec::new(),
            evaluation_hooks: Vec::new(),
            prediction_hooks: Vec::new(),
            initial_values: Vec::new(),
            from_input: None,
            ready_checks: Vec::new(),
            retention: None,
        }
    }

    /// Adds a prediction under a name.
    pub fn prediction(mut self, name: impl Into<String>, tensor: &Tensor) -> EstimatorSpec {
        self.predictions.insert(name.into(), tensor.clone());
        self
    }

    /// Sets the only prediction of a model without prediction names. It is served as `output`.
    pub fn single_prediction(self, tensor: &Tensor) -> EstimatorSpec {
        self.prediction("", tensor)
    }

    /// Sets the loss, a scalar.
    pub fn loss(mut self, loss: &Tensor) -> EstimatorSpec {
        self.loss = Some(loss.clone());
        self
    }

    /// Sets the optimizer. Training uses it to minimise the loss; other modes ignore it.
    pub fn optimizer(mut self, optimizer: Optimizer) -> EstimatorSpec {
        self.optimizer = Some(optimizer);
        self
    }

    /// Sets the prefix of the names of the optimizer's slots. By default it is empty, as in a
    /// hand-written TensorFlow model function (`Adagrad/dense/kernel/accumulator`). TensorFlow's
    /// heads and premade estimators use `training`.
    pub fn optimizer_scope(mut self, scope: impl Into<String>) -> EstimatorSpec {
        self.optimizer_scope = Some(scope.into());
        self
    }

    /// Sets the op of a training step, instead of an optimizer. The op need not increment the
    /// global step; the Estimator does.
    pub fn train_op(mut self, train_op: &Tensor) -> EstimatorSpec {
        self.train_op = Some(train_op.clone());
        self
    }

    /// Adds an evaluation metric.
    pub fn metric(mut self, name: impl Into<String>, metric: Metric) -> EstimatorSpec {
        self.metrics.insert(name.into(), metric);
        self
    }

    /// Adds a metric of training. Its value over all steps so far is logged with the loss, and
    /// written for TensorBoard with the summaries. Other modes ignore it.
    ///
    /// It is TensorFlow's `tf.summary.scalar(name, metric[1])`. The value must be one number.
    /// [`RunConfig::running_metrics`](crate::RunConfig::running_metrics) does the same for metrics
    /// of the model by name, also in models that someone else has written.
    ///
    /// ```
    /// use estimand::nn::metric;
    /// use estimand::prelude::*;
    ///
    /// fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    ///     let logits = Dense::new(3).apply(&cx.feature("x"));
    ///     let spec = EstimatorSpec::new(cx).prediction("class", &logits.argmax(-1));
    ///     if cx.mode() == Mode::Predict {
    ///         return Ok(spec);
    ///     }
    ///     let accuracy = metric::sparse_categorical_accuracy(&cx.label(), &logits, None);
    ///     Ok(spec
    ///         .loss(&logits.sparse_softmax_cross_entropy(&cx.label()).mean())
    ///         .optimizer(Optimizer::new(Sgd::default(), 0.1))
    ///         .metric("accuracy", accuracy.clone())
    ///         .running_metric("accuracy", accuracy))
    /// }
    /// ```
    pub fn running_metric(mut self, name: impl Into<String>, metric: Metric) -> EstimatorSpec {
        self.running_metrics.insert(name.into(), metric);
        self
    }

    /// Adds an output of the exported model under a key. By default, all predictions are exported
    /// under `serving_default`.
    pub fn export_output(mut self, key: impl Into<String>, output: ExportOutput) -> EstimatorSpec {
        self.export_outputs.insert(key.into(), output);
        self
    }

    /// Adds a training hook on every worker.
    pub fn training_hook(mut self, hook: impl Hook + 'static) -> EstimatorSpec {
        self.training_hooks.push(Box::new(hook));
        self
    }

    /// Adds a training hook on the chief only.
    pub fn training_chief_hook(mut self, hook: impl Hook + 'static) -> EstimatorSpec {
        self.training_chief_hooks.push(Box::new(hook));
        self
    }

    /// Adds an evaluation hook.
    pub fn evaluation_hook(mut self, hook: impl Hook + 'static) -> EstimatorSpec {
        self.evaluation_hooks.push(Box::new(hook));
        self
    }

    /// Adds a prediction hook.
    pub fn prediction_hook(mut self, hook: impl Hook + 'static) -> EstimatorSpec {
        self.prediction_hooks.push(Box::new(hook));
        self
    }

    /// Sets the value of a variable before training, instead of its initializer's value.
    pub fn initial_value(mut self, variable: impl Into<String>, value: Array) -> EstimatorSpec {
        self.initial_values.push((variable.into(), value));
        self
    }

    /// Sets what chooses initial values from the input before the first step of a training.
    pub(crate) fn initialized_from_input(mut self, from_input: FromInput) -> EstimatorSpec {
        self.from_input = Some(from_input);
        self
    }

    /// Adds a check that runs once the variables have their values. An error ends the training
    /// before its first step.
    pub fn ready_check(mut self, check: impl Fn(&TrainSession) -> Result<()> + 'static) -> EstimatorSpec {
        self.ready_checks.push(Box::new(check));
        self
    }

    /// Sets which checkpoints are kept, overriding the configuration.
    pub fn retention(mut self, retention: Retention) -> EstimatorSpec {
        self.retention = Some(retention);
        self
    }

    /// Checks that the spec has everything its mode needs, and that all tensors belong to the
    /// context's graph.
    pub(crate) fn checked(mut self, cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
        cx.graph().check()?;
        if self.mode != cx.mode() {
            return Err(Error::config(format!(
                "the model function returned a spec for mode {}; expected one for mode {}",
                self.mode,
                cx.mode()
            )));
        }
        if self.mode == Mode::Train {
            self.make_train_op(cx)?;
            self.find_running_metrics(cx)?;
        }
        match (self.mode, &self.loss) {
            (Mode::Train | Mode::Eval, None) => {
                return Err(missing(self.mode, "no loss", "give it one with .loss(&loss)"));
            }
            (Mode::Predict, _) if self.predictions.is_empty() => {
                return Err(missing(self.mode, "no predictions", "give it some with .prediction(name, &tensor)"));
            }
            _ => {}
        }
        if let Some(loss) = &self.loss {
            self.loss = Some(single_number(loss)?);
        }
        for name in self.metrics.keys().chain(self.running_metrics.keys()) {
            if name == "loss" || name == "global_step" {
                return Err(Error::config(format!("a metric is named `{name}`, which is reserved"))
                    .help("choose another name: the estimator reports loss and global_step itself"));
            }
        }
        self.check_graph(cx)?;
        if self.mode == Mode::Predict {
            self.check_exports()?;
        }
        cx.graph().check()?;
        Ok(self)
    }

    fn make_train_op(&mut self, cx: &ModelFnContext<'_>) -> Result<()> {
        let train_op = match (&self.train_op, &self.optimizer, &self.loss) {
            (Some(_), Some(_), _) => {
                return Err(Error::config("the model has both a train op and an optimizer; expected one of them")
                    .help("remove one of the two"));
            }
            // A user-written train op need not increment the global step.
            (Some(train_op), None, _) => cx.graph().group(&[train_op, &cx.global_step().assign_add(1.0)]),
            (None, Some(optimizer), Some(loss)) => {
                let _scope = self.optimizer_scope.as_deref().map(|scope| cx.graph().reopen(scope));
                optimizer.minimize(Minimize::new(&single_number(loss)?).global_step(cx.global_step()))
            }
            (None, None, _) => {
                let help = "give it .optimizer(..) or .train_op(&op)";
                return Err(missing(self.mode, "neither an optimizer nor a train op", help));
            }
            (None, Some(_), None) => return Ok(()),
        };
        self.train_op = Some(train_op);
        Ok(())
    }

    /// Adds the running metrics that the configuration names, and checks all of them.
    fn find_running_metrics(&mut self, cx: &ModelFnContext<'_>) -> Result<()> {
        for name in &cx.config().running_metrics {
            if self.running_metrics.contains_key(name) {
                continue;
            }
            let Some(metric) = self.metrics.get(name) else {
                let known = self.metrics.keys().map(String::as_str);
                let place = "in RunConfig::running_metrics, which needs a metric of the model in mode train";
                return Err(Error::unknown("metric", name, known).context(place));
            };
            self.running_metrics.insert(name.clone(), metric.clone());
        }
        for (name, metric) in &self.running_metrics {
            running_metrics::check(name, metric)?;
            if cx.summary().all().iter().any(|summary| summary.tag == *name) {
                return Err(Error::config(format!("a running metric and a summary named `{name}`"))
                    .help("give one of them another name"));
            }
        }
        Ok(())
    }

    fn check_graph(&self, cx: &ModelFnContext<'_>) -> Result<()> {
        let metrics = self
            .metrics
            .iter()
            .chain(&self.running_metrics)
            .flat_map(|(name, metric)| metric.sums().iter().map(move |sum| (name, sum)));
        let named = self.predictions.iter().chain(metrics).map(|(name, tensor)| (name.as_str(), tensor));
        let loss = self.loss.iter().map(|loss| ("loss", loss));
        let train = self.train_op.iter().map(|op| ("train_op", op));
        match named.chain(loss).chain(train).find(|(_, tensor)| !tensor.graph().same(cx.graph())) {
            None => Ok(()),
            Some((name, _)) => Err(Error::config(format!("`{name}` belongs to another graph"))
                .help("build everything in cx.graph(): a model function is called anew for each mode")),
        }
    }

    fn check_exports(&mut self) -> Result<()> {
        match self.export_outputs.len() {
            0 => {
                let name = |name: &String| if name.is_empty() { "output".to_string() } else { name.clone() };
                let all = self.predictions.iter().map(|(key, tensor)| (name(key), tensor.clone())).collect();
                self.export_outputs.insert(SERVING_DEFAULT.to_string(), ExportOutput::Predict(all));
            }
            1 => {
                if let Some((_, only)) = self.export_outputs.get_index(0) {
                    let only = only.clone();
                    self.export_outputs.entry(SERVING_DEFAULT.to_string()).or_insert(only);
                }
            }
            _ if !self.export_outputs.contains_key(SERVING_DEFAULT) => {
                let keys: Vec<_> = self.export_outputs.keys().map(String::as_str).collect();
                return Err(Error::config(format!(
                    "the export outputs are {}, and none of them is the default",
                    keys.join(", ")
                ))
                .help(format!("name one of them `{SERVING_DEFAULT}`")));
            }
            _ => {}
        }
        Ok(())
    }
}

fn missing(mode: Mode, what: &str, help: &str) -> Error {
    Error::config(format!("the model has {what} in mode {mode}")).help(help)
}

/// Returns the loss as a scalar. A loss of one element may have any shape.
fn single_number(loss: &Tensor) -> Result<Tensor> {
    loss.graph().check()?;
    if loss.dtype() != DType::F32 {
        return Err(Error::dtype(
            Some(DType::F32),
            loss.dtype(),
            format!("the loss is {}; expected f32", loss.describe()),
        )
        .help("cast it with .cast(DType::F32)"));
    }
    let n: Option<usize> = loss.shape().dims().iter().map(|dim| dim.known()).product();
    match n {
        Some(1) if loss.rank() == 0 => Ok(loss.clone()),
        Some(1) => Ok(loss.reshape([0_i64; 0])),
        _ => Err(Error::shape(format!("the loss is {}; expected one number", loss.describe()))
            .help("take the mean or the sum over the batch")),
    }
}

impl fmt::Debug for EstimatorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EstimatorSpec")
            .field("mode", &self.mode)
            .field("predictions", &self.predictions.keys().collect::<Vec<_>>())
            .field("loss", &self.loss)
            .field("metrics", &self.metrics.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
