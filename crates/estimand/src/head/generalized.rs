//! `PoissonRegressionHead` and `LogisticRegressionHead`: regression heads with another loss, a link
//! function, and a range of labels.

use estimand_graph::Tensor;
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::{LogPoisson, Loss};
use estimand_tensor::Result;
use indexmap::IndexMap;

use super::delegate::delegate_head;
use super::json::written;
use super::settings::{LossFn, head_setters};
use super::{ExampleLoss, Head, LabelledBatch, Measures, Predictions, RegressionHead, Reporting};
use crate::ExportOutput;

/// Predicts counts. Logits are the logarithms of the expected counts, predictions the expected
/// counts.
///
/// Labels are `[batch, label_dimension]`, or `[batch]` where that is 1, and not negative. The loss
/// is that of [`LogPoisson`]; keys are those of [`RegressionHead`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PoissonRegressionHead {
    regression: RegressionHead,
    full: bool,
}

impl PoissonRegressionHead {
    /// A head for one count.
    pub fn new() -> PoissonRegressionHead {
        let regression = RegressionHead::new().inverse_link_fn(Tensor::exp).label_range(0.0, f64::INFINITY);
        PoissonRegressionHead { regression, full: true }.compute_full_loss(true)
    }

    /// Sets how many counts there are for each example. By default, 1.
    pub fn label_dimension(mut self, n: usize) -> PoissonRegressionHead {
        self.regression = self.regression.label_dimension(n);
        self
    }

    /// Sets whether the loss has the term `ln(z!)`, which changes no gradient. By default, it has.
    pub fn compute_full_loss(mut self, full: bool) -> PoissonRegressionHead {
        let loss =
            move |labels: &Tensor, logits: &Tensor| LogPoisson::new().compute_full_loss(full).elements(labels, logits);
        self.full = full;
        self.regression.settings.loss_fn = Some(LossFn::new(move |cx| loss(cx.labels, cx.logits)));
        self.regression.settings.known_loss = Some(ExampleLoss::Poisson);
        self
    }
}

/// Predicts probabilities. Labels are numbers from 0 to 1, predictions the sigmoid of logits.
///
/// It equals [`BinaryClassHead`](super::BinaryClassHead) with fractional labels, without the parts
/// that apply to classes only: keys are those of [`RegressionHead`].
#[derive(Clone, Debug)]
#[must_use]
pub struct LogisticRegressionHead {
    regression: RegressionHead,
}

impl LogisticRegressionHead {
    /// A head for one probability.
    pub fn new() -> LogisticRegressionHead {
        let regression = RegressionHead::new().inverse_link_fn(Tensor::sigmoid).label_range(0.0, 1.0);
        let mut regression = regression.loss_fn(|cx| cx.logits.sigmoid_cross_entropy(cx.labels));
        regression.settings.known_loss = Some(ExampleLoss::Logistic);
        LogisticRegressionHead { regression }
    }
}

impl Default for PoissonRegressionHead {
    fn default() -> PoissonRegressionHead {
        PoissonRegressionHead::new()
    }
}

impl Default for LogisticRegressionHead {
    fn default() -> LogisticRegressionHead {
        LogisticRegressionHead::new()
    }
}

head_setters!(PoissonRegressionHead, regression.settings);
head_setters!(LogisticRegressionHead, regression.settings);
delegate_head!(PoissonRegressionHead, |head| &head.regression, written(head));
delegate_head!(LogisticRegressionHead, |head| &head.regression, written(head));

impl Described for PoissonRegressionHead {
    const CLASS: &'static str = "PoissonRegressionHead";

    fn template() -> PoissonRegressionHead {
        PoissonRegressionHead::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> PoissonRegressionHead {
        let regression = self.regression.shared_fields(fields);
        let full = fields.value("compute_full_loss", &self.full);
        PoissonRegressionHead { regression, full }.compute_full_loss(full)
    }
}

impl Described for LogisticRegressionHead {
    const CLASS: &'static str = "LogisticRegressionHead";

    fn template() -> LogisticRegressionHead {
        LogisticRegressionHead::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> LogisticRegressionHead {
        let regression = self.regression.clone();
        LogisticRegressionHead { regression: regression.with_settings(self.regression.settings.fields(fields)) }
    }
}
