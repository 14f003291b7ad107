//! Areas under curves: they measure how well probabilities rank examples, for all thresholds.
//!
//! A curve has a point for each threshold between 0 and 1, as in `tf.keras.metrics.AUC`. The sums
//! are a histogram: the weight of true and of false labels whose probability lies between two
//! thresholds. All points are computed from it.

use estimand_graph::{Axes, Running, Tensor};
use estimand_tensor::{DType, Error, Result};

use super::confusion::Truth;
use super::histogram::{N_INTERVALS, histograms, histograms_of_labels, nan_if_any};
use super::value::{MODULE, name_and_dtype};
use super::{Metric, MetricValue};
use crate::config::{self, Described, Fields, Json, Numbers};

/// The curve whose area is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Curve {
    /// True positive rate over false positive rate: the area is the probability that a true example
    /// ranks above a false one.
    #[default]
    Roc,
    /// Precision over recall.
    Pr,
}

/// The height of the area between two points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Summation {
    /// Their mean. For precisions, which are not a straight line, counts of positives are
    /// interpolated (Davis and Goadrich 2006).
    #[default]
    Interpolation,
    /// The lower one: the area is never too large.
    Minoring,
    /// The higher one: the area is never too small.
    Majoring,
}

/// The area under a curve, with more settings than [`auc`]: `tf.keras.metrics.AUC`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric::{Auc, Curve, Summation};
/// use estimand_nn::testing::metric_value;
///
/// let g = Graph::new();
/// let (labels, probabilities) = (g.constant([0i64, 0, 1, 1]), g.constant([0.1f32, 0.4, 0.35, 0.8]));
/// let auc = Auc::new().curve(Curve::Pr).summation_method(Summation::Minoring).n_thresholds(5);
/// // Above 3/4 is one true one; above 1/4 are three examples, of which two are true: 1/2 (recall) at 2/3 (precision), then 1/2 at 0.
/// assert!((metric_value(&auc.of(&labels, &probabilities, None), &[vec![]])? - 1.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Auc {
    name: Option<String>,
    curve: Curve,
    summation: Summation,
    n_thresholds: usize,
    by_label: bool,
    label_weights: Option<Vec<f64>>,
    logits: bool,
}

impl Auc {
    /// The area under the ROC curve, interpolated between 200 thresholds.
    pub fn new() -> Auc {
        Auc {
            name: None,
            curve: Curve::Roc,
            summation: Summation::Interpolation,
            n_thresholds: N_INTERVALS + 1,
            by_label: false,
            label_weights: None,
            logits: false,
        }
    }

    /// The name under which results show the metric. By default `auc`.
    pub fn name(mut self, name: &str) -> Auc {
        self.name = Some(name.to_string());
        self
    }

    /// The curve. By default `Roc`.
    pub fn curve(mut self, curve: Curve) -> Auc {
        self.curve = curve;
        self
    }

    /// The height of the area between two points. By default `Interpolation`.
    pub fn summation_method(mut self, summation: Summation) -> Auc {
        self.summation = summation;
        self
    }

    /// The number of points, including those at 0 and 1. By default 200.
    pub fn n_thresholds(mut self, n: usize) -> Auc {
        self.n_thresholds = n;
        self
    }

    /// Whether each label (the second axis) has its own area; the value is then their mean. By
    /// default all labels share one area.
    pub fn multi_label(mut self, by_label: bool) -> Auc {
        self.by_label = by_label;
        self
    }

    /// The weight of each label in that mean. By default all count the same.
    pub fn label_weights(mut self, weights: impl Into<Vec<f64>>) -> Auc {
        self.label_weights = Some(weights.into());
        self
    }

    /// Takes logits. By default predictions are probabilities.
    #[allow(clippy::wrong_self_convention, reason = "Keras's word for it")]
    pub fn from_logits(mut self) -> Auc {
        self.logits = true;
        self
    }

    /// Makes the metric from labels and predictions. A label is true unless it is 0.
    #[track_caller]
    pub fn of(&self, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
        let name = match self.curve {
            Curve::Roc => "auc",
            Curve::Pr => "auc_precision_recall",
        };
        let probabilities =
            if self.logits { predictions.cast(DType::F32).sigmoid() } else { predictions.cast(DType::F32) };
        let truth = Truth::new(name, labels, &probabilities, weights);
        if let Some(error) = self.wrong(&truth.probabilities) {
            return Metric::new([labels.graph().error(error.context(format!("in {name}")))], |sums| sums[0].clone());
        }
        let n_intervals = self.n_thresholds - 1;
        let sums = match self.by_label {
            true => histograms_of_labels(truth, n_intervals),
            false => histograms(truth, n_intervals),
        };
        let this = self.clone();
        Metric::new(sums, move |sums| nan_if_any(&this.mean(&this.areas(&sums[0], &sums[1])), sums))
    }

    fn wrong(&self, probabilities: &Tensor) -> Option<Error> {
        let n_labels = probabilities.shape().dims().last().and_then(|labels| labels.known());
        match &self.label_weights {
            _ if self.n_thresholds < 2 => {
                Some(Error::config(format!("the number of thresholds is {}; expected at least 2", self.n_thresholds)))
            }
            Some(_) if !self.by_label => Some(
                Error::config("label weights are set, but the metric is one area for all labels")
                    .help("call .multi_label(true)"),
            ),
            Some(weights) if n_labels.is_some_and(|n| n != weights.len()) => {
                let n_labels = n_labels.unwrap_or(0);
                Some(Error::config(format!(
                    "there are {} label weights for {n_labels} labels; expected one for each",
                    weights.len()
                )))
            }
            Some(weights) if weights.iter().any(|weight| weight.is_nan() || *weight < 0.0) => {
                Some(Error::config(format!("the label weights are {weights:?}; expected numbers from 0")))
            }
            _ => None,
        }
    }

