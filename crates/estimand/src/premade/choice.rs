//! The head of a premade estimator: the settings of classifiers and regressors, and heads given by
//! the user.

use std::fmt;
use std::sync::Arc;

use estimand_nn::Reduction;
use estimand_tensor::Result;

use super::{Network, Premade};
use crate::head::{BinaryClassHead, Head, MultiClassHead, RegressionHead, SequentialHeadWrapper, Term};

/// The settings of a head, from which a premade estimator makes its head.
pub trait HeadChoice {
    /// Makes the head.
    fn head(self) -> Result<Arc<dyn Head>>;
}

/// Settings that classifiers and regressors share.
#[derive(Clone, Debug, Default)]
struct Shared {
    weight_column: Option<String>,
    reduction: Option<Reduction>,
    forward: Vec<String>,
    slices: Vec<(String, Vec<Term>)>,
}

/// The head of a classifier, with two classes or more.
#[derive(Clone, Debug)]
#[must_use]
pub struct Classifier {
    n_classes: usize,
    label_vocabulary: Option<Vec<Term>>,
    class_weights: Option<Vec<f64>>,
    shared: Shared,
    /// Whether every step of a sequence has its own class, and the name of the mask of steps.
    pub(super) return_sequences: bool,
    pub(super) sequence_mask: String,
}

impl Default for Classifier {
    fn default() -> Classifier {
        Classifier {
            n_classes: 2,
            label_vocabulary: None,
            class_weights: None,
            shared: Shared::default(),
            return_sequences: false,
            sequence_mask: "sequence_mask".to_string(),
        }
    }
}

/// The head of a regressor.
#[derive(Clone, Debug)]
#[must_use]
pub struct Regressor {
    label_dimension: usize,
    shared: Shared,
}

impl Default for Regressor {
    fn default() -> Regressor {
        Regressor { label_dimension: 1, shared: Shared::default() }
    }
}

/// A head given by the user.
#[derive(Clone)]
pub struct GivenHead(Arc<dyn Head>);

impl GivenHead {
    pub(super) fn new(head: impl Head + 'static) -> GivenHead {
        GivenHead(Arc::new(head))
    }
}

impl fmt::Debug for GivenHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Applies the shared settings of classifiers and regressors to a head.
macro_rules! told {
    ($head:expr, $shared:expr) => {{
        let (mut head, shared) = ($head, $shared);
        if let Some(column) = shared.weight_column {
            head = head.weight_column(column);
        }
        if let Some(reduction) = shared.reduction {
            head = head.loss_reduction(reduction);
        }
        for feature in shared.forward {
            head = head.forward_feature(feature);
        }
        for (feature, values) in shared.slices {
            head = head.slice_by(feature, values);
        }
        head
    }};
}

/// Applies the settings of classifiers to a head.
macro_rules! told_classes {
    ($head:expr, $choice:expr) => {{
        let (mut head, choice) = ($head, $choice);
        if let Some(terms) = choice.label_vocabulary {
            head = head.label_vocabulary(terms);
        }
        if let Some(weights) = choice.class_weights {
            head = head.class_weights(weights);
        }
        told!(head, choice.shared)
    }};
}

impl HeadChoice for Classifier {
    fn head(self) -> Result<Arc<dyn Head>> {
        let steps = self.return_sequences.then(|| self.sequence_mask.clone());
        let head: Arc<dyn Head> = match self.n_classes {
            2 => Arc::new(told_classes!(BinaryClassHead::new(), self)),
            n => Arc::new(told_classes!(MultiClassHead::new(n), self)),
        };
        Ok(match steps {
            Some(mask) => Arc::new(SequentialHeadWrapper::new(head).sequence_length_mask(mask)),
            None => head,
        })
    }
}

impl HeadChoice for Regressor {
    fn head(self) -> Result<Arc<dyn Head>> {
        Ok(Arc::new(told!(RegressionHead::new().label_dimension(self.label_dimension), self.shared)))
    }
}

impl HeadChoice for GivenHead {
    fn head(self) -> Result<Arc<dyn Head>> {
        Ok(self.0)
    }
}

impl<N: Network + 'static> Premade<N, Classifier> {
    /// Sets the number of classes. By default, 2: the head then has one logit, and metrics such as
    /// the AUC.
    pub fn n_classes(mut self, n: usize) -> Self {
        self.head.n_classes = n;
        self
    }

    /// Sets the names of the classes, as they occur in labels. By default, labels are class
    /// numbers.
    pub fn label_vocabulary<T: Into<Term>>(mut self, terms: impl IntoIterator<Item = T>) -> Self {
        self.head.label_vocabulary = Some(terms.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the weight of each class in the loss, in class order. It multiplies the weights of the
    /// examples. By default, all classes have equal weight.
    pub fn class_weights(mut self, weights: impl IntoIterator<Item = f64>) -> Self {
        self.head.class_weights = Some(weights.into_iter().collect());
        self
    }
}

impl<N: Network + 'static> Premade<N, Regressor> {
    /// Sets how many numbers a label has. By default, 1.
    pub fn label_dimension(mut self, n: usize) -> Self {
        self.head.label_dimension = n;
        self
    }
}

macro_rules! shared_setters {
    ($head:ty) => {
        impl<N: Network + 'static> Premade<N, $head> {
            /// Sets the feature that holds the weight of each example. By default, all examples
            /// have equal weight.
            pub fn weight_column(mut self, feature: impl Into<String>) -> Self {
                self.head.shared.weight_column = Some(feature.into());
                self
            }

            /// Sets how the losses of examples become the loss of a batch. By default, their
            /// weighted sum divided by their number.
            pub fn loss_reduction(mut self, reduction: Reduction) -> Self {
                self.head.shared.reduction = Some(reduction);
                self
            }

            /// Passes a feature through to the predictions under its own name, such as the id of a
            /// row. By default, no feature is passed through.
            pub fn forward_feature(mut self, feature: impl Into<String>) -> Self {
                self.head.shared.forward.push(feature.into());
                self
            }

            /// Reports every metric again for the rows in which a feature has each of these values.
            /// By default, metrics cover all rows only.
            pub fn slice_by<V: Into<Term>>(
                mut self,
                feature: impl Into<String>,
                values: impl IntoIterator<Item = V>,
            ) -> Self {
                self.head.shared.slices.push((feature.into(), values.into_iter().map(Into::into).collect()));
                self
            }
        }
    };
}

shared_setters!(Classifier);
shared_setters!(Regressor);
