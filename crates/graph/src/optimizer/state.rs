//! The state of an optimizer in a graph: the counter of its updates and the slots of variables.
//!
//! An optimizer is a plain value and a graph may have several. The rule's address tells which of
//! the graph's optimizers came from this value or from a clone of it.

use std::panic::Location;
use std::sync::Arc;

use estimand_tensor::{Error, Result};

use super::minimize::variable_of;
use super::{Optimizer, OptimizerConfig};
use crate::graph::Graph;
use crate::tensor::Tensor;
use crate::variables::{Role, VarId};

/// The name of a slot, as in TensorFlow's checkpoints.
pub(super) fn slot_name(scope: &str, variable: &str, slot: &str) -> String {
    format!("{scope}/{variable}/{slot}")
}

impl Optimizer {
    /// Returns the variable of a graph that counts the updates of this optimizer: its own
    /// (`Adam/iter`), or the global step.
    ///
    /// It is an error if the optimizer has no train op in the graph, or several with counters of
    /// their own. A clone of an optimizer is the same optimizer.
    #[track_caller]
    pub fn iterations(&self, graph: &Graph) -> Result<Tensor> {
        let site = Location::caller();
        let mut counters: Vec<VarId> = self.applied(graph, |config| config.iterations);
        counters.sort_unstable();
        counters.dedup();
        let name = |id: &VarId| format!("`{}`", graph.body().variables().spec(*id).name);
        match &counters[..] {
            [] => Err(self.unused()),
            [only] => Ok(graph.read(*only, site)),
            several => {
                let names: Vec<String> = several.iter().map(name).collect();
                let text =
                    format!("{} has {} counters in the graph: {}", self.rule.name(), names.len(), names.join(", "));
                Err(Error::config(text).help("use one optimizer for each train op, or Graph::get_variable"))
            }
        }
    }

    /// Returns the variable that holds the learning rate, if the optimizer has one
    /// ([`with_rate_variable`](Optimizer::with_rate_variable)).
    #[track_caller]
    pub fn rate_variable(&self, graph: &Graph) -> Option<Tensor> {
        let found = self.applied(graph, |config| config.rate_variable).into_iter().flatten().next();
        found.map(|id| graph.read(id, Location::caller()))
    }

    /// Returns a slot of a variable by name: a variable that this optimizer keeps for it, such as
    /// Adam's `m`. It has the same shape, but for Adafactor's `r` and `c`.
    ///
    /// The variable must have been passed to [`minimize`](Optimizer::minimize) or
    /// [`apply_gradients`](Optimizer::apply_gradients) of this optimizer or a clone of it. For an
    /// unknown name, the error suggests the nearest one.
    ///
    /// ```
    /// use estimand_engine::Session;
    /// use estimand_graph::{Graph, Initializer, Optimizer};
    /// use estimand_update::Sgd;
    ///
    /// let g = Graph::new();
    /// let w = g.variable("w", [], Initializer::Zeros);
    /// let sgd = Optimizer::new(Sgd::default().momentum(0.5), 0.25);
    /// let train = sgd.minimize(&(&w * 2.0));
    /// let (momentum, count) = (sgd.slot(&w, "momentum")?, sgd.iterations(&g)?);
    /// let mut session = Session::new(&g)?;
    /// session.run(&[&train], &[])?;
    /// let found = session.run(&[&momentum, &count], &[])?;
    /// // -0.25 * 2, after one update.
    /// assert_eq!((found[0].item::<f32>()?, found[1].item::<i64>()?), (-0.5, 1));
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn slot(&self, variable: &Tensor, name: &str) -> Result<Tensor> {
        let names = self.slot_names();
        if !names.contains(&name) {
            return Err(Error::unknown(&format!("slot of {}", self.rule.name()), name, names));
        }
        let (graph, site) = (variable.graph(), Location::caller());
        graph.check()?;
        let id = variable_of(graph, variable)?;
        let scopes = self.applied(graph, |config| config.scope.clone());
        if scopes.is_empty() {
            return Err(self.unused());
        }
        let found: Vec<VarId> = {
            let body = graph.body();
            let variables = body.variables();
            let of = &variables.spec(id).name;
            let slots = scopes.iter().filter_map(|scope| variables.get(&slot_name(scope, of, name)));
            slots.filter(|&slot| variables.spec(slot).role == Role::Slot { of: id }).collect()
        };
        let what = || format!("variable {} has", variable.describe());
        match found[..] {
            [only] => Ok(graph.read(only, site)),
            [] => {
                let text = format!("{} no slot `{name}`: {} does not train it with one", what(), self.rule.name());
                Err(Error::config(text))
            }
            _ => Err(Error::config(format!("{} {} slots `{name}` of {}", what(), found.len(), self.rule.name()))
                .help("use one optimizer for each train op, or Graph::get_variable")),
        }
    }

    /// Returns the slots of a variable with their names, in the rule's order. There are none if the
    /// rule has none, such as gradient descent without momentum.
    #[track_caller]
    pub fn slots(&self, variable: &Tensor) -> Result<Vec<(&'static str, Tensor)>> {
        let mut slots = Vec::new();
        let dims: Vec<usize> = variable.shape().dims().iter().filter_map(|dim| dim.known()).collect();
        for (slot, _) in self.rule.slots_of(&dims) {
            slots.push((slot.name, self.slot(variable, slot.name)?));
        }
        Ok(slots)
    }

    /// Returns the names of the slots that this optimizer keeps for each variable.
    pub fn slot_names(&self) -> Vec<&'static str> {
        self.rule.slots().iter().map(|slot| slot.name).collect()
    }

    /// Returns a property of each train op of this optimizer in a graph.
    fn applied<T>(&self, graph: &Graph, property: impl Fn(&OptimizerConfig) -> T) -> Vec<T> {
        let body = graph.body();
        body.optimizers().iter().filter(|config| Arc::ptr_eq(&config.rule, &self.rule)).map(property).collect()
    }

    fn unused(&self) -> Error {
        Error::config(format!("{} has no train op in the graph", self.rule.name()))
            .help("call minimize or apply_gradients first")
    }
}
