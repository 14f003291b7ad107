//! `MultiLabelHead`: any number of several classes at once.

use estimand_graph::{Axes, RaggedTensor, Tensor};
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::metric::{self, Metric};
use estimand_tensor::{DType, Error, Result};
use indexmap::IndexMap;

use super::binary_class::{at_thresholds, check_thresholds};
use super::classes::{Classes, between, class_setters};
use super::json::written;
use super::scored::{LossKind, Scored};
use super::settings::{Settings, head_setters, loss_fn_setter};
use super::{Head, LabelledBatch, Measures, Predictions, Reporting, Term};
use crate::{ExportOutput, Input};

/// Predicts yes or no for each of several classes, from one logit per class.
///
/// Labels are numbers from 0 to 1 of shape `[batch, n_classes]`. They may also be rows of any
/// number of class numbers or vocabulary terms. The loss is the mean over classes of the sigmoid
/// cross entropy.
///
/// | | |
/// |---|---|
/// | predictions | `logits`, `probabilities`, `classes` (the names of all) |
/// | metrics | `auc`, `auc_precision_recall`, `average_loss`; for each threshold `accuracy/positive_threshold_t`, `precision/...`, `recall/...`; for chosen classes `probability_mean/class0`, `auc/class0`, `auc_precision_recall/class0`, or the name of a class in a vocabulary for `class0` |
/// | exports | classification (the default), `predict` |
#[derive(Clone, Debug)]
#[must_use]
pub struct MultiLabelHead {
    settings: Settings,
    classes: Classes,
    thresholds: Vec<f64>,
    of_classes: Vec<Term>,
}

impl MultiLabelHead {
    /// Makes a head for `n_classes` classes.
    pub fn new(n_classes: usize) -> MultiLabelHead {
        MultiLabelHead {
            settings: Settings::default(),
            classes: Classes::new(n_classes),
            thresholds: Vec::new(),
            of_classes: Vec::new(),
        }
    }

    /// Sets probability thresholds, between 0 and 1, above which a class counts as predicted.
    /// Accuracy, precision and recall are reported for each. By default, for none.
    pub fn thresholds(mut self, thresholds: impl IntoIterator<Item = f64>) -> MultiLabelHead {
        self.thresholds = thresholds.into_iter().collect();
        self
    }

