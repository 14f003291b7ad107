//! `PredictSpec`: the input and the settings of a prediction.

use std::path::PathBuf;

use estimand_data::Dataset;

use crate::hook::Hook;
use crate::input_fn::InputFn;
use crate::model_folder::Which;

/// The input and the settings of a prediction.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) converts to it:
/// every row then gets all predictions.
#[must_use]
pub struct PredictSpec<'a> {
    pub(super) input: Box<dyn InputFn + 'a>,
    pub(super) keys: Option<Vec<String>>,
    pub(super) forwarded: Vec<String>,
    pub(super) checkpoint: Which,
    pub(super) untrained: bool,
    pub(super) by_batch: bool,
    pub(super) hooks: Vec<Box<dyn Hook + 'a>>,
}

/// Which model predicts what.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) checkpoint: Which,
    pub(super) untrained: bool,
    pub(super) keys: Option<Vec<String>>,
}

impl<'a> PredictSpec<'a> {
    /// Predicts every row of an input. Labels are ignored.
    pub fn new(input: impl InputFn + 'a) -> PredictSpec<'a> {
        PredictSpec {
            input: Box::new(input),
            keys: None,
            forwarded: Vec::new(),
            checkpoint: Which::Newest,
            untrained: false,
            by_batch: false,
            hooks: Vec::new(),
        }
    }

    /// Selects predictions by name. By default, all. Names that the model does not have are
    /// ignored, but at least one must exist.
    pub fn keys<N: Into<String>>(mut self, keys: impl IntoIterator<Item = N>) -> PredictSpec<'a> {
        self.keys = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// Adds features or labels of the input to the predictions, under their names: the key of a
    /// row, for example. By default, none.
    ///
    /// ```
    /// use estimand::prelude::*;
    ///
    /// # let folder = std::env::temp_dir().join(format!("estimand-doc-forward-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// let rows = [("id", Array::from([7i64, 8])), ("x", Array::from([1i64, 4])), ("y", Array::from([2f32, 8.0]))];
    /// let data = Dataset::from_arrays(rows).label("y");
    /// let model = LinearRegressor::new([numeric_column("x").into()]).model_dir(&folder).build()?;
    /// model.train(data.repeat(500).batch(2))?;
    ///
    /// let path = folder.join("predictions.csv");
    /// model.predict(PredictSpec::new(data.batch(2)).forward(["id", "y"])).write_csv(&path)?;
    /// let text = std::fs::read_to_string(&path).unwrap();
    /// assert!(text.starts_with("id,y,predictions\n7,2.0,"), "{text}");
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    pub fn forward<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> PredictSpec<'a> {
        self.forwarded = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the checkpoint to predict with. By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> PredictSpec<'a> {
        self.checkpoint = Which::At(path.into());
        self
    }

    /// Predicts with the checkpoint of the best evaluation during training. If a training had
    /// several evaluations, it is that of the first. By default, the newest checkpoint is used.
    pub fn best(mut self) -> PredictSpec<'a> {
        self.checkpoint = Which::Best(None);
        self
    }

    /// Predicts with the checkpoint of the best evaluation that has this name.
    pub fn best_of(mut self, evaluation: impl Into<String>) -> PredictSpec<'a> {
        self.checkpoint = Which::Best(Some(evaluation.into()));
        self
    }

    /// Predicts with initial weights if the model folder has no checkpoint, as TensorFlow does. By
    /// default, that is an error, unless a warm start or the model function sets the weights.
    pub fn untrained(mut self) -> PredictSpec<'a> {
        self.untrained = true;
        self
    }

    /// Sets whether whole batches are returned. By default, single rows.
    pub fn by_batch(mut self, by_batch: bool) -> PredictSpec<'a> {
        self.by_batch = by_batch;
        self
    }

    /// Returns the settings that decide which model predicts.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted { checkpoint: self.checkpoint.clone(), untrained: self.untrained, keys: self.keys.clone() }
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
