//! `MultiHead`: several tasks from one model.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::metric;
use estimand_tensor::{Error, Result};
use indexmap::IndexMap;

use super::json::{SharedHead, written};
use super::settings::reporting_setters;
use super::{Head, LabelledBatch, Measures, Predictions, Reporting, spec};
use crate::{ExportOutput, SERVING_DEFAULT};

/// Several heads with names, each with its part of the logits and its own labels.
///
/// Logits are those of all heads, concatenated in order. Labels are matched by the heads' names.
/// The loss is the weighted sum of the heads' losses.
///
/// | | |
/// |---|---|
/// | predictions | those of each head, as `head/key` |
/// | metrics | those of each head, and `loss/head` |
/// | summaries of a training | `loss`, and `loss/head` before its weight |
/// | exports | the first head's default (the default), each head's as `head` and `head/key`, `predict` with all |
///
/// ```
/// use estimand::head::MultiHead;
/// use estimand::prelude::*;
/// let both = MultiHead::new()
///     .head(BinaryClassHead::new().name("click"))
///     .weighted_head(0.1, RegressionHead::new().name("seconds"));
/// assert_eq!((both.logits_dimension(), Head::name(&both).as_deref()), (2, Some("click_seconds")));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MultiHead {
    heads: Vec<(Arc<dyn Head>, f64)>,
    reporting: Reporting,
}

impl MultiHead {
    /// Makes a MultiHead without heads.
    pub fn new() -> MultiHead {
        MultiHead::default()
    }

    /// Adds a head with a loss weight of 1.
    pub fn head(self, head: impl Head + 'static) -> MultiHead {
        self.weighted_head(1.0, head)
    }

    /// Adds a head whose loss is multiplied by a weight.
    pub fn weighted_head(mut self, weight: f64, head: impl Head + 'static) -> MultiHead {
        // A feature passes through once, even if several heads request it.
        for name in &head.reporting().forward {
            if !self.reporting.forward.contains(name) {
                self.reporting.forward.push(name.clone());
            }
        }
        self.heads.push((Arc::new(head), weight));
        self
    }

    /// Returns the heads with their names. All heads have names once `check` has passed.
    fn named(&self) -> impl Iterator<Item = (String, &Arc<dyn Head>)> {
        self.heads.iter().map(|(head, _)| (head.name().unwrap_or_default(), head))
    }

    /// Returns the logits of each head.
    fn split(&self, logits: &Tensor) -> Vec<Tensor> {
        let sizes: Vec<usize> = self.heads.iter().map(|(head, _)| head.logits_dimension()).collect();
        logits.split(&sizes, -1)
    }
}

reporting_setters!(MultiHead, reporting);

impl Described for MultiHead {
    const CLASS: &'static str = "MultiHead";

    fn template() -> MultiHead {
        MultiHead::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> MultiHead {
        let heads: Vec<SharedHead> = self.heads.iter().map(|(head, _)| SharedHead(head.clone())).collect();
        let weights: Vec<f64> = self.heads.iter().map(|(_, weight)| *weight).collect();
        let heads = fields.required("heads", &heads);
        let weights = fields.required("head_weights", &weights);
        if heads.len() != weights.len() {
            fields.refuse_here(&format!("there are {} weights for {} heads", weights.len(), heads.len()));
        }
        let heads = heads.into_iter().map(|head| head.0).zip(weights).collect();
        MultiHead { heads, reporting: self.reporting.fields(fields) }
    }
}

impl Head for MultiHead {
    fn name(&self) -> Option<String> {
        Some(self.named().map(|(name, _)| name).collect::<Vec<_>>().join("_"))
    }

    fn summary_key(&self, key: &str) -> String {
        // TF: summaries that several heads share have no name.
        key.to_string()
    }

    fn logits_dimension(&self) -> usize {
        self.heads.iter().map(|(head, _)| head.logits_dimension()).sum()
    }

    fn reporting(&self) -> &Reporting {
        &self.reporting
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn check(&self) -> Result<()> {
        if self.heads.is_empty() {
            return Err(Error::config("the MultiHead has no heads").help("add heads with .head(..)"));
        }
        let mut names = Vec::new();
        for (head, weight) in &self.heads {
            let Some(name) = head.name() else {
                return Err(Error::config(format!("a head of the MultiHead has no name: {head:?}"))
                    .help("give it the name of its label: .name(..)"));
            };
            if !weight.is_finite() {
                return Err(Error::config(format!(
                    "the weight of head `{name}` is {weight}; expected a finite number"
                )));
            }
            head.check().map_err(|e| e.context(format!("in head `{name}`")))?;
            if names.contains(&name) {
                return Err(Error::config(format!("two heads are named `{name}`"))
                    .help("give each head the name of its own label"));
            }
            names.push(name);
        }
        self.reporting.check()
    }

    fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
        let mut all = Predictions::new();
        for ((name, head), logits) in self.named().zip(self.split(logits)) {
            all.extend(head.predictions(&logits)?.into_iter().map(|(key, tensor)| (format!("{name}/{key}"), tensor)));
        }
        Ok(all)
    }

    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
        let mut all = IndexMap::new();
        for (name, head) in self.named() {
            let own = |(key, tensor): (&String, &Tensor)| {
                Some((key.strip_prefix(&name)?.strip_prefix('/')?.to_string(), tensor.clone()))
            };
            for (key, output) in head.export_outputs(&predictions.iter().filter_map(own).collect())? {
                if key != SERVING_DEFAULT {
                    all.insert(format!("{name}/{key}"), output);
                    continue;
                }
                all.entry(SERVING_DEFAULT.to_string()).or_insert_with(|| output.clone());
                all.insert(name.clone(), output);
            }
        }
        all.insert("predict".into(), ExportOutput::Predict(predictions.clone()));
        Ok(all)
    }

    fn n_training_scopes(&self) -> usize {
        // TF: each head makes an unused train op before the MultiHead makes its own.
        1 + self.heads.iter().map(|(head, _)| head.n_training_scopes()).sum::<usize>()
    }

    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
        let (mut parts, mut losses) = (Vec::new(), Vec::new());
        let mut total: Option<Tensor> = None;
        for ((head, weight), logits) in self.heads.iter().zip(self.split(logits)) {
            let name = head.name().unwrap_or_default();
            let place = |e: Error| e.context(format!("in head `{name}`"));
            let own = batch
                .only_label(&name)
                .map_err(|e| place(e.context("a MultiHead finds the label of each head by the name of the head")))?;
            let measures = head.measures(&own, &logits).map_err(place)?;
            // A nested MultiHead only shows the losses of its own heads.
            match measures.parts.is_empty() {
                true => losses.push((head.summary_key("loss"), measures.loss().clone())),
                false => losses.extend(measures.parts.iter().cloned()),
            }
            let loss = if *weight == 1.0 { measures.loss().clone() } else { measures.loss() * *weight };
            total = Some(total.map_or(loss.clone(), |total| total + loss));
            parts.push((head.clone(), own, measures));
        }
        let total = total.ok_or_else(|| Error::config("the MultiHead has no heads"))?;
        Ok(Measures::new(total, move |rows| {
            let mut all = IndexMap::new();
            for (head, batch, measures) in &parts {
                match rows {
                    // A slice has neither a batch loss nor slices of its own.
                    Some(rows) => all.extend(measures.metrics(Some(rows))?),
                    None => {
                        let key = format!("loss/{}", head.name().unwrap_or_default());
                        all.insert(key, metric::mean(measures.loss(), None));
                        all.extend(spec::metrics(&**head, batch, measures)?);
                    }
                }
            }
            Ok(all)
        })
        .parts(losses))
    }
}
