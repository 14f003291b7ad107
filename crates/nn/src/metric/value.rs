//! `MetricValue`: a metric as plain data, before it has labels and predictions.

use std::fmt;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::{ALL_METRICS, Auc, MeanLoss, Metric, values::*};
use crate::config::{self, CustomObjects, Described, Field, Fields, Json, Node, ReadMetric, configured, is_called};
use crate::loss;

/// Where Keras looks for metrics.
pub(super) const MODULE: &str = "keras.metrics";

/// Where the metrics are that Keras does not have.
pub(super) const OWN_MODULE: &str = "estimand";

/// A metric with its settings: what `compile(metrics=[..])` takes in Keras. It makes a [`Metric`]
/// from tensors by calling the function of the same name.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::config::CustomObjects;
/// use estimand_nn::metric::{self, MetricValue, Precision};
/// use estimand_nn::testing::metric_value;
///
/// let g = Graph::new();
/// let (labels, probabilities) = (g.constant([0i64, 1, 1]), g.constant([0.4f32, 0.6, 0.9]));
/// let precision = Precision::new().thresholds([0.25]);
/// assert_eq!(metric_value(&precision.apply(&labels, &probabilities, None), &[vec![]])?, f64::from(2.0f32) / 3.0);
///
/// let json = precision.to_json()?;
/// assert_eq!(json["class_name"], "Precision");
/// assert_eq!(json["config"]["thresholds"], 0.25);
/// assert_eq!(metric::from_json(&json.to_string(), &CustomObjects::new())?.to_json()?, json);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub trait MetricValue: fmt::Debug + Send + Sync {
    /// The name under which results show the metric. By default that of its function.
    fn name(&self) -> &str;

    /// Makes the metric from labels, predictions and optional weights.
    #[track_caller]
    fn apply(&self, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric;

    /// The metric as JSON, with the keys of Keras; [`from_json`] reads it back. A metric of one's
    /// own implements [`Described`] and calls [`config::write`]. By default it cannot be written.
    fn to_json(&self) -> Result<Json> {
        let text = format!("the metric `{}` cannot be written as JSON", self.name());
        Err(Error::unsupported(text).help("implement `Described` for it, and `to_json` with `config::write`"))
    }
}

/// Looks up a metric of [`ALL_METRICS`] by name. For an unknown name, the error suggests the
/// nearest one.
///
/// ```
/// use estimand_nn::metric;
/// assert!(metric::named("auc").is_ok());
/// assert!(metric::named("precison").unwrap_err().to_string().contains("did you mean `precision`?"));
/// ```
pub fn named(name: &str) -> Result<Box<dyn MetricValue>> {
    let all: Vec<Box<dyn MetricValue>> = ALL_METRICS.iter().map(|make| make()).collect();
    match all.iter().position(|metric| metric.name() == name) {
        Some(i) => Ok(ALL_METRICS[i]()),
        None => Err(Error::unknown("metric", name, all.iter().map(|metric| metric.name()))),
    }
}

/// A class with its reader.
const fn class<M: MetricValue + Described + 'static>() -> (&'static str, ReadMetric) {
    (M::CLASS, |fields| Box::new(M::template().fields(fields)))
}

/// Every class that can be read.
const CLASSES: [(&str, ReadMetric); 29] = [
    class::<Accuracy>(),
    class::<Auc>(),
    class::<BinaryAccuracy>(),
    class::<CategoricalAccuracy>(),
    class::<ConfusionMatrix>(),
    class::<CosineSimilarity>(),
    class::<ExpectedCalibrationError>(),
    class::<FalseNegatives>(),
    class::<FalsePositives>(),
    class::<Mean>(),
    class::<MeanAbsoluteError>(),
    class::<MeanIou>(),
    class::<MeanLoss>(),
    class::<MeanPerClassAccuracy>(),
    class::<MeanRelativeError>(),
    class::<MeanSquaredError>(),
    class::<Precision>(),
    class::<PrecisionAtRecall>(),
    class::<R2Score>(),
    class::<Recall>(),
    class::<RecallAtPrecision>(),
    class::<RootMeanSquaredError>(),
    class::<SensitivityAtSpecificity>(),
    class::<SparseCategoricalAccuracy>(),
    class::<SparseTopKCategoricalAccuracy>(),
    class::<SpecificityAtSensitivity>(),
    class::<TopKCategoricalAccuracy>(),
    class::<TrueNegatives>(),
    class::<TruePositives>(),
];

/// Reads a metric from JSON: what [`MetricValue::to_json`] writes, or `keras.metrics.serialize` of
/// Keras 2 or 3. Keras's metrics that are the mean of a loss, such as `KLDivergence`, become a
/// [`MeanLoss`]. The name of a class alone stands for its defaults. Metrics that are not of this
/// crate are looked up in `objects`.
pub fn from_json(text: &str, objects: &CustomObjects) -> Result<Box<dyn MetricValue>> {
    let document = config::parse(text)?;
    read(&Node::root(&document, objects))
}

/// Reads a metric at a place of a document.
pub fn read(node: &Node<'_>) -> Result<Box<dyn MetricValue>> {
    let found = node.object()?;
    let objects = node.custom_objects();
    let ours = CLASSES.iter().find(|(class, _)| is_called(found.class, class)).map(|(_, read)| *read);
    if let Some(read) = objects.find::<ReadMetric>(found.class).or(ours) {
        return configured(found.config.as_ref(), read);
    }
    // TF: the mean of this loss alone has another name as a metric.
    let of_loss = if found.class == "LogCoshError" { "LogCosh" } else { found.class };
    if let Some(loss) = loss::reader(of_loss) {
        return configured(found.config.as_ref(), |fields| -> Box<dyn MetricValue> {
            let metric = MeanLoss::new(loss(fields));
            match name_and_dtype(fields, &None, "") {
                Some(name) => Box::new(metric.name(&name)),
                None => Box::new(metric),
            }
        });
    }
    let known = CLASSES.iter().map(|(class, _)| *class).chain(objects.names::<ReadMetric>());
    Err(Error::unknown("metric", found.class, known).context(format!("at {}", node.path())))
}

/// The fields that all metrics have. A name that is not set is written as `default`.
pub(super) fn name_and_dtype(fields: &mut Fields<'_>, name: &Option<String>, default: &str) -> Option<String> {
    // A metric with a type of its own has asked for it.
    if !fields.is_asked("dtype") {
        fields.only_float32("dtype");
    }
    fields.or("name", name, default.to_string())
}

impl Field for Arc<dyn MetricValue> {
    fn write(&self) -> Result<Json> {
        self.to_json()
    }

    fn read(node: &Node<'_>) -> Result<Arc<dyn MetricValue>> {
        read(node).map(Arc::from)
    }
}

/// A boxed metric, such as one from JSON, is a metric.
impl MetricValue for Box<dyn MetricValue> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn apply(&self, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
        (**self).apply(labels, predictions, weights)
    }

    fn to_json(&self) -> Result<Json> {
        (**self).to_json()
    }
}
