//! Heads that delegate to another head: pointers to heads, and heads that wrap another head and
//! change its settings.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_nn::config::Json;
use estimand_tensor::Result;
use indexmap::IndexMap;

use super::{Head, LabelledBatch, Measures, Predictions, Reporting};
use crate::ExportOutput;

/// Implements `Head` by delegation to the head that an expression returns.
///
/// A head that wraps another is a class of its own, which writes itself.
macro_rules! delegate_head {
    ($head:ty, |$self_:ident| $other:expr) => {
        crate::head::delegate::delegate_head!($head, |$self_| $other, Head::to_json($other));
    };
    ($head:ty, |$self_:ident| $other:expr, $json:expr) => {
        impl Head for $head {
            fn name(&self) -> Option<String> {
                let $self_ = self;
                Head::name($other)
            }

            fn logits_dimension(&self) -> usize {
                let $self_ = self;
                Head::logits_dimension($other)
            }

            fn reporting(&self) -> &Reporting {
                let $self_ = self;
                Head::reporting($other)
            }

            fn check(&self) -> Result<()> {
                let $self_ = self;
                Head::check($other)
            }

            fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
                let $self_ = self;
                Head::predictions($other, logits)
            }

            fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
                let $self_ = self;
                Head::export_outputs($other, predictions)
            }

            fn summary_key(&self, key: &str) -> String {
                let $self_ = self;
                Head::summary_key($other, key)
            }

            fn n_training_scopes(&self) -> usize {
                let $self_ = self;
                Head::n_training_scopes($other)
            }

            fn sequence_mask(&self) -> Option<&str> {
                let $self_ = self;
                Head::sequence_mask($other)
            }

            fn to_json(&self) -> Result<Json> {
                let $self_ = self;
                $json
            }

            fn example_loss(&self) -> Option<crate::head::ExampleLoss> {
                let $self_ = self;
                Head::example_loss($other)
            }

            fn examples(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<crate::head::Examples> {
                let $self_ = self;
                Head::examples($other, batch, logits)
            }

            fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
                let $self_ = self;
                Head::measures($other, batch, logits)
            }
        }
    };
}

pub(super) use delegate_head;

delegate_head!(Box<dyn Head>, |head| &**head);
delegate_head!(Arc<dyn Head>, |head| &**head);
