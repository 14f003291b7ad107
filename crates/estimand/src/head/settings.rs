//! The settings that all heads share, and their setters.

use std::fmt;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_nn::Reduction;
use estimand_nn::config::Fields;
use estimand_tensor::{Error, Result};

use super::batch::LabelledBatch;
use super::examples::ExampleLoss;
use super::slice::Slice;

/// The argument of a loss function.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossContext<'a> {
    /// The labels as the head interprets them: numbers in a shape that fits the logits.
    pub labels: &'a Tensor,
    /// The logits.
    pub logits: &'a Tensor,
    /// The batch, with its features.
    pub batch: &'a LabelledBatch,
}

/// A function that computes the loss of each example, without weights.
#[derive(Clone)]
pub(super) struct LossFn(Arc<dyn Fn(&LossContext<'_>) -> Tensor + Send + Sync>);

impl LossFn {
    pub(super) fn new(loss: impl Fn(&LossContext<'_>) -> Tensor + Send + Sync + 'static) -> LossFn {
        LossFn(Arc::new(loss))
    }

    pub(super) fn call(&self, cx: &LossContext<'_>) -> Tensor {
        (self.0)(cx)
    }
}

impl fmt::Debug for LossFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LossFn")
    }
}

/// Additional reports of a head: features that pass through, and metrics of some rows.
#[derive(Clone, Debug, Default)]
pub struct Reporting {
    pub(super) forward: Vec<String>,
    pub(super) slices: Vec<Slice>,
}

/// The reductions of a head by their names in TensorFlow.
const REDUCTIONS: [(&str, Reduction); 5] = [
    ("none", Reduction::None),
    ("sum", Reduction::Sum),
    ("weighted_mean", Reduction::Mean),
    ("weighted_sum_over_batch_size", Reduction::SumOverBatchSize),
    ("weighted_sum_by_nonzero_weights", Reduction::SumByNonzeroWeights),
];

/// The error of a head that cannot be written because it holds a function of the program.
pub(super) fn function(setter: &str) -> Error {
    let text = format!("the head's `{setter}` is a function of the program, which cannot be written as JSON");
    Error::unsupported(text).help("use a head without functions, or one of your own class")
}

impl Reporting {
    pub(super) fn fields(&self, fields: &mut Fields<'_>) -> Reporting {
        Reporting {
            forward: fields.value("forward_features", &self.forward),
            slices: fields.value("slices", &self.slices),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        self.slices.iter().try_for_each(Slice::check)
    }
}

/// The settings of a head with one kind of label.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) name: Option<String>,
    pub(super) weight_column: Option<String>,
    pub(super) reduction: Reduction,
    pub(super) loss_fn: Option<LossFn>,
    /// The loss that `loss_fn` computes, if it is a known one.
    pub(super) known_loss: Option<ExampleLoss>,
    pub(super) reporting: Reporting,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            name: None,
            weight_column: None,
            reduction: Reduction::SumOverBatchSize,
            loss_fn: None,
            known_loss: None,
            reporting: Reporting::default(),
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<()> {
        if self.reduction == Reduction::None {
            return Err(Error::config(
                "the loss reduction of the head is Reduction::None, but training needs one number",
            )
            .help("use SumOverBatchSize (the default), Sum, Mean or SumByNonzeroWeights"));
        }
        if self.name.as_deref() == Some("") {
            return Err(Error::config("the name of the head is empty").help("leave the name out, or set another"));
        }
        self.reporting.check()
    }

    /// All settings but the loss function.
    pub(super) fn fields(&self, fields: &mut Fields<'_>) -> Settings {
        Settings {
            name: fields.value("name", &self.name),
            weight_column: fields.value("weight_column", &self.weight_column),
            reduction: fields.choice("loss_reduction", &self.reduction, &REDUCTIONS),
            loss_fn: self.loss_fn.clone(),
            known_loss: self.known_loss,
            reporting: self.reporting.fields(fields),
        }
    }

    /// All settings. A loss function cannot be written.
    pub(super) fn fields_without_functions(&self, fields: &mut Fields<'_>) -> Settings {
        if self.loss_fn.is_some() {
            fields.refuse(function("loss_fn"));
        }
        self.fields(fields)
    }

    /// The loss of an example: the head's own, or that of a loss function, if it is a known one.
    pub(super) fn example_loss(&self, own: ExampleLoss) -> Option<ExampleLoss> {
        match &self.loss_fn {
            Some(_) => self.known_loss,
            None => Some(own),
        }
    }

    pub(super) fn key(&self, key: &str) -> String {
        super::suffixed(self.name.as_deref(), key)
    }
}

/// Setters for the [`Reporting`] in a head's field `$($at).+`.
macro_rules! reporting_setters {
    ($head:ty, $($at:ident).+) => {
        impl $head {
            /// In prediction, passes a feature through under its own name, such as the id of a row.
            /// By default, no feature is passed through.
            pub fn forward_feature(mut self, name: impl Into<String>) -> Self {
                self.$($at).+.forward.push(name.into());
                self
            }

            /// Reports every metric again for the rows in which a feature has each of these values:
            /// `accuracy` also as `accuracy/sex=Female`. By default, metrics cover all rows only.
            pub fn slice_by<V: Into<crate::head::Term>>(
                mut self,
                feature: impl Into<String>,
                values: impl IntoIterator<Item = V>,
            ) -> Self {
                let slice = crate::head::slice::Slice::new(feature.into(), values.into_iter().map(Into::into).collect());
                self.$($at).+.slices.push(slice);
                self
            }
        }
    };
}

/// Setters for the [`Settings`] in a head's field `$($at).+`.
macro_rules! head_setters {
    ($head:ty, $($at:ident).+) => {
        impl $head {
            /// Sets a name: metrics are reported as `accuracy/name`. By default, there is none.
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.$($at).+.name = Some(name.into());
                self
            }

            /// Sets the feature that holds the weight of each example. It multiplies the weights of
            /// the batch itself. By default, all examples have equal weight.
            pub fn weight_column(mut self, feature: impl Into<String>) -> Self {
                self.$($at).+.weight_column = Some(feature.into());
                self
            }

            /// Sets how the losses of examples become the loss of a batch. By default
            /// `SumOverBatchSize`: their weighted sum, divided by their number.
            pub fn loss_reduction(mut self, reduction: estimand_nn::Reduction) -> Self {
                self.$($at).+.reduction = reduction;
                self
            }
        }
        crate::head::settings::reporting_setters!($head, $($at).+.reporting);
    };
}

/// The setter of a custom loss.
macro_rules! loss_fn_setter {
    ($head:ty, $shape:literal) => {
        impl $head {
            #[doc = concat!("The loss of each example instead of the head's own: ", $shape, ", without weights.")]
            pub fn loss_fn(
                mut self,
                loss: impl Fn(&crate::head::LossContext<'_>) -> estimand_graph::Tensor + Send + Sync + 'static,
            ) -> Self {
                self.settings.loss_fn = Some(crate::head::settings::LossFn::new(loss));
                self
            }
        }
    };
}

pub(super) use {head_setters, loss_fn_setter, reporting_setters};
