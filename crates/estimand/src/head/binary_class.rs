//! `BinaryClassHead`: one of two classes.

use estimand_graph::Tensor;
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::metric::{self, Metric};
use estimand_tensor::{DType, Error, Result};
use indexmap::IndexMap;

use super::classes::{Classes, class_setters, class_weights_setter};
use super::json::written;
use super::scored::{LossKind, Scored};
use super::settings::{Settings, head_setters, loss_fn_setter};
use super::{ExampleLoss, Examples, Head, LabelledBatch, Measures, Predictions, Reporting};
use crate::ExportOutput;

/// Predicts one of two classes from one logit, that of the second class.
///
/// Labels are `[batch]` or `[batch, 1]`, numbers from 0 to 1 (a fraction is a probability) or terms
/// of a vocabulary. The loss is the sigmoid cross entropy.
///
/// | | |
/// |---|---|
/// | predictions | `logits`, `logistic`, `probabilities` (both classes), `class_ids`, `classes`, `all_class_ids`, `all_classes` |
/// | metrics | `accuracy`, `accuracy_baseline`, `auc`, `auc_precision_recall`, `average_loss`, `label/mean`, `precision`, `prediction/mean`, `recall`; for each threshold `accuracy/positive_threshold_t`, `precision/...`, `recall/...` |
/// | exports | classification (the default), `regression` (`logistic`), `predict` |
#[derive(Clone, Debug)]
#[must_use]
pub struct BinaryClassHead {
    settings: Settings,
    classes: Classes,
    thresholds: Vec<f64>,
}

impl BinaryClassHead {
    /// A head for labels 0 and 1.
    pub fn new() -> BinaryClassHead {
        BinaryClassHead { settings: Settings::default(), classes: Classes::new(2), thresholds: Vec::new() }
    }

    /// Sets probability thresholds, between 0 and 1, above which a prediction counts as the second
    /// class. Accuracy, precision and recall are reported for each. By default, only for 0.5.
    pub fn thresholds(mut self, thresholds: impl IntoIterator<Item = f64>) -> BinaryClassHead {
        self.thresholds = thresholds.into_iter().collect();
        self
    }
}

impl Default for BinaryClassHead {
    fn default() -> BinaryClassHead {
        BinaryClassHead::new()
    }
}

head_setters!(BinaryClassHead, settings);
loss_fn_setter!(BinaryClassHead, "`[batch, 1]`");
class_setters!(BinaryClassHead, "0 and 1");
class_weights_setter!(BinaryClassHead);

/// What to do about a label of a third class.
const MORE_CLASSES: &str = "there are two classes by default: set their number with .n_classes(..), or with \
                            MultiClassHead; labels that are not 0 and 1 need a .label_vocabulary([..])";

const LOSS: LossKind =
    LossKind { width: 1, weights_by_logit: false, default: |cx| cx.logits.sigmoid_cross_entropy(cx.labels) };

impl Described for BinaryClassHead {
    const CLASS: &'static str = "BinaryClassHead";

    fn template() -> BinaryClassHead {
        BinaryClassHead::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> BinaryClassHead {
        BinaryClassHead {
            settings: self.settings.fields_without_functions(fields),
            classes: self.classes.fields(fields),
            thresholds: fields.value("thresholds", &self.thresholds),
        }
    }
}

impl Head for BinaryClassHead {
    fn name(&self) -> Option<String> {
        self.settings.name.clone()
    }

    fn logits_dimension(&self) -> usize {
        1
    }

    fn reporting(&self) -> &Reporting {
        &self.settings.reporting
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn check(&self) -> Result<()> {
        self.settings.check()?;
        self.classes.check()?;
        check_thresholds(&self.thresholds)
    }

    fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
        // Both classes: the logit of the first is 0, and the first wins a tie.
        let both = Tensor::concat(&[&logits.zeros_like(), logits], -1);
        let class_ids = both.argmax(-1).expand_dims(-1);
        let classes = self.classes.names_of(&class_ids)?;
        Ok(Predictions::from([
            ("logits".into(), logits.clone()),
            ("logistic".into(), logits.sigmoid()),
            ("probabilities".into(), both.softmax()),
            ("class_ids".into(), class_ids),
            ("classes".into(), classes),
            ("all_class_ids".into(), self.classes.all_ids(logits)?),
            ("all_classes".into(), self.classes.all_names(logits)?),
        ]))
    }

    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
        let mut outputs = super::spec::classification(predictions, "all_classes");
        if let Some(logistic) = predictions.get("logistic") {
            outputs.insert("regression".into(), ExportOutput::Regression { value: logistic.clone() });
        }
        Ok(outputs)
    }

    fn example_loss(&self) -> Option<ExampleLoss> {
        self.settings.example_loss(ExampleLoss::Logistic)
    }

