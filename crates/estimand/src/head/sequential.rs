//! `SequentialHeadWrapper`: applies a head to every step of sequences.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::{Input, Inputs};
use estimand_tensor::{Dim, Error, Result, Shape};
use indexmap::IndexMap;

use super::json::{SharedHead, written};
use super::{Head, LabelledBatch, Measures, Predictions, Reporting, spec};
use crate::ExportOutput;

/// Applies a head to logits `[batch, steps, n]`. A mask marks the steps that exist; loss and
/// metrics of the wrapped head cover these steps only.
///
/// The mask is a feature `[batch, steps]`. Labels and features `[batch, steps, ...]` are split into
/// steps; labels may also be ragged. Features and weights with one value per row apply to all steps
/// of the row. Predictions are those of the wrapped head for all steps, and the mask under its
/// name.
#[derive(Clone, Debug)]
#[must_use]
pub struct SequentialHeadWrapper {
    head: Arc<dyn Head>,
    mask: String,
    reporting: Reporting,
}

impl SequentialHeadWrapper {
    /// Wraps a head. The mask is the feature `sequence_length_mask`.
    pub fn new(head: impl Head + 'static) -> SequentialHeadWrapper {
        // Slices are over steps, and the wrapped head's own measures make them.
        let reporting = Reporting { forward: head.reporting().forward.clone(), slices: Vec::new() };
        let wrapper = SequentialHeadWrapper { head: Arc::new(head), mask: String::new(), reporting };
        wrapper.sequence_length_mask("sequence_length_mask")
    }

    /// Sets the feature that marks the steps that exist. By default `sequence_length_mask`.
    pub fn sequence_length_mask(mut self, feature: impl Into<String>) -> SequentialHeadWrapper {
        self.reporting.forward.retain(|name| *name != self.mask);
        self.mask = feature.into();
        self.reporting.forward.push(self.mask.clone());
        self
    }

    /// Returns the steps that exist.
    fn steps(&self, batch: &LabelledBatch) -> Result<Steps> {
        let place = |e: Error| e.context("a head of sequences needs a mask that marks the steps that exist");
        let mask = match batch.features().find(&self.mask).map_err(place)? {
            Input::Dense(mask) if mask.rank() == 2 => mask,
            other => {
                let shown = match other {
                    Input::Dense(mask) => mask.describe(),
                    Input::Ragged(_) => "rows of different length".to_string(),
                };
                return Err(place(Error::shape(format!("mask `{}` is {shown}; expected [batch, steps]", self.mask))));
            }
        };
        Ok(Steps { mask: mask.clone(), places: mask.where_true() })
    }
}

/// The steps that exist: a mask `[batch, steps]`, and the positions where it is true.
struct Steps {
    mask: Tensor,
    places: Tensor,
}

impl Steps {
    /// Makes a batch whose rows are the steps.
    fn batch(&self, batch: &LabelledBatch) -> LabelledBatch {
        let of_steps = |input: &Input| match input {
            // One value per step; the length is known only at run time.
            Input::Ragged(ragged) if ragged.values.rank() == 1 => Some(ragged.values.reshape_as(self.column())),
            Input::Ragged(_) => None,
            Input::Dense(tensor) if tensor.rank() == 1 => Some(self.repeated(tensor)),
            Input::Dense(tensor) if self.is_of_rows(tensor) => Some(self.repeated(&tensor.squeeze(&[1]))),
            Input::Dense(tensor) => self.has_steps(tensor).then(|| self.of(tensor)),
        };
        let all = |inputs: &Inputs, what: &'static str| {
            let of_input = |(name, input): (&str, &Input)| Some((name.to_string(), Input::Dense(of_steps(input)?)));
            Inputs::of(inputs.graph(), what, inputs.iter().filter_map(of_input))
        };
        LabelledBatch {
            features: all(&batch.features, "feature of steps"),
            labels: all(&batch.labels, "label of steps"),
            weights: batch.weights.as_ref().map(|weights| self.repeated(weights)),
        }
    }

    /// Whether a tensor `[batch, 1]` has one value per row. If sequences have one step, that is the
    /// same.
    fn is_of_rows(&self, tensor: &Tensor) -> bool {
        let one = Some(&Dim::Known(1));
        tensor.rank() == 2 && tensor.shape().dims().get(1) == one && self.mask.shape().dims().get(1) != one
    }

    fn has_steps(&self, tensor: &Tensor) -> bool {
        match (tensor.shape().dims().get(1), self.mask.shape().dims().get(1)) {
            (Some(a), Some(b)) => a == b || a.known().is_none() || b.known().is_none(),
            _ => false,
        }
    }

    /// Repeats one value per row for each of its steps.
    fn repeated(&self, tensor: &Tensor) -> Tensor {
        let all = tensor.expand_dims(-1).broadcast_to(self.mask.shape().clone());
        all.boolean_mask_at(&self.mask, &self.places)
    }

    /// Returns the steps of a tensor `[batch, steps, ...]`, with at least one column.
    fn of(&self, tensor: &Tensor) -> Tensor {
        let steps = tensor.boolean_mask_at(&self.mask, &self.places);
        if steps.rank() == 1 { steps.expand_dims(-1) } else { steps }
    }

    fn column(&self) -> Shape {
        self.places.shape().dims().iter().copied().chain([Dim::Known(1)]).collect()
    }
}

impl Described for SequentialHeadWrapper {
    const CLASS: &'static str = "SequentialHeadWrapper";

    fn template() -> SequentialHeadWrapper {
        SequentialHeadWrapper::new(super::RegressionHead::new())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SequentialHeadWrapper {
        SequentialHeadWrapper {
            head: fields.required("head", &SharedHead(self.head.clone())).0,
            mask: fields.value("sequence_length_mask", &self.mask),
            reporting: self.reporting.fields(fields),
        }
    }
}

impl Head for SequentialHeadWrapper {
    fn name(&self) -> Option<String> {
        self.head.name()
    }

    fn logits_dimension(&self) -> usize {
        self.head.logits_dimension()
    }

    fn reporting(&self) -> &Reporting {
        &self.reporting
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn check(&self) -> Result<()> {
        self.head.check()
    }

    fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
        self.head.predictions(logits)
    }

    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
        self.head.export_outputs(predictions)
    }

    fn summary_key(&self, key: &str) -> String {
        self.head.summary_key(key)
    }

    fn n_training_scopes(&self) -> usize {
        self.head.n_training_scopes()
    }

    fn sequence_mask(&self) -> Option<&str> {
        Some(&self.mask)
    }

    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
        if logits.rank() < 3 {
            let error = Error::shape(format!("the logits are {}; expected [batch, steps, ...]", logits.describe()));
            return Err(error.context("in a head of sequences"));
        }
        let steps = self.steps(batch)?;
        let batch = steps.batch(batch);
        let measures = self.head.measures(&batch, &steps.of(logits))?;
        let head = self.head.clone();
        Ok(Measures::new(measures.loss().clone(), move |rows| match rows {
            Some(rows) => measures.metrics(Some(&steps.repeated(rows))),
            None => spec::metrics(&*head, &batch, &measures),
        }))
    }
}
