//! What TensorBoard shows of a model beside its loss: scalars, histograms, images, texts and
//! curves.
//!
//! A model function names tensors; a [`SummarySaverHook`](crate::hook::SummarySaverHook) writes
//! their values down every so often. Steps between do not compute what nobody reads. Whether
//! anything is shown changes no bit of what is trained, and a number that is not finite is no
//! reason to end a training: it is told once, and the rest is written.
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

/// A tensor to be shown.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) tag: String,
    pub(crate) kind: SummaryKind,
    // No tensor: a tensor holds its graph, and the graph of a model holds its summaries.
    pub(crate) value: Value,
}

impl Summary {
    /// Whether its values of several batches, added up, are that of all of them.
    pub(crate) fn adds_up(&self) -> bool {
        self.kind == SummaryKind::PrCurve
    }
}

#[derive(Debug, Default)]
struct List(RefCell<Vec<Summary>>);

/// A list of tensors to be shown: a model's own, which
/// [`ModelFnContext::summary`](crate::ModelFnContext::summary) adds to, or one for a
/// [`SummarySaverHook`](crate::hook::SummarySaverHook) of its own.
///
/// Names get the path of the open scopes before them. A name that is there already gets `_1`, `_2`,
/// ..., and a character that is no letter, digit, `.`, `-`, `_` or `/` becomes `_`, as in
/// TensorFlow. A tensor that cannot be shown in a way is an error of the build, with the name and
/// the line.
#[derive(Clone)]
pub struct Summaries {
    graph: Graph,
    list: Rc<List>,
}

impl Summaries {
    /// An empty list of a graph's tensors, apart from the model's own.
    pub fn new(graph: &Graph) -> Summaries {
        Summaries { graph: graph.clone(), list: Rc::default() }
    }

    /// The model's own.
    pub(crate) fn of(graph: &Graph) -> Summaries {
        Summaries { graph: graph.clone(), list: graph.attachment() }
    }

    /// A number.
    #[track_caller]
    pub fn scalar(&self, name: &str, tensor: &Tensor) -> &Summaries {
        let one = tensor.shape().dims().iter().all(|&dim| dim == Dim::Known(1));
        let fits = tensor.dtype().is_number() && one;
        self.add(name, SummaryKind::Scalar, tensor, fits.then_some(()).ok_or("one number"))
    }

    /// How the numbers of a tensor of any shape are spread.
    #[track_caller]
    pub fn histogram(&self, name: &str, tensor: &Tensor) -> &Summaries {
        self.add(name, SummaryKind::Histogram, tensor, tensor.dtype().is_number().then_some(()).ok_or("numbers"))
    }

    /// The first `max_outputs` images of `[n, height, width, channels]` with 1, 3 or 4 channels.
    ///
    /// u8 is shown as it is. f32 is scaled, each image on its own: to 0..255 if no value is
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

    /// Texts; TensorBoard reads them as Markdown, and shows one or two axes as a table.
    #[track_caller]
    pub fn text(&self, name: &str, tensor: &Tensor) -> &Summaries {
        self.add(name, SummaryKind::Text, tensor, (tensor.dtype() == DType::Str).then_some(()).ok_or("strings"))
    }

    /// Precision over recall at `num_thresholds` thresholds from 0 to 1. Labels are true unless
    /// they are 0; a prediction counts as positive if it is not below the threshold. Labels have
    /// the shape of the predictions, and weights that or one that stretches to it. Evaluation shows
    /// the curve of all batches, training that of one.
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

    /// What is to be shown, in the order it was added.
    pub(crate) fn all(&self) -> Ref<'_, Vec<Summary>> {
        self.list.0.borrow()
    }

    #[track_caller]
    fn add(&self, name: &str, kind: SummaryKind, tensor: &Tensor, fits: Result<(), &str>) -> &Summaries {
        if tensor.is_poisoned() {
            return self;
        }
        let error = match fits {
            Err(expected) => Error::shape(format!("{}; expected {expected}", tensor.describe())),
            Ok(()) if !tensor.graph().same(&self.graph) => {
                Error::config(format!("{} belongs to another graph", tensor.describe()))
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

    /// Of the tags alone: a summary changes no name of the graph, on which random numbers depend.
    fn unique(&self, tag: &str) -> String {
        let list = self.all();
        let is_free = |tag: &String| list.iter().all(|summary| summary.tag != *tag);
        let numbered = (1..).map(|n| format!("{tag}_{n}"));
        std::iter::once(tag.to_string()).chain(numbered).find(is_free).unwrap_or_default()
    }
}

/// TF: the name of a summary is one that a node could have.
fn clean(tag: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    let clean: String = tag.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    let clean = clean.trim_start_matches('/');
    if clean != tag {
        info!("Summary name {tag} is illegal; using {clean} instead.");
    }
    clean.to_string()
}
