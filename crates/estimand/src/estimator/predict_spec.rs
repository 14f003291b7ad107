//! `PredictSpec`, the input and settings of a prediction, and `Prediction`, its result.

use std::path::PathBuf;

use estimand_data::Dataset;
use estimand_tensor::Array;
use indexmap::IndexMap;

use crate::hook::Hook;
use crate::input_fn::InputFn;

/// Predictions by name; of one row, or of all rows of a batch.
pub type Prediction = IndexMap<String, Array>;

/// The input and the settings of a prediction.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) converts to it:
/// every row then gets all predictions.
#[must_use]
pub struct PredictSpec<'a> {
    pub(super) input: Box<dyn InputFn + 'a>,
    pub(super) keys: Option<Vec<String>>,
    pub(super) checkpoint: Option<PathBuf>,
    pub(super) by_batch: bool,
    pub(super) hooks: Vec<Box<dyn Hook + 'a>>,
}

impl<'a> PredictSpec<'a> {
    /// Predicts every row of an input. Labels are ignored.
    pub fn new(input: impl InputFn + 'a) -> PredictSpec<'a> {
        PredictSpec { input: Box::new(input), keys: None, checkpoint: None, by_batch: false, hooks: Vec::new() }
    }

    /// Selects predictions by name. By default, all. Names that the model does not have are
    /// ignored, but at least one must exist.
    pub fn keys<N: Into<String>>(mut self, keys: impl IntoIterator<Item = N>) -> PredictSpec<'a> {
        self.keys = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the checkpoint to predict with. By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> PredictSpec<'a> {
        self.checkpoint = Some(path.into());
        self
    }

    /// Sets whether whole batches are returned. By default, single rows.
    pub fn by_batch(mut self, by_batch: bool) -> PredictSpec<'a> {
        self.by_batch = by_batch;
        self
    }

    /// Adds a hook, before those of the model. The hook sees no loss, and each batch counts as a
    /// step.
    pub fn hook(mut self, hook: impl Hook + 'a) -> PredictSpec<'a> {
        self.hooks.push(Box::new(hook));
        self
    }
}

impl From<Dataset> for PredictSpec<'_> {
    fn from(data: Dataset) -> Self {
        PredictSpec::new(data)
    }
}

impl<'a> From<&'a Dataset> for PredictSpec<'a> {
    fn from(data: &'a Dataset) -> Self {
        PredictSpec::new(data)
    }
}
