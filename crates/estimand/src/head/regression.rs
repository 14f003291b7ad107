//! `RegressionHead`: predicts numbers.

use std::fmt;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::metric::{self, Metric};
use estimand_tensor::{DType, Error, Result};
use indexmap::IndexMap;

use super::classes::between;
use super::json::written;
use super::scored::{LossKind, Scored};
use super::settings::{Settings, function, head_setters, loss_fn_setter};
use super::{ExampleLoss, Examples, Head, LabelledBatch, Measures, Predictions, Reporting};
use crate::{ExportOutput, SERVING_DEFAULT};

/// Predicts one or more numbers for each example, from one logit per number.
///
/// Labels are `[batch, label_dimension]`, or `[batch]` if the dimension is 1. Weights are per
/// example or per label. The loss is the squared error.
///
/// | | |
/// |---|---|
/// | predictions | `predictions`; with an inverse link also `logits` |
/// | metrics | `average_loss`, `label/mean`, `prediction/mean` |
/// | exports | `regression` (the default), `predict` |
#[derive(Clone, Debug)]
#[must_use]
pub struct RegressionHead {
    pub(super) settings: Settings,
    label_dimension: usize,
    inverse_link: Option<Link>,
    label_range: Option<(f64, f64)>,
}

/// A function from logits to predictions.
#[derive(Clone)]
struct Link(Arc<dyn Fn(&Tensor) -> Tensor + Send + Sync>);

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

impl RegressionHead {
    /// A head for one number.
    pub fn new() -> RegressionHead {
        RegressionHead { settings: Settings::default(), label_dimension: 1, inverse_link: None, label_range: None }
    }

    /// Sets how many numbers there are for each example. By default, 1.
    pub fn label_dimension(mut self, n: usize) -> RegressionHead {
        self.label_dimension = n;
        self
    }

    /// Sets a function from logits to predictions, such as `Tensor::exp`. The loss is computed from
    /// logits. By default, logits are the predictions.
    pub fn inverse_link_fn(mut self, link: impl Fn(&Tensor) -> Tensor + Send + Sync + 'static) -> RegressionHead {
        self.inverse_link = Some(Link(Arc::new(link)));
        self
    }

    /// Sets the allowed range of labels; others fail the run. By default, any number.
    pub(super) fn with_settings(self, settings: Settings) -> RegressionHead {
        RegressionHead { settings, ..self }
    }

    /// The fields that heads of this kind share: all but functions.
    pub(super) fn shared_fields(&self, fields: &mut Fields<'_>) -> RegressionHead {
        RegressionHead {
            settings: self.settings.fields(fields),
            label_dimension: fields.value("label_dimension", &self.label_dimension),
            inverse_link: self.inverse_link.clone(),
            label_range: self.label_range,
        }
    }

    pub(super) fn label_range(mut self, low: f64, high: f64) -> RegressionHead {
        self.label_range = Some((low, high));
        self
    }

    /// Returns labels as numbers, checked against the range if there is one.
    fn labels(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Tensor> {
        let _scope = logits.graph().scope("labels");
        let labels =
            batch.dense_labels_by(logits, self.label_dimension, |labels| match (labels.dtype(), self.label_range) {
                (DType::Str, _) => {
                    Err(Error::dtype(Some(DType::F32), DType::Str, "the labels are strings; expected numbers"))
                }
                (_, Some((low, high))) => Ok(between(labels, low, high)),
                (_, None) => Ok(labels.clone()),
            })?;
        Ok(labels.cast(DType::F32))
    }

    fn predicted(&self, logits: &Tensor) -> Tensor {
        match &self.inverse_link {
            Some(Link(link)) => link(logits),
            None => logits.clone(),
        }
    }

    fn metrics(&self, scored: &Scored, logits: &Tensor, rows: Option<&Tensor>) -> Result<IndexMap<String, Metric>> {
        let weights = scored.weights(rows);
        let weights = weights.as_ref();
        Ok(IndexMap::from([
            (self.settings.key("average_loss"), scored.average_loss(weights)),
            (self.settings.key("label/mean"), metric::mean(&scored.labels, weights)),
            (self.settings.key("prediction/mean"), metric::mean(&self.predicted(logits), weights)),
        ]))
    }
}

impl Default for RegressionHead {
    fn default() -> RegressionHead {
        RegressionHead::new()
    }
}

head_setters!(RegressionHead, settings);
loss_fn_setter!(RegressionHead, "`[batch, label_dimension]`");

impl Described for RegressionHead {
    const CLASS: &'static str = "RegressionHead";

    fn template() -> RegressionHead {
        RegressionHead::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RegressionHead {
        if self.inverse_link.is_some() {
            fields.refuse(function("inverse_link_fn"));
        }
        if self.settings.loss_fn.is_some() {
            fields.refuse(function("loss_fn"));
        }
        self.shared_fields(fields)
    }
}

impl Head for RegressionHead {
    fn name(&self) -> Option<String> {
        self.settings.name.clone()
    }

    fn logits_dimension(&self) -> usize {
        self.label_dimension
    }

    fn reporting(&self) -> &Reporting {
        &self.settings.reporting
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn check(&self) -> Result<()> {
        if self.label_dimension == 0 {
            return Err(Error::config("the label dimension is 0; expected at least 1"));
        }
        self.settings.check()
    }

    fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
        let mut predictions = Predictions::from([("predictions".to_string(), self.predicted(logits))]);
        if self.inverse_link.is_some() {
            predictions.insert("logits".into(), logits.clone());
        }
        Ok(predictions)
    }

    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
        let Some(value) = predictions.get("predictions") else {
            return Err(Error::config("there is no prediction `predictions` to export"));
        };
        let value = ExportOutput::Regression { value: value.clone() };
        Ok(IndexMap::from([
            (SERVING_DEFAULT.into(), value.clone()),
            ("regression".into(), value),
            ("predict".into(), ExportOutput::Predict(predictions.clone())),
        ]))
    }

    fn example_loss(&self) -> Option<ExampleLoss> {
        self.settings.example_loss(ExampleLoss::Squared)
    }

    fn examples(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Examples> {
        let labels = self.labels(batch, logits)?;
        Ok(Examples { labels, weights: batch.weights(self.settings.weight_column.as_deref(), logits, true)? })
    }

    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
        let labels = self.labels(batch, logits)?;
        let loss = LossKind {
            width: self.label_dimension,
            weights_by_logit: true,
            default: |cx| (cx.logits - cx.labels).square(),
        };
        let scored = self.settings.score(batch, logits, labels, &loss)?;
        let (head, logits) = (self.clone(), logits.clone());
        Ok(Measures::new(scored.loss(), move |rows| head.metrics(&scored, &logits, rows)))
    }
}