    /// The areas for histograms whose last axis holds the intervals.
    fn areas(&self, positive: &Tensor, negative: &Tensor) -> Tensor {
        // The weights above the upper end and above the lower end of each interval.
        let above =
            |x: &Tensor| (x.cumsum(Running::along(-1).exclusive().reverse()), x.cumsum(Running::along(-1).reverse()));
        let all = |x: &Tensor| x.sum_axes(Axes::of([-1]).keep_dims());
        let ((tp_upper, tp_lower), (fp_upper, fp_lower)) = (above(positive), above(negative));
        if (self.curve, self.summation) == (Curve::Pr, Summation::Interpolation) {
            // In an interval, true positives = intercept + slope * all positives; precision is
            // integrated over them.
            let (both, both_upper) = (positive + negative, &tp_upper + &fp_upper);
            let slope = positive.div_no_nan(&both);
            let intercept = tp_upper - &slope * &both_upper;
            // Nothing is above the highest interval, so precision is constant in it.
            let growth = both_upper.greater(0.0).select((&both_upper + &both).div_no_nan(&both_upper), 1.0);
            let area = slope * (positive + intercept * growth.log());
            return area.sum_axes([-1]).div_no_nan(all(positive).squeeze(&[-1]));
        }
        let (width, upper, lower) = match self.curve {
            Curve::Roc => {
                let rate = |tp: Tensor| tp.div_no_nan(all(positive));
                (negative.div_no_nan(all(negative)), rate(tp_upper), rate(tp_lower))
            }
            Curve::Pr => {
                let precision = |tp: Tensor, fp: Tensor| tp.div_no_nan(&tp + fp);
                (positive.div_no_nan(all(positive)), precision(tp_upper, fp_upper), precision(tp_lower, fp_lower))
            }
        };
        let height = match self.summation {
            Summation::Interpolation => (upper + lower) * 0.5,
            Summation::Minoring => upper.minimum(lower),
            Summation::Majoring => upper.maximum(lower),
        };
        (width * height).sum_axes([-1])
    }

    fn mean(&self, areas: &Tensor) -> Tensor {
        match &self.label_weights {
            None => areas.mean(),
            Some(weights) => {
                let weights = areas.graph().constant(weights.clone());
                (areas * &weights).sum().div_no_nan(weights.sum())
            }
        }
    }
}

impl Described for Auc {
    const CLASS: &'static str = "AUC";

    fn template() -> Auc {
        Auc::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Auc {
        // The number of labels follows from their shape.
        fields.ignored("num_labels");
        fields.only_read("thresholds", &[Json::Null]);
        let summations = [
            ("interpolation", Summation::Interpolation),
            ("minoring", Summation::Minoring),
            ("majoring", Summation::Majoring),
        ];
        let label_weights = self.label_weights.clone().map(Numbers);
        Auc {
            name: name_and_dtype(fields, &self.name, MetricValue::name(self)),
            curve: fields.choice("curve", &self.curve, &[("ROC", Curve::Roc), ("PR", Curve::Pr)]),
            summation: fields.choice("summation_method", &self.summation, &summations),
            n_thresholds: fields.value("num_thresholds", &self.n_thresholds),
            by_label: fields.value("multi_label", &self.by_label),
            label_weights: fields.value("label_weights", &label_weights).map(|numbers| numbers.0),
            logits: fields.value("from_logits", &self.logits),
        }
    }
}

impl MetricValue for Auc {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("auc")
    }

    fn apply(&self, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
        self.of(labels, predictions, weights)
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}

impl Default for Auc {
    fn default() -> Auc {
        Auc::new()
    }
}

/// The area under the ROC curve (true over false positive rates): the probability that a true
/// example ranks above a false one.
///
/// A label is true unless it is 0. A probability outside of 0 to 1 is an error at run time; if one
/// is NaN, the area is NaN. Without true labels or without false labels the area is 0. [`Auc`] has
/// more settings.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric;
/// use estimand_nn::testing::metric_value;
///
/// let g = Graph::new();
/// let (labels, probabilities) = (g.constant([0i64, 0, 1, 1]), g.constant([0.1f32, 0.4, 0.35, 0.8]));
/// // Of the four pairs of a true and a false one, three are in order.
/// assert_eq!(metric_value(&metric::auc(&labels, &probabilities, None), &[vec![]])?, 0.75);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn auc(labels: &Tensor, probabilities: &Tensor, weights: Option<&Tensor>) -> Metric {
    Auc::new().of(labels, probabilities, weights)
}

/// The area under the curve of precision over recall: `auc_precision_recall` of the Estimator's
/// heads.
///
/// Between two thresholds the counts of positives are interpolated. The precision is not, since it
/// is not a straight line (Davis and Goadrich 2006). This is Keras's default, and
/// `careful_interpolation` of `tf.compat.v1.metrics.auc`. Inputs are those of [`auc`].
#[track_caller]
pub fn auc_precision_recall(labels: &Tensor, probabilities: &Tensor, weights: Option<&Tensor>) -> Metric {
    Auc::new().curve(Curve::Pr).of(labels, probabilities, weights)
}
