//! Baseline estimators: they learn the mean of the labels and use no features.

use estimand_graph::{Initializer, Tensor};
use estimand_nn::config::{Described, Fields, Json};
use estimand_tensor::{Dim, Result};

use super::json::written;
use super::{Classifier, GivenHead, Network, OptimizerChoice, Premade, Regressor};
use crate::ModelFnContext;
use crate::head::{Head, Training};

/// One bias per logit, the same for every row. Variable: `baseline/bias`.
#[derive(Clone, Debug)]
pub struct Baseline {
    optimizer: OptimizerChoice,
}

/// Predicts the class frequencies.
pub type BaselineClassifier = Premade<Baseline, Classifier>;
/// Predicts the mean label.
pub type BaselineRegressor = Premade<Baseline, Regressor>;
/// A bias with any head.
pub type BaselineEstimator = Premade<Baseline, GivenHead>;

/// TF: the rate for any optimizer given by name.
const RATE: f64 = 0.3;

impl Default for Baseline {
    fn default() -> Baseline {
        Baseline { optimizer: "Ftrl".into() }
    }
}

impl Described for Baseline {
    const CLASS: &'static str = "Baseline";

    fn template() -> Baseline {
        Baseline::default()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Baseline {
        Baseline { optimizer: fields.value("optimizer", &self.optimizer) }
    }
}

impl Network for Baseline {
    fn check(&self) -> Result<()> {
        self.optimizer.optimizer(Some(RATE)).map(drop)
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn logits(&self, cx: &ModelFnContext<'_>, units: usize) -> Result<Tensor> {
        let graph = cx.graph();
        let _scope = graph.reopen("baseline");
        let bias = graph.variable("bias", [units], Initializer::Zeros);
        Ok(bias.broadcast_to([Dim::BATCH, units.into()]))
    }

    fn training<'a>(&'a self, _cx: &'a ModelFnContext<'_>) -> Result<Training<'a>> {
        Ok(self.optimizer.optimizer(Some(RATE))?.into())
    }
}

impl BaselineClassifier {
    /// Makes a classifier of two classes, trained with Ftrl.
    #[track_caller]
    pub fn new() -> BaselineClassifier {
        Premade::from_parts(Baseline::default(), Classifier::default())
    }
}

impl Default for BaselineClassifier {
    #[track_caller]
    fn default() -> BaselineClassifier {
        BaselineClassifier::new()
    }
}

impl BaselineRegressor {
    /// Makes a regressor of one number, trained with Ftrl.
    #[track_caller]
    pub fn new() -> BaselineRegressor {
        Premade::from_parts(Baseline::default(), Regressor::default())
    }
}

impl Default for BaselineRegressor {
    #[track_caller]
    fn default() -> BaselineRegressor {
        BaselineRegressor::new()
    }
}

impl BaselineEstimator {
    /// Makes an estimator with a head, trained with Ftrl.
    #[track_caller]
    pub fn new(head: impl Head + 'static) -> BaselineEstimator {
        Premade::from_parts(Baseline::default(), GivenHead::new(head))
    }
}

impl<H> Premade<Baseline, H> {
    /// Sets the optimizer. An optimizer given by name gets a learning rate of 0.3. By default,
    /// `Ftrl`.
    pub fn optimizer(mut self, optimizer: impl Into<OptimizerChoice>) -> Self {
        self.network.optimizer = optimizer.into();
        self
    }
}
