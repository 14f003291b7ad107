//! `MeanLoss`: any loss as a metric.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::value::{OWN_MODULE, name_and_dtype};
use super::{Metric, MetricValue, mean_loss};
use crate::config::{self, Described, Fields, Json};
use crate::loss::{Loss, MeanSquaredError};

/// The mean of a loss over elements or rows, whatever its reduction: [`mean_loss`].
#[derive(Clone, Debug)]
#[must_use]
pub struct MeanLoss {
    name: Option<String>,
    loss: Arc<dyn Loss>,
}

impl MeanLoss {
    /// The mean of this loss.
    pub fn new(loss: impl Loss + 'static) -> MeanLoss {
        MeanLoss { name: None, loss: Arc::new(loss) }
    }

    /// The name under which results show the metric. By default `mean_loss`.
    pub fn name(mut self, name: &str) -> MeanLoss {
        self.name = Some(name.to_string());
        self
    }
}

impl Described for MeanLoss {
    const CLASS: &'static str = "MeanLoss";

    fn template() -> MeanLoss {
        MeanLoss::new(MeanSquaredError::new())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> MeanLoss {
        MeanLoss {
            name: name_and_dtype(fields, &self.name, MetricValue::name(self)),
            loss: fields.required("loss", &self.loss),
        }
    }
}

impl MetricValue for MeanLoss {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("mean_loss")
    }

    fn apply(&self, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
        mean_loss(&*self.loss, labels, predictions, weights)
    }

    fn to_json(&self) -> Result<Json> {
        config::write(OWN_MODULE, self)
    }
}
