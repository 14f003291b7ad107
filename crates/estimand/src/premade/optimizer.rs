//! The optimizer setting of premade estimators: a name, a value, or a function that makes the
//! optimizer.

use std::fmt;
use std::sync::Arc;

use estimand_graph::Optimizer;
use estimand_nn::config::{Described, Field, Json, Node};
use estimand_tensor::{Error, Result};

use super::LinearSdca;

/// An optimizer given by name, as a value, or as a function that makes it for each build of the
/// model.
///
/// ```
/// use estimand::premade::OptimizerChoice;
/// use estimand::prelude::*;
///
/// let by_name: OptimizerChoice = "Adam".into();
/// let value: OptimizerChoice = Optimizer::new(Adam::default(), 0.01).into();
/// let function: OptimizerChoice = (|| Optimizer::new(Sgd::default(), 0.1)).into();
/// ```
#[derive(Clone)]
pub struct OptimizerChoice(Choice);

#[derive(Clone)]
enum Choice {
    Named(String),
    Value(Optimizer),
    Made(Arc<dyn Fn() -> Optimizer + Send + Sync>),
    /// Trains linear models without gradients.
    Sdca(LinearSdca),
}

impl OptimizerChoice {
    /// Returns the optimizer. `rate` applies to an optimizer given by name; without it, the
    /// optimizer's default rate applies.
    pub(super) fn optimizer(&self, rate: Option<f64>) -> Result<Optimizer> {
        self.or_named(|name| Optimizer::named(name, rate))
    }

    /// Returns the optimizer; a function finds it by name.
    pub(crate) fn or_named(&self, named: impl FnOnce(&str) -> Result<Optimizer>) -> Result<Optimizer> {
        match &self.0 {
            Choice::Named(name) => named(name),
            Choice::Value(optimizer) => Ok(optimizer.clone()),
            Choice::Made(make) => Ok(make()),
            Choice::Sdca(_) => Err(Error::config("LinearSdca was given to a model that is not linear")
                .help("use it with LinearClassifier, LinearRegressor or LinearEstimator")),
        }
    }

    /// Returns `LinearSdca`, if it is that.
    pub(super) fn sdca(&self) -> Option<&LinearSdca> {
        match &self.0 {
            Choice::Sdca(sdca) => Some(sdca),
            Choice::Named(_) | Choice::Value(_) | Choice::Made(_) => None,
        }
    }
}

/// A name, or an optimizer as a value. A function cannot be written.
impl Field for OptimizerChoice {
    fn write(&self) -> Result<Json> {
        match &self.0 {
            Choice::Named(name) => name.write(),
            Choice::Value(optimizer) => optimizer.write(),
            Choice::Sdca(sdca) => sdca.write(),
            Choice::Made(_) => {
                let text = "an optimizer that a function of the program makes cannot be written as JSON";
                Err(Error::unsupported(text).help("give the optimizer as a value; a schedule can vary its rate"))
            }
        }
    }

    fn read(node: &Node<'_>) -> Result<OptimizerChoice> {
        match node.value().as_str() {
            Some(name) => Ok(name.into()),
            None if node.object()?.class == LinearSdca::CLASS => LinearSdca::read(node).map(OptimizerChoice::from),
            None => Optimizer::read(node).map(OptimizerChoice::from),
        }
    }
}

impl From<&str> for OptimizerChoice {
    fn from(name: &str) -> OptimizerChoice {
        OptimizerChoice(Choice::Named(name.to_string()))
    }
}

impl From<String> for OptimizerChoice {
    fn from(name: String) -> OptimizerChoice {
        OptimizerChoice(Choice::Named(name))
    }
}

impl From<Optimizer> for OptimizerChoice {
    fn from(optimizer: Optimizer) -> OptimizerChoice {
        OptimizerChoice(Choice::Value(optimizer))
    }
}

impl From<LinearSdca> for OptimizerChoice {
    fn from(sdca: LinearSdca) -> OptimizerChoice {
        OptimizerChoice(Choice::Sdca(sdca))
    }
}

/// A clone, so that the program keeps the value whose progress it asks for.
impl From<&LinearSdca> for OptimizerChoice {
    fn from(sdca: &LinearSdca) -> OptimizerChoice {
        sdca.clone().into()
    }
}

impl<F: Fn() -> Optimizer + Send + Sync + 'static> From<F> for OptimizerChoice {
    fn from(make: F) -> OptimizerChoice {
        OptimizerChoice(Choice::Made(Arc::new(make)))
    }
}

impl fmt::Debug for OptimizerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Choice::Named(name) => name.fmt(f),
            Choice::Value(optimizer) => optimizer.fmt(f),
            Choice::Made(_) => f.write_str("a function"),
            Choice::Sdca(sdca) => sdca.fmt(f),
        }
    }
}
