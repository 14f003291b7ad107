//! Deep estimators: dense columns through hidden layers.

use estimand_graph::Tensor;
use estimand_nn::column::{Columns, input_layer};
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::{Activation, BatchNorm, Dense, Dropout, Layer};
use estimand_tensor::{Error, Result};

use super::json::written;
use super::linear::check_columns;
use super::{Classifier, GivenHead, Network, OptimizerChoice, Premade, Regressor, shown};
use crate::ModelFnContext;
use crate::head::{Head, Training};

/// Dense columns, hidden layers, logits.
///
/// Variables: `dnn/input_from_feature_columns/input_layer/<column>/embedding_weights`,
/// `dnn/hiddenlayer_0/{kernel,bias}` (with batch normalization also
/// `dnn/hiddenlayer_0/batchnorm_0/...`), `dnn/logits/{kernel,bias}`.
#[derive(Clone, Debug)]
pub struct Dnn {
    pub(super) columns: Columns,
    pub(super) hidden_units: Vec<usize>,
    pub(super) optimizer: OptimizerChoice,
    pub(super) activation: Activation,
    pub(super) dropout: Option<f64>,
    pub(super) batch_norm: bool,
}

/// Predicts classes with a deep network.
pub type DnnClassifier = Premade<Dnn, Classifier>;
/// Predicts numbers with a deep network.
pub type DnnRegressor = Premade<Dnn, Regressor>;
/// A deep network with any head.
pub type DnnEstimator = Premade<Dnn, GivenHead>;

impl Dnn {
    pub(super) fn new(hidden_units: impl Into<Vec<usize>>, columns: impl Into<Columns>) -> Dnn {
        Dnn {
            columns: columns.into(),
            hidden_units: hidden_units.into(),
            optimizer: "Adagrad".into(),
            activation: Activation::Relu,
            dropout: None,
            batch_norm: false,
        }
    }

    pub(super) fn check_layers(&self) -> Result<()> {
        check_columns(&self.columns, "a deep network", |features, column| input_layer(features, column))?;
        if let Some(place) = self.hidden_units.iter().position(|&units| units == 0) {
            return Err(Error::config(format!(
                "hidden_units is {:?}: layer {place} has 0 units; expected at least 1",
                self.hidden_units
            ))
            .help("give every layer at least one unit; an empty list connects the columns to the logits"));
        }
        match self.dropout {
            Some(rate) if !(0.0..1.0).contains(&rate) => {
                Err(Error::config(format!("the dropout rate is {rate}; expected 0 <= rate < 1")))
            }
            _ => Ok(()),
        }
    }
}

impl Described for Dnn {
    const CLASS: &'static str = "Dnn";

    fn template() -> Dnn {
        Dnn::new([], Columns::default())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Dnn {
        Dnn {
            columns: fields.required("feature_columns", &self.columns),
            hidden_units: fields.required("hidden_units", &self.hidden_units),
            optimizer: fields.value("optimizer", &self.optimizer),
            activation: fields.value("activation_fn", &self.activation),
            dropout: fields.value("dropout", &self.dropout),
            batch_norm: fields.value("batch_norm", &self.batch_norm),
        }
    }
}

impl Network for Dnn {
    fn check(&self) -> Result<()> {
        self.check_layers()?;
        self.optimizer.optimizer(None).map(drop)
    }

    fn columns(&self) -> Columns {
        self.columns.clone()
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn logits(&self, cx: &ModelFnContext<'_>, units: usize) -> Result<Tensor> {
        let graph = cx.graph();
        let _scope = graph.reopen("dnn");
        let mut net = {
            let _scope = graph.reopen("input_from_feature_columns");
            input_layer(cx.features(), &self.columns)
        };
        for (i, &units) in self.hidden_units.iter().enumerate() {
            let name = format!("hiddenlayer_{i}");
            net = Dense::new(units).activation(self.activation).name(&name).apply(&net);
            if let Some(rate) = self.dropout {
                net = Dropout::new(rate).apply(&net);
            }
            // TF: after the activation and the dropout. (case 83)
            if self.batch_norm {
                let _scope = graph.reopen(&name);
                net = BatchNorm::new().momentum(0.999).name(&format!("batchnorm_{i}")).apply(&net);
            }
            shown::layer(cx, &name, &net);
        }
        let logits = Dense::new(units).name("logits").apply(&net);
        shown::layer(cx, "logits", &logits);
        Ok(logits)
    }

    fn training<'a>(&'a self, _cx: &'a ModelFnContext<'_>) -> Result<Training<'a>> {
        Ok(self.optimizer.optimizer(None)?.into())
    }
}

impl DnnClassifier {
    /// Makes a classifier of two classes, with relu, trained with Adagrad.
    #[track_caller]
    pub fn new(hidden_units: impl Into<Vec<usize>>, columns: impl Into<Columns>) -> DnnClassifier {
        Premade::from_parts(Dnn::new(hidden_units, columns), Classifier::default())
    }
}

impl DnnRegressor {
    /// Makes a regressor of one number, with relu, trained with Adagrad.
    #[track_caller]
    pub fn new(hidden_units: impl Into<Vec<usize>>, columns: impl Into<Columns>) -> DnnRegressor {
        Premade::from_parts(Dnn::new(hidden_units, columns), Regressor::default())
    }
}

impl DnnEstimator {
    /// Makes an estimator with a head, with relu, trained with Adagrad.
    #[track_caller]
    pub fn new(
        head: impl Head + 'static,
        hidden_units: impl Into<Vec<usize>>,
        columns: impl Into<Columns>,
    ) -> DnnEstimator {
        Premade::from_parts(Dnn::new(hidden_units, columns), GivenHead::new(head))
    }
}

impl<H> Premade<Dnn, H> {
    /// Sets the optimizer. An optimizer given by name uses its own default learning rate. By
    /// default, `Adagrad`, whose rate of 0.001 learns slowly; TensorFlow 1 had 0.05.
    pub fn optimizer(mut self, optimizer: impl Into<OptimizerChoice>) -> Self {
        self.network.optimizer = optimizer.into();
        self
    }

    /// Sets the activation of the hidden layers. By default, relu.
    pub fn activation_fn(mut self, activation: Activation) -> Self {
        self.network.activation = activation;
        self
    }

    /// Sets the share of a hidden layer's outputs that training drops. By default, none.
    pub fn dropout(mut self, rate: f64) -> Self {
        self.network.dropout = Some(rate);
        self
    }

    /// Sets whether the outputs of each hidden layer are batch-normalized. By default, they are
    /// not.
    pub fn batch_norm(mut self, batch_norm: bool) -> Self {
        self.network.batch_norm = batch_norm;
        self
    }
}
