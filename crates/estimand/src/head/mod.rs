//! Heads: they turn the logits of a model into its loss, predictions, metrics and exports.
//!
//! A head is a plain value. A model function computes logits and leaves the rest to
//! [`HeadSpec::spec`], which is the same for all heads (`spec.rs`). A batch passes through these
//! files in order: `batch.rs` (labels, weights and features as heads see them), one file for each
//! head, `scored.rs` (weighted and reduced losses of examples), `slice.rs` (metrics of some rows),
//! `spec.rs`. `settings.rs` holds the settings of all heads, `classes.rs` the names of classes,
//! `json.rs` writes and reads heads as JSON, `all.rs` is the list of heads, `testing.rs` the
//! contract of every head.
//!
//! ```
//! use estimand::prelude::*;
//!
//! fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
//!     let logits = Dense::new(3).apply(&cx.feature("x"));
//!     MultiClassHead::new(3).spec(cx, &logits, Optimizer::new(Adam::default(), 0.01))
//! }
//! ```

mod all;
mod batch;
mod binary_class;
mod classes;
mod delegate;
mod examples;
mod generalized;
mod json;
mod multi;
mod multi_class;
mod multi_label;
mod regression;
mod scored;
mod sequential;
mod settings;
mod slice;
mod spec;
pub mod testing;

use std::fmt;
use std::panic::Location;

use estimand_graph::Tensor;
use estimand_nn::config::Json;
use estimand_nn::metric::Metric;
use estimand_tensor::{Error, Result};
use indexmap::IndexMap;

use crate::{EstimatorSpec, ExportOutput, ModelFnContext};

pub use all::{ALL_HEADS, HeadExample};
pub use batch::LabelledBatch;
pub use binary_class::BinaryClassHead;
pub use examples::{ExampleLoss, Examples};
pub use generalized::{LogisticRegressionHead, PoissonRegressionHead};
pub(crate) use json::SharedHead;
pub use json::from_json;
pub use multi::MultiHead;
pub use multi_class::MultiClassHead;
pub use multi_label::MultiLabelHead;
pub use regression::RegressionHead;
pub use sequential::SequentialHeadWrapper;
pub use settings::{LossContext, Reporting};
pub use slice::Term;
pub use spec::{TrainOpFn, Training};

/// Tensors by key.
pub type Predictions = IndexMap<String, Tensor>;

/// Turns the logits of a model into predictions and a loss.
///
/// Logits are `[batch, ..., logits_dimension]`. Every implementation gets [`HeadSpec::spec`],
/// slices and feature pass-through for free. [`testing::check_head`] checks that an implementation
/// keeps the contract.
pub trait Head: fmt::Debug + Send + Sync {
    /// A name that distinguishes the head's metrics and losses.
    fn name(&self) -> Option<String>;

    /// The size of the last axis of the logits.
    fn logits_dimension(&self) -> usize;

    /// The features to pass through to the predictions, and the features to slice metrics by.
    fn reporting(&self) -> &Reporting;

    /// Checks the configuration. An error says what is wrong and how to fix it.
    fn check(&self) -> Result<()>;

    /// The predictions, one row for each example.
    fn predictions(&self, logits: &Tensor) -> Result<Predictions>;

    /// The outputs of an exported model, from the predictions; the first one is the default.
    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>>;

    /// Returns the TensorBoard tag of a number of the head: the key followed by the head's name.
    fn summary_key(&self, key: &str) -> String {
        suffixed(self.name().as_deref(), key)
    }

    /// The number of scopes called `training` that TensorFlow's head opens: one for itself, and
    /// those of the heads in it. Optimizers keep their slots under the last of them, `training` or
    /// `training_<number of scopes before it>`. By default, 1.
    fn n_training_scopes(&self) -> usize {
        1
    }

    /// The feature that marks the steps that exist, if this is a head of sequences: booleans
    /// `[batch, steps]`. A network over sequences adds it to the features. By default, `None`.
    fn sequence_mask(&self) -> Option<&str> {
        None
    }

    /// The head as JSON; [`from_json`] reads it back. A custom head implements
    /// [`Described`](estimand_nn::config::Described) and calls
    /// [`config::write`](estimand_nn::config::write). By default it cannot be written.
    fn to_json(&self) -> Result<Json> {
        Err(Error::unsupported(format!("the head {self:?} cannot be written as JSON"))
            .help("implement `Described` for it, and `to_json` with `config::write`"))
    }

    /// The loss of an example, if it is one that solvers of linear models know. By default, none.
    fn example_loss(&self) -> Option<ExampleLoss> {
        None
    }

    /// Returns the labels and weights of a batch for a solver of the head's
    /// [loss](Head::example_loss). By default, it is an error.
    fn examples(&self, _batch: &LabelledBatch, _logits: &Tensor) -> Result<Examples> {
        Err(Error::unsupported(format!("the head {self:?} has no examples for a solver of linear models"))
            .help("use BinaryClassHead, RegressionHead, LogisticRegressionHead or PoissonRegressionHead"))
    }

    /// Returns the loss of a batch, without regularization losses, and its metrics.
    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures>;
}

/// Methods that every head has, also through a pointer.
pub trait HeadSpec: Head {
    /// Returns the spec of a model function: loss, predictions, metrics, export outputs and
    /// training. Regularization losses of the graph are added to the loss.
    #[track_caller]
    fn spec<'a>(
        &self,
        cx: &ModelFnContext<'_>,
        logits: &Tensor,
        training: impl Into<Training<'a>>,
    ) -> Result<EstimatorSpec> {
        spec::assemble(self, cx, logits, training.into(), Location::caller())
    }
}

impl<H: Head + ?Sized> HeadSpec for H {}

type MetricsFn = dyn Fn(Option<&Tensor>) -> Result<IndexMap<String, Metric>>;

/// The loss and the metrics of a batch.
pub struct Measures {
    loss: Tensor,
    /// Terms of the loss, by the tags of their summaries.
    parts: Vec<(String, Tensor)>,
    metrics: Box<MetricsFn>,
}

impl Measures {
    /// Makes measures of a loss and a function that makes the metrics. The function gets `None` for
    /// all rows, or a tensor `[batch]` with 1 for each row to include and 0 for others.
    pub fn new(
        loss: Tensor,
        metrics: impl Fn(Option<&Tensor>) -> Result<IndexMap<String, Metric>> + 'static,
    ) -> Measures {
        Measures { loss, parts: Vec::new(), metrics: Box::new(metrics) }
    }

    /// Adds terms of the loss, by the tags of their summaries. Training writes them to TensorBoard.
    #[must_use]
    pub fn parts(mut self, parts: impl IntoIterator<Item = (String, Tensor)>) -> Measures {
        self.parts.extend(parts);
        self
    }

    /// The loss of the batch, a scalar.
    pub fn loss(&self) -> &Tensor {
        &self.loss
    }

    /// Returns the metrics by key, of all rows or of some.
    pub fn metrics(&self, rows: Option<&Tensor>) -> Result<IndexMap<String, Metric>> {
        (self.metrics)(rows)
    }
}

impl fmt::Debug for Measures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measures").field("loss", &self.loss).finish_non_exhaustive()
    }
}

/// Appends the name of the head to a key.
fn suffixed(name: Option<&str>, key: &str) -> String {
    match name {
        Some(name) => format!("{key}/{name}"),
        None => key.to_string(),
    }
}
