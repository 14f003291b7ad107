//! A batch as heads see it: features, labels and weights, in shapes that match the logits.

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use crate::{Input, Inputs, ModelFnContext};

/// Features, labels and weights of a batch in training and evaluation.
#[derive(Clone, Debug)]
pub struct LabelledBatch {
    pub(super) features: Inputs,
    pub(super) labels: Inputs,
    pub(super) weights: Option<Tensor>,
}

impl LabelledBatch {
    /// Returns the batch of a model function.
    pub fn new(cx: &ModelFnContext<'_>) -> LabelledBatch {
        LabelledBatch { features: cx.features().clone(), labels: cx.labels().clone(), weights: cx.weights().cloned() }
    }

    /// The features.
    pub fn features(&self) -> &Inputs {
        &self.features
    }

    /// Returns the labels of a head. It is an error unless there is exactly one.
    pub fn label(&self) -> Result<&Input> {
        let mut labels = self.labels.iter();
        match (labels.next(), labels.len()) {
            (Some((_, label)), 0) => Ok(label),
            (None, _) => {
                Err(Error::config("the input has no labels").help("name the label of the dataset with .label(name)"))
            }
            _ => {
                let names: Vec<_> = self.labels.names().collect();
                let message = format!("the input has the labels {}, but the head takes one label", names.join(", "));
                Err(Error::config(message).help("use a MultiHead with one head for each label"))
            }
        }
    }

    /// Returns the same batch with only one of its labels.
    pub fn only_label(&self, name: &str) -> Result<LabelledBatch> {
        let label = self.labels.find(name)?.clone();
        let labels = Inputs::of(self.labels.graph(), "label", [(name.to_string(), label)]);
        Ok(LabelledBatch { labels, ..self.clone() })
    }

    /// Returns dense labels as `[..., width]`, matching logits `[..., n]`. A last axis of 1 may be
    /// missing.
    pub fn dense_labels(&self, logits: &Tensor, width: usize) -> Result<Tensor> {
        self.dense_labels_by(logits, width, |labels| Ok(labels.clone()))
    }

    /// Returns dense labels after `numbers` has converted them. The conversion comes before the
    /// reshape, so that the host checks exactly the fed labels and the step does the rest.
    pub(super) fn dense_labels_by(
        &self,
        logits: &Tensor,
        width: usize,
        numbers: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let labels = match self.label()? {
            Input::Dense(labels) => labels,
            Input::Ragged(_) => {
                return Err(Error::shape("the labels have rows of different length")
                    .help("give this head the same number of labels for each example"));
            }
        };
        let rows = leading(logits)?;
        let is_list = labels.rank() == rows.len() && width == 1;
        let column: Shape = rows.iter().copied().chain([Dim::Known(width)]).collect();
        let expected = if is_list { rows.iter().copied().collect() } else { column.clone() };
        if !fits(labels, &expected) {
            let error = Error::shape(format!("the labels are {}; expected {column}", labels.describe()));
            return Err(error.help(match width {
                1 => "give one label for each row of the logits",
                _ => "give each row as many labels as the head has logits",
            }));
        }
        let labels = numbers(labels)?;
        Ok(if is_list { labels.expand_dims(-1) } else { labels })
    }

    /// Returns the weights of examples: `[..., 1]`, matching logits `[..., n]`, or `[..., n]` if
    /// each logit has its own weight. They come from a feature, from the batch, or are the product
    /// of both.
    pub fn weights(&self, column: Option<&str>, logits: &Tensor, by_logit: bool) -> Result<Option<Tensor>> {
        let own = self.weights.as_ref().map(|weights| beside(weights, logits, false)).transpose()?;
        let Some(name) = column else { return Ok(own) };
        let column = match self.features.find(name)? {
            Input::Dense(tensor) => tensor,
            Input::Ragged(_) => {
                return Err(Error::shape(format!(
                    "the weights `{name}` have rows of different length; expected one weight for each row"
                )));
            }
        };
        if matches!(column.dtype(), DType::Str | DType::Bool) {
            let message = format!("the weights `{name}` are {}; expected numbers", column.dtype());
            return Err(Error::dtype(Some(DType::F32), column.dtype(), message));
        }
        let column = beside(column, logits, by_logit).map_err(|e| e.context(format!("in the weights `{name}`")))?;
        Ok(Some(match own {
            Some(own) => own * column,
            None => column,
        }))
    }
}

/// Returns all axes of logits but the last.
pub(super) fn leading(logits: &Tensor) -> Result<&[Dim]> {
    match logits.shape().dims() {
        [rows @ .., _] if !rows.is_empty() => Ok(rows),
        _ => Err(Error::shape(format!("the logits are {}; expected at least two axes", logits.describe()))),
    }
}

/// Returns whether a tensor has a shape, as far as is known before the run.
pub(super) fn fits(tensor: &Tensor, expected: &Shape) -> bool {
    let apart = |(a, b): (&Dim, &Dim)| a.known().is_some() && b.known().is_some() && a != b;
    let dims = tensor.shape().dims();
    dims.len() == expected.rank() && !dims.iter().zip(expected.dims()).any(apart)
}

fn beside(weights: &Tensor, logits: &Tensor, by_logit: bool) -> Result<Tensor> {
    let rows = leading(logits)?;
    let with = |last: &Dim| rows.iter().copied().chain([*last]).collect::<Shape>();
    let one = with(&Dim::Known(1));
    let spread = match weights.rank() == rows.len() {
        true => weights.expand_dims(-1),
        false => weights.clone(),
    };
    let alike = by_logit && logits.shape().dims().last().is_some_and(|last| fits(&spread, &with(last)));
    if !fits(&spread, &one) && !alike {
        let error =
            Error::shape(format!("the weights {} do not fit the logits {}", weights.describe(), logits.describe()));
        return Err(error.help("give one weight for each example"));
    }
    Ok(spread.cast(DType::F32))
}

/// Returns whether `holds` is true for each row of a feature: for its only value, or for any of
/// several.
pub(super) fn any_of_row(input: &Input, holds: impl Fn(&Tensor) -> Tensor) -> Tensor {
    match input {
        Input::Dense(tensor) => {
            let found = holds(tensor).cast(DType::F32);
            let axes: Vec<i64> = (1..found.rank() as i64).collect();
            match axes.is_empty() {
                true => found,
                false => found.max_axes(&axes),
            }
        }
        Input::Ragged(RaggedTensor { values, row_splits }) => {
            let found = RaggedTensor::new(&holds(values).cast(DType::F32), row_splits);
            found.sum().greater(0.0).cast(DType::F32)
        }
    }
}
