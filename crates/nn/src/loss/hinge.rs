//! `Hinge` and `SquaredHinge`: binary labels, with a margin.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The loss `max(1 - label * prediction, 0)` of each element. Labels are -1 and 1; 0 stands for -1.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Hinge {
    reduction: Reduction,
}

impl Hinge {
    /// Reduces to the mean over all elements.
    pub fn new() -> Hinge {
        Hinge::default()
    }
}

reduction_setter!(Hinge);
described_by_reduction!(Hinge, "Hinge", of_elements);

impl Loss for Hinge {
    fn name(&self) -> &'static str {
        "hinge_loss"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        shortfall(&matched(self.name(), labels, predictions), predictions)
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}

/// The square of [`Hinge`]'s loss, which is smooth.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SquaredHinge {
    reduction: Reduction,
}

impl SquaredHinge {
    /// Reduces to the mean over all elements.
    pub fn new() -> SquaredHinge {
        SquaredHinge::default()
    }
}

reduction_setter!(SquaredHinge);
described_by_reduction!(SquaredHinge, "SquaredHinge", of_elements);

impl Loss for SquaredHinge {
    fn name(&self) -> &'static str {
        "squared_hinge"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        shortfall(&matched(self.name(), labels, predictions), predictions).square()
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}

/// The distance to a margin of 1 on the right side.
#[track_caller]
fn shortfall(labels: &Tensor, predictions: &Tensor) -> Tensor {
    // TF: Keras maps labels to -1 and 1 only if all labels of a batch are 0 or 1. Here a label of 0
    // becomes -1 in any batch.
    let sides = labels.equal(0.0).select(-1.0f64, labels);
    (1.0f64 - sides * predictions).relu()
}
