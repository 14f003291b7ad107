//! Wide and deep estimators: a linear model and a deep network with separate optimizers. Their
//! logits are added.

use estimand_graph::{Combiner, Minimize, Role, Tensor};
use estimand_nn::Activation;
use estimand_nn::column::Columns;
use estimand_nn::config::{Described, Fields, Json};
use estimand_tensor::{Error, Result};

use super::dnn::Dnn;
use super::json::{Part, written};
use super::linear::Linear;
use super::{Classifier, GivenHead, Network, OptimizerChoice, Premade, Regressor, shown};
use crate::ModelFnContext;
use crate::head::{Head, Training};

/// The sum of a linear model and a deep network. Variables: those of [`Linear`] and [`Dnn`].
#[derive(Clone, Debug)]
pub struct DnnLinearCombined {
    linear: Linear,
    dnn: Dnn,
}

/// Predicts classes with a wide and deep model.
pub type DnnLinearCombinedClassifier = Premade<DnnLinearCombined, Classifier>;
/// Predicts numbers with a wide and deep model.
pub type DnnLinearCombinedRegressor = Premade<DnnLinearCombined, Regressor>;
/// A wide and deep model with any head.
pub type DnnLinearCombinedEstimator = Premade<DnnLinearCombined, GivenHead>;

/// TF: the rate of the deep part, for any optimizer given by name.
const DNN_RATE: f64 = 0.001;
/// TF: the largest rate of the linear part. More columns make it smaller.
const LINEAR_RATE: f64 = 0.005;

impl Default for DnnLinearCombined {
    fn default() -> DnnLinearCombined {
        DnnLinearCombined { linear: Linear::new(Columns::default()), dnn: Dnn::new([], Columns::default()) }
    }
}

impl DnnLinearCombined {
    fn linear_rate(&self) -> f64 {
        LINEAR_RATE.min(1.0 / (self.linear.columns.len() as f64).sqrt())
    }

    fn has_linear(&self) -> bool {
        !self.linear.columns.is_empty()
    }

    fn has_dnn(&self) -> bool {
        !self.dnn.columns.is_empty()
    }
}

impl Described for DnnLinearCombined {
    const CLASS: &'static str = "DnnLinearCombined";

    fn template() -> DnnLinearCombined {
        DnnLinearCombined::default()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> DnnLinearCombined {
        DnnLinearCombined {
            linear: fields.required("linear", &Part(self.linear.clone())).0,
            dnn: fields.required("dnn", &Part(self.dnn.clone())).0,
        }
    }
}

impl Network for DnnLinearCombined {
    fn check(&self) -> Result<()> {
        if !self.has_linear() && !self.has_dnn() {
            return Err(Error::config("a wide and deep model was given no feature columns")
                .help("give it linear_feature_columns, dnn_feature_columns, or both"));
        }
        if self.has_linear() {
            self.linear.check_columns("the linear part")?;
        }
        match (self.has_dnn(), self.dnn.hidden_units.is_empty()) {
            (true, true) => {
                return Err(Error::config("dnn_feature_columns is set, but dnn_hidden_units is not")
                    .help("set the sizes of the hidden layers: .dnn_hidden_units([100, 50])"));
            }
            (false, false) => {
                return Err(Error::config("dnn_hidden_units is set, but dnn_feature_columns is not")
                    .help("set the columns of the deep part: .dnn_feature_columns(..)"));
            }
            (true, false) => self.dnn.check_layers()?,
            (false, true) => {}
        }
        let _ = self.dnn.optimizer.optimizer(Some(DNN_RATE))?;
        self.linear.optimizer.optimizer(Some(LINEAR_RATE)).map(drop)
    }

    fn columns(&self) -> Columns {
        [&self.linear.columns[..], &self.dnn.columns[..]].concat().into()
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn logits(&self, cx: &ModelFnContext<'_>, units: usize) -> Result<Tensor> {
        let dnn = self.has_dnn().then(|| self.dnn.logits(cx, units)).transpose()?;
        let linear = self.has_linear().then(|| self.linear.logits(cx, units)).transpose()?;
        if let Some(logits) = &linear {
            shown::layer(cx, "linear", logits);
        }
        match (dnn, linear) {
            (Some(dnn), Some(linear)) => Ok(dnn + linear),
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => Err(Error::internal("a wide and deep model of no columns was let through")),
        }
    }

    fn training<'a>(&'a self, cx: &'a ModelFnContext<'_>) -> Result<Training<'a>> {
        let dnn = self.dnn.optimizer.optimizer(Some(DNN_RATE))?;
        let linear = self.linear.optimizer.optimizer(Some(self.linear_rate()))?;
        Ok(Training::from(move |loss: &Tensor| {
            let (deep, wide) = (self.variables(cx, "dnn/"), self.variables(cx, "linear/"));
            let of = |variables: &[Tensor]| Minimize::new(loss).variables(variables);
            let step = cx.global_step();
            // TF: the deep part uses the global step as its counter; the linear part then has its
            // own counter.
            Ok(match (self.has_dnn(), self.has_linear()) {
                (true, true) => {
                    let deep = dnn.minimize(of(&deep).global_step(step));
                    cx.graph().group(&[&deep, &linear.minimize(of(&wide))])
                }
                (true, false) => dnn.minimize(of(&deep).global_step(step)),
                (false, _) => linear.minimize(of(&wide).global_step(step)),
            })
        }))
    }
}

