//! `compile`: the optimizer, the losses and the metrics of a model, by value or by Keras' name.

use std::panic::Location;
use std::sync::Arc;

use estimand_graph::Optimizer;
use estimand_nn::loss::{self, Loss, Reduction};
use estimand_nn::metric::{self, MetricValue};
use estimand_tensor::{Array, Error, Result};
use estimand_update::Schedule;

use super::model::Model;
use super::names::{self, MetricKind};
use super::programs::Programs;
use crate::premade::OptimizerChoice;

/// The arguments of [`Model::compile`].
///
/// ```
/// use estimand::keras::{Compile, Sequential};
/// use estimand::nn::metric::Auc;
/// use estimand::prelude::*;
///
/// let mut model = Sequential::new().input([4]).add(Dense::new(1).sigmoid()).build()?;
/// model.compile(Compile::new("adam", "binary_crossentropy").metric("accuracy").metric(Auc::new()))?;
///
/// let by_value = Compile::new(Optimizer::new(Sgd::default().momentum(0.9), 0.1), SigmoidCrossEntropy::new().from_probabilities());
/// model.compile(by_value)?;
///
/// let error = model.compile(Compile::new("adm", "mse")).unwrap_err();
/// assert!(error.to_string().contains("did you mean `adam`?"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Compile {
    optimizer: OptimizerChoice,
    loss: LossChoice,
    losses: Vec<(String, LossChoice)>,
    weights: Vec<(String, f64)>,
    metrics: Vec<Wanted>,
    site: &'static Location<'static>,
}

/// A metric that is wanted: of all outputs or of one, with the weights of rows or without.
#[derive(Clone)]
struct Wanted {
    output: Option<String>,
    metric: MetricChoice,
    is_weighted: bool,
}

impl Compile {
    /// An optimizer, and the loss of every output. Both are values or Keras' names.
    ///
    /// By name, optimizers are those of `tf.keras.optimizers`, with their default learning rates.
    /// `Optimizer::keras(Adam::default(), 0.01)` sets another. `Optimizer::new` makes the legacy
    /// optimizer, which Estimators use.
    #[track_caller]
    pub fn new(optimizer: impl Into<OptimizerChoice>, loss: impl Into<LossChoice>) -> Compile {
        let (optimizer, loss, site) = (optimizer.into(), loss.into(), Location::caller());
        Compile { optimizer, loss, losses: Vec::new(), weights: Vec::new(), metrics: Vec::new(), site }
    }

    /// The loss of one output.
    pub fn loss_of(mut self, output: &str, loss: impl Into<LossChoice>) -> Compile {
        self.losses.push((output.to_string(), loss.into()));
        self
    }

    /// The factor of an output's loss in the sum that training minimizes. By default 1.
    pub fn loss_weight(mut self, output: &str, weight: f64) -> Compile {
        self.weights.push((output.to_string(), weight));
        self
    }

    /// Adds a metric of every output. It ignores the weights of rows, as Keras' `metrics` do.
    pub fn metric(self, metric: impl Into<MetricChoice>) -> Compile {
        self.wanted(None, metric.into(), false)
    }

    /// Adds a metric of one output.
    pub fn metric_of(self, output: &str, metric: impl Into<MetricChoice>) -> Compile {
        self.wanted(Some(output.to_string()), metric.into(), false)
    }

    /// Adds a metric of every output that uses the weights of rows: Keras' `weighted_metrics`.
    pub fn weighted_metric(self, metric: impl Into<MetricChoice>) -> Compile {
        self.wanted(None, metric.into(), true)
    }

    /// Adds a metric of one output that uses the weights of rows.
    pub fn weighted_metric_of(self, output: &str, metric: impl Into<MetricChoice>) -> Compile {
        self.wanted(Some(output.to_string()), metric.into(), true)
    }

    /// As made at this line.
    #[cfg(feature = "keras_files")]
    pub(super) fn at(mut self, site: &'static Location<'static>) -> Compile {
        self.site = site;
        self
    }

    fn wanted(mut self, output: Option<String>, metric: MetricChoice, is_weighted: bool) -> Compile {
        self.metrics.push(Wanted { output, metric, is_weighted });
        self
    }
}

/// A loss by value or by Keras' name, such as `"mse"` or `"sparse_categorical_crossentropy"`.
///
/// A loss by name takes probabilities, as in Keras. A loss whose reduction is the default of
/// Estimand, `SumByNonzeroWeights`, is divided by the number of rows, as in Keras.
#[derive(Clone)]
pub struct LossChoice(Choice<dyn Loss>);

