//! `MultiClassHead`: one class of several.

use estimand_graph::Tensor;
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::metric::{self, Metric};
use estimand_nn::{Loss, SparseSoftmaxCrossEntropy};
use estimand_tensor::{DType, Error, Result};
use indexmap::IndexMap;

use super::classes::{Classes, between, class_setters, class_weights_setter};
use super::json::written;
use super::scored::{LossKind, Scored};
use super::settings::{Settings, head_setters, loss_fn_setter};
use super::{Head, LabelledBatch, Measures, Predictions, Reporting};
use crate::ExportOutput;

/// Predicts one of several classes from one logit per class.
///
/// Labels are `[batch]` or `[batch, 1]`, class numbers or terms of a vocabulary. The loss is the
/// softmax cross entropy.
///
/// | | |
/// |---|---|
/// | predictions | `logits`, `probabilities`, `class_ids`, `classes`, `all_class_ids`, `all_classes` |
/// | metrics | `accuracy`, `average_loss` |
/// | exports | classification (the default), `predict` |
#[derive(Clone, Debug)]
#[must_use]
pub struct MultiClassHead {
    settings: Settings,
    classes: Classes,
}

impl MultiClassHead {
    /// A head for labels from 0 to `n_classes - 1`.
    pub fn new(n_classes: usize) -> MultiClassHead {
        MultiClassHead { settings: Settings::default(), classes: Classes::new(n_classes) }
    }

    /// Returns labels as class numbers.
    fn labels(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Tensor> {
        let _scope = logits.graph().scope("labels");
        batch.dense_labels_by(logits, 1, |labels| {
            if let Some(ids) = self.classes.looked_up(labels)? {
                return Ok(ids);
            }
            if !matches!(labels.dtype(), DType::I32 | DType::I64) {
                let message = format!("the labels are {}; expected class numbers", labels.describe());
                return Err(Error::dtype(Some(DType::I64), labels.dtype(), message)
                    .help("cast them to i64, or give the head a .label_vocabulary([..])"));
            }
            // The softmax op itself detects labels that are not classes, and names them.
            Ok(match self.settings.loss_fn.is_none() && self.classes.weights.is_none() {
                true => labels.clone(),
                false => between(labels, 0.0, (self.classes.n - 1) as f64),
            })
        })
    }

    fn metrics(&self, scored: &Scored, logits: &Tensor, rows: Option<&Tensor>) -> Result<IndexMap<String, Metric>> {
        let weights = scored.weights(rows);
        let accuracy = metric::sparse_categorical_accuracy(&scored.labels, logits, weights.as_ref());
        let average_loss = scored.average_loss(weights.as_ref());
        Ok(IndexMap::from([
            (self.settings.key("accuracy"), accuracy),
            (self.settings.key("average_loss"), average_loss),
        ]))
    }
}

head_setters!(MultiClassHead, settings);
loss_fn_setter!(MultiClassHead, "`[batch, 1]`");
class_setters!(MultiClassHead, "class numbers");
class_weights_setter!(MultiClassHead);

const LOSS: LossKind = LossKind {
    width: 1,
    weights_by_logit: false,
    default: |cx| SparseSoftmaxCrossEntropy::new().elements(cx.labels, cx.logits).expand_dims(-1),
};

impl Described for MultiClassHead {
    const CLASS: &'static str = "MultiClassHead";

    fn template() -> MultiClassHead {
        MultiClassHead::new(0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> MultiClassHead {
        let n = fields.required("n_classes", &self.classes.n);
        MultiClassHead {
            settings: self.settings.fields_without_functions(fields),
            classes: Classes { n, ..self.classes.fields(fields) },
        }
    }
}

impl Head for MultiClassHead {
    fn name(&self) -> Option<String> {
        self.settings.name.clone()
    }

    fn logits_dimension(&self) -> usize {
        self.classes.n
    }

    fn reporting(&self) -> &Reporting {
        &self.settings.reporting
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn check(&self) -> Result<()> {
        self.settings.check()?;
        self.classes.check()
    }

    fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
        let class_ids = logits.argmax(-1).expand_dims(-1);
        let classes = self.classes.names_of(&class_ids)?;
        Ok(Predictions::from([
            ("logits".into(), logits.clone()),
            ("probabilities".into(), logits.softmax()),
            ("class_ids".into(), class_ids),
            ("classes".into(), classes),
            ("all_class_ids".into(), self.classes.all_ids(logits)?),
            ("all_classes".into(), self.classes.all_names(logits)?),
        ]))
    }

    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
        Ok(super::spec::classification(predictions, "all_classes"))
    }

    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
        let labels = self.labels(batch, logits)?;
        let class_weights = self.classes.weights().map(|weights| logits.graph().constant(weights).gather(&labels));
        let scored = self.settings.score(batch, logits, labels, &LOSS)?.class_weights(class_weights);
        let (head, logits) = (self.clone(), logits.clone());
        Ok(Measures::new(scored.loss(), move |rows| head.metrics(&scored, &logits, rows)))
    }
}