    /// Selects classes, by number or by name, that get their own metrics. By default, none.
    pub fn metrics_of_classes<T: Into<Term>>(mut self, classes: impl IntoIterator<Item = T>) -> MultiLabelHead {
        self.of_classes = classes.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the number of a class that has its own metrics.
    fn class_id(&self, class: &Term) -> Result<usize> {
        let error = |text: String| Error::config(format!("metrics were asked for class `{class}`{text}"));
        match class {
            Term::Int(id) => usize::try_from(*id)
                .ok()
                .filter(|id| *id < self.classes.n)
                .ok_or_else(|| error(format!("; expected 0 to {}", self.classes.n - 1))),
            Term::Text(name) => {
                let terms = self.classes.vocabulary.as_ref().ok_or_else(|| {
                    error(", but the head has no label vocabulary".into())
                        .help("name the classes with .label_vocabulary([..])")
                })?;
                terms.iter().position(|term| term == class).ok_or_else(|| {
                    let names: Vec<String> = terms.iter().map(Term::to_string).collect();
                    let error = error(", which is not in the label vocabulary".into());
                    error.suggest(name, names.iter().map(String::as_str))
                })
            }
        }
    }

    /// Returns labels as numbers `[batch, n_classes]`.
    fn labels(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Tensor> {
        let _scope = logits.graph().scope("labels");
        let ragged = match batch.label()? {
            Input::Dense(labels) if labels.dtype() != DType::Str => {
                let labels = batch.dense_labels_by(logits, self.classes.n, |labels| Ok(between(labels, 0.0, 1.0)))?;
                return Ok(labels.cast(DType::F32));
            }
            Input::Dense(labels) => RaggedTensor::from_dense(labels),
            Input::Ragged(ragged) => ragged.clone(),
        };
        let dtype = ragged.values.dtype();
        let is_number = matches!(dtype, DType::I32 | DType::I64);
        let names_numbers = matches!(self.classes.vocabulary.as_deref(), Some([Term::Int(_), ..]));
        let table = match is_number && !names_numbers {
            // TF: labels that are class numbers stay class numbers even if the vocabulary has
            // strings.
            true => None,
            false => self.classes.table_for(&ragged.values)?,
        };
        let ids = match table {
            Some(table) => table.lookup_known_ragged(&ragged, "label"),
            None if is_number => ragged.ensure_between(0.0, (self.classes.n - 1) as f64, "label"),
            None => {
                let message = format!("the labels are {}; expected class numbers", ragged.values.describe());
                return Err(Error::dtype(Some(DType::I64), dtype, message));
            }
        };
        // A class that a row names twice counts once.
        Ok(ids.multi_hot(self.classes.n, None).minimum(1.0))
    }

    fn metrics(&self, scored: &Scored, logits: &Tensor, rows: Option<&Tensor>) -> Result<IndexMap<String, Metric>> {
        let (labels, weights) = (&scored.labels, scored.weights(rows));
        let weights = weights.as_ref();
        let probabilities = logits.sigmoid();
        let mut metrics = vec![
            ("auc".to_string(), metric::auc(labels, &probabilities, weights)),
            ("auc_precision_recall".into(), metric::auc_precision_recall(labels, &probabilities, weights)),
            ("average_loss".into(), scored.average_loss(weights)),
        ];
        metrics.extend(at_thresholds(&self.thresholds, labels, &probabilities, weights));
        for class in &self.of_classes {
            let id = self.class_id(class)?;
            let name = match &self.classes.vocabulary {
                Some(_) => self.classes.name(id),
                None => format!("class{id}"),
            };
            let (label, p) = (column(labels, id), column(&probabilities, id));
            metrics.push((format!("probability_mean/{name}"), metric::mean(&p, weights)));
            metrics.push((format!("auc/{name}"), metric::auc(&label, &p, weights)));
            metrics.push((format!("auc_precision_recall/{name}"), metric::auc_precision_recall(&label, &p, weights)));
        }
        Ok(metrics.into_iter().map(|(key, metric)| (self.settings.key(&key), metric)).collect())
    }
}

/// Returns one column of the last axis.
fn column(x: &Tensor, i: usize) -> Tensor {
    let leading = x.rank().saturating_sub(1);
    let begin: Vec<usize> = std::iter::repeat_n(0, leading).chain([i]).collect();
    let size: Vec<i64> = std::iter::repeat_n(-1, leading).chain([1]).collect();
    x.slice(&begin, &size)
}

head_setters!(MultiLabelHead, settings);
loss_fn_setter!(MultiLabelHead, "`[batch, 1]`");
class_setters!(MultiLabelHead, "class numbers");

const LOSS: LossKind = LossKind {
    width: 1,
    weights_by_logit: false,
    default: |cx| cx.logits.sigmoid_cross_entropy(cx.labels).mean_axes(Axes::of([-1]).keep_dims()),
};

impl Described for MultiLabelHead {
    const CLASS: &'static str = "MultiLabelHead";

    fn template() -> MultiLabelHead {
        MultiLabelHead::new(0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> MultiLabelHead {
        let n = fields.required("n_classes", &self.classes.n);
        MultiLabelHead {
            settings: self.settings.fields_without_functions(fields),
            classes: Classes { n, ..self.classes.fields(fields) },
            thresholds: fields.value("thresholds", &self.thresholds),
            of_classes: fields.value("metrics_of_classes", &self.of_classes),
        }
    }
}

impl Head for MultiLabelHead {
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
        self.classes.check()?;
        self.of_classes.iter().try_for_each(|class| self.class_id(class).map(|_| ()))?;
        check_thresholds(&self.thresholds)
    }

    fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
        Ok(Predictions::from([
            ("logits".into(), logits.clone()),
            ("probabilities".into(), logits.sigmoid()),
            ("classes".into(), self.classes.all_names(logits)?),
        ]))
    }

    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
        Ok(super::spec::classification(predictions, "classes"))
    }

    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
        let labels = self.labels(batch, logits)?;
        let scored = self.settings.score(batch, logits, labels, &LOSS)?;
        let (head, logits) = (self.clone(), logits.clone());
        Ok(Measures::new(scored.loss(), move |rows| head.metrics(&scored, &logits, rows)))
    }
}