/// A metric by value or by Keras' name, such as `"accuracy"`, `"mae"` or `"AUC"`.
#[derive(Clone)]
pub struct MetricChoice(Choice<dyn MetricValue>);

enum Choice<T: ?Sized> {
    Named(String),
    Value(Arc<T>),
}

impl<T: ?Sized> Clone for Choice<T> {
    fn clone(&self) -> Choice<T> {
        match self {
            Choice::Named(name) => Choice::Named(name.clone()),
            Choice::Value(value) => Choice::Value(value.clone()),
        }
    }
}

impl LossChoice {
    /// A loss of one's own.
    pub fn new(loss: impl Loss + 'static) -> LossChoice {
        LossChoice(Choice::Value(Arc::new(loss)))
    }

    fn resolve(&self) -> Result<Arc<dyn Loss>> {
        let loss = match &self.0 {
            Choice::Value(loss) => loss.clone(),
            Choice::Named(name) => names::loss(name)?.into(),
        };
        match loss.loss_reduction() {
            Reduction::None => Err(Error::config(format!("the loss {} has the reduction None", loss.name()))
                .help("training needs one number: use Reduction::SumOverBatchSize")),
            _ => Ok(loss),
        }
    }

    fn given(&self) -> Option<String> {
        match &self.0 {
            Choice::Named(name) => Some(name.clone()),
            Choice::Value(_) => None,
        }
    }
}

impl From<&str> for LossChoice {
    fn from(name: &str) -> LossChoice {
        LossChoice(Choice::Named(name.to_string()))
    }
}

impl MetricChoice {
    /// A metric of one's own.
    pub fn new(metric: impl MetricValue + 'static) -> MetricChoice {
        MetricChoice(Choice::Value(Arc::new(metric)))
    }
}

impl From<&str> for MetricChoice {
    fn from(name: &str) -> MetricChoice {
        MetricChoice(Choice::Named(name.to_string()))
    }
}

macro_rules! choices {
    ($choice:ident of $module:ident: $($value:ident),* $(,)?) => {$(
        impl From<$module::$value> for $choice {
            fn from(value: $module::$value) -> $choice {
                $choice::new(value)
            }
        }
    )*};
}
choices!(LossChoice of loss: AbsoluteError, CategoricalHinge, CosineSimilarity, Hinge, Huber, KlDivergence, LogCosh,
    LogLoss, LogPoisson, MeanAbsolutePercentageError, MeanSquaredError, MeanSquaredLogarithmicError, Poisson,
    SigmoidCrossEntropy, SoftmaxCrossEntropy, SparseSoftmaxCrossEntropy, SquaredHinge);
choices!(MetricChoice of metric: Accuracy, Auc, BinaryAccuracy, CategoricalAccuracy, CosineSimilarity,
    ExpectedCalibrationError, FalseNegatives, FalsePositives, MeanAbsoluteError, MeanIou, MeanLoss,
    MeanPerClassAccuracy, MeanRelativeError, MeanSquaredError, Precision, PrecisionAtRecall, R2Score, Recall,
    RecallAtPrecision, RootMeanSquaredError, SensitivityAtSpecificity, SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy, SpecificityAtSensitivity, TopKCategoricalAccuracy, TrueNegatives, TruePositives);

/// A metric of an output.
#[derive(Clone)]
pub(super) struct OutputMetric {
    pub name: String,
    pub kind: MetricKind,
    /// The name by which it was given, if it was.
    #[cfg_attr(not(feature = "keras_files"), allow(dead_code, reason = "only files of Keras hold it"))]
    pub given: Option<String>,
    pub is_weighted: bool,
}

fn resolved(choice: &MetricChoice, is_weighted: bool) -> Result<OutputMetric> {
    let (name, kind, given) = match &choice.0 {
        Choice::Value(metric) => (metric.name().to_string(), MetricKind::Value(metric.clone()), None),
        Choice::Named(given) => {
            let (name, kind) = names::metric(given)?;
            (name, kind, Some(given.clone()))
        }
    };
    Ok(OutputMetric { name, kind, given, is_weighted })
}

