//! Summaries: scalars, histograms, images, texts and curves of a model for TensorBoard, in addition
//! to its loss.
//!
//! A model function registers tensors; a [`SummarySaverHook`](crate::hook::SummarySaverHook) writes
//! their values periodically. Other steps do not compute them. Summaries do not change a single bit
//! of the trained model. A number that is not finite does not end the training: it is logged once,
//! and the rest is written.
//!
//! ```
//! use estimand::prelude::*;
//!
//! fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
//!     let hidden = Dense::new(10).relu().apply(&cx.feature("x"));
//!     cx.summary().histogram("hidden", &hidden).scalar("mean_activation", &hidden.mean());
//!     let logits = Dense::new(3).apply(&hidden);
//!     MultiClassHead::new(3).spec(cx, &logits, Optimizer::new(Adam::default(), 0.01))
//! }
//! ```

mod convert;
mod histogram;
mod hparams;
mod image;
mod pr_curve;

pub(crate) use convert::{Converted, SummaryKind, pr_curve};
pub(crate) use hparams::{experiment, session_end, session_start};

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use estimand_graph::{Graph, Tensor, Value};
use estimand_tensor::{DType, Dim, Error, Result};
use tracing::info;

/// A tensor to show.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) tag: String,
    pub(crate) kind: SummaryKind,
    // A value and not a tensor: a tensor holds its graph, and the graph of a model holds its
    // summaries.
    pub(crate) value: Value,
}

impl Summary {
    /// Returns whether its values can be summed over batches.
    pub(crate) fn adds_up(&self) -> bool {
        self.kind == SummaryKind::PrCurve
    }
}

#[derive(Debug, Default)]
struct List(RefCell<Vec<Summary>>);

/// A list of tensors to show: the model's list, which
/// [`ModelFnContext::summary`](crate::ModelFnContext::summary) adds to, or a separate one for
/// another [`SummarySaverHook`](crate::hook::SummarySaverHook).
///
/// Names are prefixed with the path of the open scopes. A name that already exists gets `_1`, `_2`,
/// ... appended. A character other than a letter, digit, `.`, `-`, `_` or `/` becomes `_`, as in
/// TensorFlow. A tensor that a summary cannot show is a build error, with the name and the line.
#[derive(Clone)]
pub struct Summaries {
    graph: Graph,
    list: Rc<List>,
}

impl Summaries {
    /// Makes an empty list of a graph's tensors, separate from the model's list.
    pub fn new(graph: &Graph) -> Summaries {
        Summaries { graph: graph.clone(), list: Rc::default() }
    }

    /// Returns the model's list.
    pub(crate) fn of(graph: &Graph) -> Summaries {
        Summaries { graph: graph.clone(), list: graph.attachment() }
    }

    /// Adds a scalar.
    #[track_caller]
    pub fn scalar(&self, name: &str, tensor: &Tensor) -> &Summaries {
        let one = tensor.shape().dims().iter().all(|&dim| dim == Dim::Known(1));
        let fits = tensor.dtype().is_number() && one;
        self.add(name, SummaryKind::Scalar, tensor, fits.then_some(()).ok_or("one number"))
    }

    /// Adds a histogram of a tensor of any shape.
    #[track_caller]
    pub fn histogram(&self, name: &str, tensor: &Tensor) -> &Summaries {
        self.add(name, SummaryKind::Histogram, tensor, tensor.dtype().is_number().then_some(()).ok_or("numbers"))
    }