    fn examples(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Examples> {
        let labels = self.labels(batch, logits)?;
        let own = batch.weights(self.settings.weight_column.as_deref(), logits, false)?;
        let weights = match (own, self.weights_of_classes(&labels)) {
            (Some(own), Some(of_class)) => Some(own * of_class),
            (own, of_class) => own.or(of_class),
        };
        Ok(Examples { labels, weights })
    }

    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
        let labels = self.labels(batch, logits)?;
        let class_weights = self.weights_of_classes(&labels);
        let scored = self.settings.score(batch, logits, labels, &LOSS)?.class_weights(class_weights);
        let (head, logits) = (self.clone(), logits.clone());
        Ok(Measures::new(scored.loss(), move |rows| head.metrics(&scored, &logits, rows)))
    }
}

impl BinaryClassHead {
    /// Returns the weights of classes for each label. A fractional label gets its share of both.
    fn weights_of_classes(&self, labels: &Tensor) -> Option<Tensor> {
        match self.classes.weights.as_deref() {
            Some(&[first, second]) => Some(labels * (second - first) + first),
            _ => None,
        }
    }

    /// Returns labels as numbers from 0 to 1.
    fn labels(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Tensor> {
        let _scope = logits.graph().scope("labels");
        let labels = batch.dense_labels_by(logits, 1, |labels| {
            Ok(match self.classes.looked_up(labels)? {
                Some(ids) => ids,
                None if labels.dtype() == DType::Bool => labels.cast(DType::F32),
                None => labels.ensure_between_or_help(0.0, 1.0, "label", MORE_CLASSES),
            })
        })?;
        Ok(labels.cast(DType::F32))
    }

    fn metrics(&self, scored: &Scored, logits: &Tensor, rows: Option<&Tensor>) -> Result<IndexMap<String, Metric>> {
        let (labels, weights) = (&scored.labels, scored.weights(rows));
        let weights = weights.as_ref();
        let logistic = logits.sigmoid();
        // TF: the class is 1 if the logit is above 0, even if the probability was rounded to 0.5.
        let class_ids = logits.greater(0.0).cast(DType::F32);
        let mut metrics = vec![
            ("accuracy".to_string(), metric::accuracy(labels, &class_ids, weights)),
            ("accuracy_baseline".into(), accuracy_baseline(labels, weights)),
            ("auc".into(), metric::auc(labels, &logistic, weights)),
            ("auc_precision_recall".into(), metric::auc_precision_recall(labels, &logistic, weights)),
            ("average_loss".into(), scored.average_loss(weights)),
            ("label/mean".into(), metric::mean(labels, weights)),
            ("precision".into(), metric::precision(labels, &class_ids, 0.5, weights)),
            ("prediction/mean".into(), metric::mean(&logistic, weights)),
            ("recall".into(), metric::recall(labels, &class_ids, 0.5, weights)),
        ];
        metrics.extend(at_thresholds(&self.thresholds, labels, &logistic, weights));
        Ok(metrics.into_iter().map(|(key, metric)| (self.settings.key(&key), metric)).collect())
    }
}

/// The accuracy of always predicting the more frequent label.
fn accuracy_baseline(labels: &Tensor, weights: Option<&Tensor>) -> Metric {
    let sums = metric::mean(labels, weights).sums().to_vec();
    Metric::new(sums, |sums| sums[0].maximum(&sums[1] - &sums[0]).div_no_nan(&sums[1]))
}

/// Checks that all thresholds lie between 0 and 1.
pub(super) fn check_thresholds(thresholds: &[f64]) -> Result<()> {
    match thresholds.iter().find(|t| !(**t > 0.0 && **t < 1.0)) {
        None => Ok(()),
        Some(t) => Err(Error::config(format!("a threshold is {t}; expected a number above 0 and below 1"))),
    }
}

/// Accuracy, precision and recall of probabilities at each threshold.
pub(super) fn at_thresholds(
    thresholds: &[f64],
    labels: &Tensor,
    probabilities: &Tensor,
    weights: Option<&Tensor>,
) -> Vec<(String, Metric)> {
    let at = |&t: &f64| {
        let key = |what: &str| format!("{what}/positive_threshold_{}", general(t));
        [
            (key("accuracy"), metric::binary_accuracy(labels, probabilities, t, weights)),
            (key("precision"), metric::precision(labels, probabilities, t, weights)),
            (key("recall"), metric::recall(labels, probabilities, t, weights)),
        ]
    };
    thresholds.iter().flat_map(at).collect()
}

/// Formats a number between 0 and 1 like C's `%g`, which TensorFlow uses in its keys.
fn general(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_string();
    match exponent {
        ..=-5 => format!("{}e-{:02}", trimmed(digits), -exponent),
        _ => trimmed(&format!("{value:.decimals$}", decimals = usize::try_from(5 - exponent).unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    /// As `'%g' % value` in Python.
    #[test]
    fn thresholds_are_written_as_in_c() {
        for (value, text) in [
            (0.5, "0.5"),
            (0.25, "0.25"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.000012345678, "1.23457e-05"),
            (1e-120, "1e-120"),
            (0.9999999, "1"),
            (0.999999, "0.999999"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