/// What a compiled model trains with.
#[derive(Clone)]
pub(super) struct Settings {
    pub optimizer: Optimizer,
    pub outputs: Vec<OutputSettings>,
    /// The user's line, for mistakes in losses and metrics.
    pub site: &'static Location<'static>,
}

#[derive(Clone)]
pub(super) struct OutputSettings {
    pub name: String,
    pub loss: Arc<dyn Loss>,
    /// The name by which the loss was given, if it was.
    #[cfg_attr(not(feature = "keras_files"), allow(dead_code, reason = "only files of Keras hold it"))]
    pub given: Option<String>,
    pub weight: Option<f64>,
    pub metrics: Vec<OutputMetric>,
}

impl Model {
    /// Sets the optimizer, the losses and the metrics. Weights stay as they are; the state of an
    /// earlier optimizer is dropped, as in Keras.
    pub fn compile(&mut self, compile: Compile) -> Result<()> {
        let place = |error: Error| error.context(format!("in compile of model `{}`", self.name()));
        let settings = self.settings_of(&compile).map_err(place)?;
        self.rate = match settings.optimizer.learning_rate() {
            Schedule::Constant(rate) => Some(*rate as f32),
            _ => None,
        };
        let was_compiled = self.settings.replace(settings).is_some();
        self.programs = Programs::default();
        if was_compiled { self.keep_weights_only() } else { Ok(()) }
    }

    fn settings_of(&self, compile: &Compile) -> Result<Settings> {
        let names = self.output_names();
        let of_metrics = compile.metrics.iter().filter_map(|wanted| wanted.output.as_ref());
        let mentioned = compile.losses.iter().map(|(name, _)| name).chain(compile.weights.iter().map(|(name, _)| name));
        for name in mentioned.chain(of_metrics) {
            if !names.contains(name) {
                return Err(Error::unknown("output", name, names.iter().map(String::as_str)));
            }
        }
        let output = |name: &String| -> Result<OutputSettings> {
            let loss = compile.losses.iter().rev().find(|(of, _)| of == name).map_or(&compile.loss, |(_, loss)| loss);
            let of = compile.metrics.iter().filter(|wanted| wanted.output.as_ref().is_none_or(|of| of == name));
            let (plain, weighted): (Vec<&Wanted>, Vec<&Wanted>) = of.partition(|wanted| !wanted.is_weighted);
            let metrics = plain.into_iter().chain(weighted).map(|w| resolved(&w.metric, w.is_weighted));
            Ok(OutputSettings {
                name: name.clone(),
                loss: loss.resolve()?,
                given: loss.given(),
                weight: compile.weights.iter().rev().find(|(of, _)| of == name).map(|(_, weight)| *weight),
                metrics: metrics.collect::<Result<_>>()?,
            })
        };
        let optimizer = compile.optimizer.or_named(names::optimizer)?.with_rate_variable();
        optimizer.check()?;
        let outputs = names.iter().map(output).collect::<Result<_>>()?;
        Ok(Settings { optimizer, outputs, site: compile.site })
    }
}

impl Model {
    /// The learning rate of the next step. A schedule counts the steps since `compile`.
    pub fn learning_rate(&self) -> Result<f64> {
        let schedule = self.check_compiled()?.optimizer.learning_rate();
        match self.rate {
            Some(rate) => Ok(f64::from(rate)),
            None => Ok(schedule.rate(self.n_updates()?)),
        }
    }

    /// Sets the learning rate from the next step on; nothing is compiled again. As in Keras, a
    /// learning rate that is a schedule cannot be set.
    pub fn set_learning_rate(&mut self, rate: f64) -> Result<()> {
        self.check_compiled()?;
        if self.rate.is_none() {
            let text = format!("the learning rate of model `{}` is a schedule, which cannot be set", self.name());
            return Err(Error::config(text).help("compile the model with a number as the learning rate"));
        }
        Schedule::Constant(rate).check().map_err(Error::config)?;
        self.rate = Some(rate as f32);
        self.write_rate()
    }

    /// Whether the learning rate is a schedule.
    pub(super) fn has_schedule(&self) -> bool {
        self.settings.is_some() && self.rate.is_none()
    }

    /// Writes the learning rate to the state, if a training step reads it there.
    pub(super) fn write_rate(&mut self) -> Result<()> {
        match (&self.rate_variable, self.rate) {
            (Some(name), Some(rate)) if self.weights.holds(name) => self.weights.write(name, &Array::scalar(rate)),
            _ => Ok(()),
        }
    }
}