    /// Adds the first `max_outputs` images of `[n, height, width, channels]` with 1, 3 or 4
    /// channels.
    ///
    /// u8 is shown unchanged. f32 is scaled, each image separately: to 0..255 if no value is
    /// negative, otherwise around 128.
    #[track_caller]
    pub fn image(&self, name: &str, tensor: &Tensor, max_outputs: usize) -> &Summaries {
        let images = matches!(tensor.shape().dims(), [_, _, _, Dim::Known(1 | 3 | 4)]);
        let fits = images && matches!(tensor.dtype(), DType::U8 | DType::F32);
        let expected = "u8 or f32 of [n, height, width, channels] with 1, 3 or 4 channels";
        let fits = match max_outputs {
            0 => Err("at least one image to show"),
            _ => fits.then_some(()).ok_or(expected),
        };
        self.add(name, SummaryKind::Image { max_outputs }, tensor, fits)
    }

    /// Adds texts. TensorBoard renders them as Markdown, and shows one or two axes as a table.
    #[track_caller]
    pub fn text(&self, name: &str, tensor: &Tensor) -> &Summaries {
        self.add(name, SummaryKind::Text, tensor, (tensor.dtype() == DType::Str).then_some(()).ok_or("strings"))
    }

    /// Adds a precision-recall curve at `num_thresholds` thresholds from 0 to 1. Labels are true
    /// unless they are 0; a prediction counts as positive if it is not below the threshold. Labels
    /// have the shape of the predictions. Weights have that shape or one that broadcasts to it.
    /// Evaluation shows the curve of all batches, training that of one.
    #[track_caller]
    pub fn pr_curve(
        &self,
        name: &str,
        labels: &Tensor,
        predictions: &Tensor,
        num_thresholds: usize,
        weights: Option<&Tensor>,
    ) -> &Summaries {
        let tensors = || [labels, predictions].into_iter().chain(weights);
        if tensors().any(Tensor::is_poisoned) {
            return self;
        }
        if let Err(error) = pr_curve::check(labels, predictions, num_thresholds, weights) {
            self.graph.error(error.context(format!("in summary `{name}`")));
            return self;
        }
        let buckets = {
            let _scope = self.graph.scope("pr_curve");
            pr_curve::buckets(labels, predictions, num_thresholds, weights)
        };
        self.add(name, SummaryKind::PrCurve, &buckets, Ok(()))
    }

    /// Returns the tensors to show, in the order they were added.
    pub(crate) fn all(&self) -> Ref<'_, Vec<Summary>> {
        self.list.0.borrow()
    }

    #[track_caller]
    fn add(&self, name: &str, kind: SummaryKind, tensor: &Tensor, fits: Result<(), &str>) -> &Summaries {
        if tensor.is_poisoned() {
            return self;
        }
        let error = match fits {
            Err(expected) => Error::shape(format!("the tensor is {}; expected {expected}", tensor.describe())),
            Ok(()) if !tensor.graph().same(&self.graph) => {
                Error::config(format!("{} belongs to another graph", tensor.describe()))
                    .help("show tensors of the graph that the summaries belong to")
            }
            Ok(()) => {
                let tag = self.unique(&clean(&self.scoped(name)));
                self.list.0.borrow_mut().push(Summary { tag, kind, value: tensor.value() });
                return self;
            }
        };
        self.graph.error(error.context(format!("in summary `{name}`")));
        self
    }

    fn scoped(&self, name: &str) -> String {
        match self.graph.scope_path() {
            path if path.is_empty() => name.to_string(),
            path => format!("{path}/{name}"),
        }
    }

    /// Makes a tag unique among tags only: a summary must not change names in the graph, because
    /// random numbers depend on them.
    fn unique(&self, tag: &str) -> String {
        let list = self.all();
        let is_free = |tag: &String| list.iter().all(|summary| summary.tag != *tag);
        let numbered = (1..).map(|n| format!("{tag}_{n}"));
        std::iter::once(tag.to_string()).chain(numbered).find(is_free).unwrap_or_default()
    }
}

/// TF: the name of a summary must be a valid node name.
fn clean(tag: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    let clean: String = tag.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    let clean = clean.trim_start_matches('/');
    if clean != tag {
        info!("Summary name {tag} is illegal; using {clean} instead.");
    }
    clean.to_string()
}