impl DnnLinearCombined {
    /// Returns the trainable variables of a part. A variable that both share (an embedding outside
    /// of their scopes) belongs to the deep part.
    fn variables(&self, cx: &ModelFnContext<'_>, part: &str) -> Vec<Tensor> {
        let of_part = |name: &str| match part {
            "dnn/" => !name.starts_with("linear/"),
            other => name.starts_with(other),
        };
        let names: Vec<String> = (cx.graph().body().variables().iter())
            .filter(|(_, spec)| spec.role == Role::Model { trainable: true } && of_part(&spec.name))
            .map(|(_, spec)| spec.name.clone())
            .collect();
        names.iter().map(|name| cx.graph().get_variable(name)).collect()
    }
}

impl DnnLinearCombinedClassifier {
    /// Makes a classifier of two classes. Set the columns of the linear part, of the deep part, or
    /// both.
    #[track_caller]
    pub fn new() -> DnnLinearCombinedClassifier {
        Premade::from_parts(DnnLinearCombined::default(), Classifier::default())
    }
}

impl Default for DnnLinearCombinedClassifier {
    #[track_caller]
    fn default() -> DnnLinearCombinedClassifier {
        DnnLinearCombinedClassifier::new()
    }
}

impl DnnLinearCombinedRegressor {
    /// Makes a regressor of one number. Set the columns of the linear part, of the deep part, or
    /// both.
    #[track_caller]
    pub fn new() -> DnnLinearCombinedRegressor {
        Premade::from_parts(DnnLinearCombined::default(), Regressor::default())
    }
}

impl Default for DnnLinearCombinedRegressor {
    #[track_caller]
    fn default() -> DnnLinearCombinedRegressor {
        DnnLinearCombinedRegressor::new()
    }
}

impl DnnLinearCombinedEstimator {
    /// Makes an estimator with a head. Set the columns of the linear part, of the deep part, or
    /// both.
    #[track_caller]
    pub fn new(head: impl Head + 'static) -> DnnLinearCombinedEstimator {
        Premade::from_parts(DnnLinearCombined::default(), GivenHead::new(head))
    }
}

impl<H> Premade<DnnLinearCombined, H> {
    /// Sets the columns of the linear part. By default none: there is no linear part.
    pub fn linear_feature_columns(mut self, columns: impl Into<Columns>) -> Self {
        self.network.linear.columns = columns.into();
        self
    }

    /// Sets the optimizer of the linear part. An optimizer given by name gets the smaller of 0.005
    /// and `1 / sqrt(columns)` as its learning rate. By default, `Ftrl`.
    pub fn linear_optimizer(mut self, optimizer: impl Into<OptimizerChoice>) -> Self {
        self.network.linear.optimizer = optimizer.into();
        self
    }

    /// Sets how the weights of a row's ids are combined. By default, they are summed.
    pub fn linear_sparse_combiner(mut self, combiner: Combiner) -> Self {
        self.network.linear.sparse_combiner = combiner;
        self
    }

    /// Sets the columns of the deep part. By default none: there is no deep part.
    pub fn dnn_feature_columns(mut self, columns: impl Into<Columns>) -> Self {
        self.network.dnn.columns = columns.into();
        self
    }

    /// Sets the sizes of the hidden layers.
    pub fn dnn_hidden_units(mut self, units: impl Into<Vec<usize>>) -> Self {
        self.network.dnn.hidden_units = units.into();
        self
    }

    /// Sets the optimizer of the deep part. An optimizer given by name gets a learning rate of
    /// 0.001. By default, `Adagrad`.
    pub fn dnn_optimizer(mut self, optimizer: impl Into<OptimizerChoice>) -> Self {
        self.network.dnn.optimizer = optimizer.into();
        self
    }

    /// Sets the activation of the hidden layers. By default, relu.
    pub fn dnn_activation_fn(mut self, activation: Activation) -> Self {
        self.network.dnn.activation = activation;
        self
    }

    /// Sets the share of a hidden layer's outputs that training drops. By default, none.
    pub fn dnn_dropout(mut self, rate: f64) -> Self {
        self.network.dnn.dropout = Some(rate);
        self
    }

    /// Sets whether the outputs of each hidden layer are batch-normalized. By default, they are
    /// not.
    pub fn batch_norm(mut self, batch_norm: bool) -> Self {
        self.network.dnn.batch_norm = batch_norm;
        self
    }
}
