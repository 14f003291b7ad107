//! Heads: from the logits of a model to its loss, predictions, metrics and what is exported.
//!
//! A head is a plain value. A model function computes logits and leaves the rest to
//! [`HeadSpec::spec`], which is the same for all of them (`spec.rs`). In the order a batch passes
//! through: `batch.rs` (labels, weights and features as heads see them), one file for each head,
//! `scored.rs` (losses of examples, weighted and reduced), `slice.rs` (metrics of some rows),
//! `spec.rs`. `settings.rs` holds what all heads can be told, `classes.rs` the names of classes,
//! `all.rs` the list of heads, `testing.rs` what every head must do.
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
mod generalized;
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

use estimand_graph::Tensor;
use estimand_nn::metric::Metric;
use estimand_tensor::Result;
use indexmap::IndexMap;

use crate::{EstimatorSpec, ExportOutput, ModelFnContext};

pub use all::{ALL_HEADS, HeadExample};
pub use batch::LabelledBatch;
pub use binary_class::BinaryClassHead;
pub use generalized::{LogisticRegressionHead, PoissonRegressionHead};
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

/// What a model predicts and how wrong it is, from its logits.
///
/// Logits are `[batch, ..., logits_dimension]`. Whoever implements this gets [`HeadSpec::spec`],
/// slices and feature pass-through for free; [`testing::check_head`] tells whether the
/// implementation keeps the contract.
pub trait Head: fmt::Debug + Send + Sync {
    /// A name that metrics and losses are told apart by.
    fn name(&self) -> Option<String>;

    /// The size of the last axis of the logits.
    fn logits_dimension(&self) -> usize;

    /// Which features pass through to the predictions, and by what metrics are sliced.
    fn reporting(&self) -> &Reporting;

    /// Whether the configuration can work: an error says what is wrong with it, and how to put it
    /// right.
    fn check(&self) -> Result<()>;

    /// The predictions, one row for each example.
    fn predictions(&self, logits: &Tensor) -> Result<Predictions>;

    /// What an exported model answers, from the predictions; the first one is the default.
    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>>;

    /// What TensorBoard shows a number of the head as: the key with the head's name behind it.
    fn summary_key(&self, key: &str) -> String {
        suffixed(self.name().as_deref(), key)
    }

    /// How many scopes called `training` TensorFlow's head opens: one for itself, and those of the
    /// heads in it. Optimizers keep their slots under the last of them, `training` or
    /// `training_<number of those before>`. By default, 1.
    fn n_training_scopes(&self) -> usize {
        1
    }

    /// The loss of a batch, without what regularizers add to it, and its metrics.
    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures>;
}

/// What every head can do, also behind a pointer.
pub trait HeadSpec: Head {
    /// The spec that a model function returns: loss, predictions, metrics and export outputs, and
    /// how to train. Regularization losses of the graph are added to the loss.
    fn spec<'a>(
        &self,
        cx: &ModelFnContext<'_>,
        logits: &Tensor,
        training: impl Into<Training<'a>>,
    ) -> Result<EstimatorSpec> {
        spec::assemble(self, cx, logits, training.into())
    }
}

impl<H: Head + ?Sized> HeadSpec for H {}

type MetricsFn = dyn Fn(Option<&Tensor>) -> Result<IndexMap<String, Metric>>;

/// How wrong the predictions of a batch are.
pub struct Measures {
    loss: Tensor,
    /// Losses that are parts of the loss, by the tags of their summaries.
    parts: Vec<(String, Tensor)>,
    metrics: Box<MetricsFn>,
}

impl Measures {
    /// A loss, and a function that makes the metrics: of all rows, or of those that have a weight
    /// of 1 in a tensor `[batch]` of 0 and 1.
    pub fn new(
        loss: Tensor,
        metrics: impl Fn(Option<&Tensor>) -> Result<IndexMap<String, Metric>> + 'static,
    ) -> Measures {
        Measures { loss, parts: Vec::new(), metrics: Box::new(metrics) }
    }

    /// Adds losses that are parts of the loss, by the tags of their summaries: training shows them.
    #[must_use]
    pub fn parts(mut self, parts: impl IntoIterator<Item = (String, Tensor)>) -> Measures {
        self.parts.extend(parts);
        self
    }

    /// The loss of the batch: one number.
    pub fn loss(&self) -> &Tensor {
        &self.loss
    }

    /// The metrics by key, of all rows or of some.
    pub fn metrics(&self, rows: Option<&Tensor>) -> Result<IndexMap<String, Metric>> {
        (self.metrics)(rows)
    }
}

impl fmt::Debug for Measures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measures").field("loss", &self.loss).finish_non_exhaustive()
    }
}

/// A key with the name of its head behind it.
fn suffixed(name: Option<&str>, key: &str) -> String {
    match name {
        Some(name) => format!("{key}/{name}"),
        None => key.to_string(),
    }
}
