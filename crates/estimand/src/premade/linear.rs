//! Linear estimators: a weighted sum of columns.

use estimand_graph::{Combiner, Graph, Tensor};
use estimand_nn::Inputs;
use estimand_nn::column::{Columns, LinearModel, LinearOutput, linear_model};
use estimand_nn::config::{Described, Fields, Json};
use estimand_tensor::{Error, Mode, Result};

use super::json::{COMBINERS, written};
use super::{Classifier, GivenHead, Network, OptimizerChoice, Premade, Regressor, sdca, shown, trained_spec};
use crate::head::{Head, Training};
use crate::model_fn::lines;
use crate::{EstimatorSpec, ModelFnContext};

/// A weighted sum of columns and a bias. Variables: `linear/linear_model/<column>/weights`,
/// `linear/linear_model/bias_weights`.
#[derive(Clone, Debug)]
pub struct Linear {
    pub(super) columns: Columns,
    pub(super) optimizer: OptimizerChoice,
    pub(super) sparse_combiner: Combiner,
}

/// Predicts classes with a weighted sum of columns: logistic regression.
pub type LinearClassifier = Premade<Linear, Classifier>;
/// Predicts numbers with a weighted sum of columns.
pub type LinearRegressor = Premade<Linear, Regressor>;
/// A weighted sum of columns with any head.
pub type LinearEstimator = Premade<Linear, GivenHead>;

/// TF: the rate for any optimizer given by name.
const RATE: f64 = 0.2;

impl Linear {
    pub(super) fn new(columns: impl Into<Columns>) -> Linear {
        Linear { columns: columns.into(), optimizer: "Ftrl".into(), sparse_combiner: Combiner::Sum }
    }

    /// Builds the model: logits, weights, and the values of columns.
    pub(super) fn output(&self, cx: &ModelFnContext<'_>, units: usize) -> LinearOutput {
        let _scope = cx.graph().reopen("linear");
        let linear = LinearModel::new(&self.columns).units(units).sparse_combiner(self.sparse_combiner);
        let output = linear.apply(cx.features());
        shown::weights(cx, &output);
        output
    }

    pub(super) fn check_columns(&self, of: &str) -> Result<()> {
        check_columns(&self.columns, of, |features, column| linear_model(features, column))
    }
}

impl Described for Linear {
    const CLASS: &'static str = "Linear";

    fn template() -> Linear {
        Linear::new(Columns::default())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Linear {
        Linear {
            columns: fields.required("feature_columns", &self.columns),
            optimizer: fields.value("optimizer", &self.optimizer),
            sparse_combiner: fields.choice("sparse_combiner", &self.sparse_combiner, &COMBINERS),
        }
    }
}

impl Network for Linear {
    fn check(&self) -> Result<()> {
        self.check_columns("a linear model")?;
        match self.optimizer.sdca() {
            Some(sdca) => sdca.check_with(self.sparse_combiner),
            None => self.optimizer.optimizer(Some(RATE)).map(drop),
        }
    }

    fn check_head(&self, head: &dyn Head) -> Result<()> {
        self.optimizer.sdca().map_or(Ok(()), |sdca| sdca.loss_for(head).map(drop))
    }

    fn columns(&self) -> Columns {
        self.columns.clone()
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn logits(&self, cx: &ModelFnContext<'_>, units: usize) -> Result<Tensor> {
        Ok(self.output(cx, units).logits)
    }

    fn training<'a>(&'a self, _cx: &'a ModelFnContext<'_>) -> Result<Training<'a>> {
        Ok(self.optimizer.optimizer(Some(RATE))?.into())
    }

    fn spec(&self, cx: &ModelFnContext<'_>, head: &dyn Head) -> Result<EstimatorSpec> {
        match self.optimizer.sdca() {
            Some(optimizer) => sdca::spec(optimizer, cx, &self.output(cx, head.logits_dimension()), head),
            None => trained_spec(self, cx, head),
        }
    }
}

/// Checks that there are columns, and that each is valid and fits its place, by adding each to a
/// graph that is then discarded.
pub(super) fn check_columns(columns: &Columns, of: &str, place: fn(&Inputs, Columns) -> Tensor) -> Result<()> {
    if columns.is_empty() {
        return Err(Error::config(format!("{of} was given no feature columns")).help("give it at least one column"));
    }
    columns.iter().try_for_each(|column| {
        column.check()?;
        let graph = Graph::with_mode(Mode::Predict);
        let _lines = lines(&graph, column.site());
        // Each column alone: two columns may read a feature in different ways.
        place(&Inputs::new(&graph, "feature", &column.parse_spec()), [column.clone()].into());
        graph.check()
    })
}

impl LinearClassifier {
    /// Makes a classifier of two classes, trained with Ftrl.
    #[track_caller]
    pub fn new(columns: impl Into<Columns>) -> LinearClassifier {
        Premade::from_parts(Linear::new(columns), Classifier::default())
    }
}

impl LinearRegressor {
    /// Makes a regressor of one number, trained with Ftrl.
    #[track_caller]
    pub fn new(columns: impl Into<Columns>) -> LinearRegressor {
        Premade::from_parts(Linear::new(columns), Regressor::default())
    }
}

impl LinearEstimator {
    /// Makes an estimator with a head, trained with Ftrl.
    #[track_caller]
    pub fn new(head: impl Head + 'static, columns: impl Into<Columns>) -> LinearEstimator {
        Premade::from_parts(Linear::new(columns), GivenHead::new(head))
    }
}

impl<H> Premade<Linear, H> {
    /// Sets the optimizer: one by name, which gets a learning rate of 0.2, a value, or
    /// [`LinearSdca`](super::LinearSdca). By default, `Ftrl`.
    pub fn optimizer(mut self, optimizer: impl Into<OptimizerChoice>) -> Self {
        self.network.optimizer = optimizer.into();
        self
    }

    /// Sets how the weights of a row's ids are combined. By default, they are summed.
    pub fn sparse_combiner(mut self, combiner: Combiner) -> Self {
        self.network.sparse_combiner = combiner;
        self
    }
}
