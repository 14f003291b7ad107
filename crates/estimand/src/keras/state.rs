//! The values that all programs of a model share: weights, and what its optimizer keeps.

use std::collections::HashSet;
use std::sync::Arc;

use estimand_engine::Compiled;
use estimand_graph::{Executor, Role, RunArgs, Variables};
use estimand_tensor::{Array, Result};
use indexmap::{IndexMap, IndexSet};

use super::lazy_state::LazyState;
use super::sharing::{Share, Values};

/// The values that all programs of a model share.
pub(super) struct Weights {
    pub executor: Arc<dyn Executor>,
    values: Arc<Values>,
    /// The layers, whose weights other models may use too.
    shares: Vec<Share>,
    pub seed: u64,
    /// The number of training steps done; random ops depend on it.
    pub step: u64,
    /// The names of all variables of the state: weights, slots, counters.
    pub names: IndexSet<String>,
    /// Values of variables that no program has asked for yet.
    pub pending: IndexMap<String, Array>,
}

impl Weights {
    /// No variables yet.
    pub fn new(executor: Arc<dyn Executor>) -> Weights {
        let values = Values::new(LazyState::new(executor.clone(), Variables::default(), 0));
        let (names, pending) = (IndexSet::new(), IndexMap::new());
        Weights { executor, values, shares: Vec::new(), seed: 0, step: 0, names, pending }
    }

    /// The layers of the model, whose weights other models may use too.
    pub fn share(&mut self, shares: Vec<Share>) {
        self.shares = shares;
    }

    /// Takes variables with initial values. Weights of layers that belong to other models are
    /// theirs.
    pub fn begin(&mut self, variables: Variables) -> Result<()> {
        self.replace(variables);
        self.shares.iter().try_for_each(|share| share.join(&self.values))
    }

    /// Takes other variables, without values.
    pub fn replace(&mut self, variables: Variables) {
        let state = LazyState::new(self.executor.clone(), variables, self.seed);
        self.values.lock().replace(state);
    }

    /// Copies what other models have changed.
    fn catch_up(&self) -> Result<()> {
        self.shares.iter().try_for_each(|share| share.catch_up(&self.values))
    }

    /// As `catch_up`, before this model changes weights.
    fn own(&self) -> Result<()> {
        self.catch_up()?;
        self.shares.iter().for_each(|share| share.claim(&self.values));
        Ok(())
    }

    pub fn holds(&self, name: &str) -> bool {
        self.values.lock().state().holds(name)
    }

    pub fn read(&self, name: &str) -> Result<Array> {
        self.catch_up()?;
        self.values.lock().state().read(name)
    }

    pub fn read_all<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Array>> {
        self.catch_up()?;
        let mut values = self.values.lock();
        names.into_iter().map(|name| values.state().read(name)).collect()
    }

    pub fn write(&mut self, name: &str, value: &Array) -> Result<()> {
        self.write_all([(name, value)])
    }

    pub fn write_all<'a>(&mut self, values: impl IntoIterator<Item = (&'a str, &'a Array)>) -> Result<()> {
        let values: Vec<(&str, &Array)> = values.into_iter().collect();
        let names: HashSet<&str> = values.iter().map(|(name, _)| *name).collect();
        // Nobody needs the weights of another model if all of them are written here.
        let others = self.shares.iter().filter(|share| !share.is_within(&names));
        others.clone().try_for_each(|share| share.catch_up(&self.values))?;
        self.shares.iter().for_each(|share| share.claim(&self.values));
        let mut own = self.values.lock();
        values.into_iter().try_for_each(|(name, value)| own.state_mut().write(name, value))
    }

    /// Adds the variables of a program, with values that were restored before.
    pub fn extend(&mut self, variables: &Variables) -> Result<()> {
        let mut values = self.values.lock();
        values.state_mut().placed()?.extend(variables, self.seed)?;
        for (_, spec) in variables.iter().filter(|(_, spec)| spec.role != Role::Local) {
            self.names.insert(spec.name.clone());
            if let Some(value) = self.pending.shift_remove(&spec.name) {
                values.state_mut().write(&spec.name, &value)?;
            }
        }
        Ok(())
    }

    /// Reads the state, with what other models have changed.
    #[cfg(feature = "onnx")]
    pub fn with_state<T>(&self, read: impl FnOnce(&dyn estimand_graph::State) -> Result<T>) -> Result<T> {
        self.catch_up()?;
        read(self.values.lock().state().placed()?)
    }

    /// Runs a program on feeds that its host part has prepared. A training step is counted.
    pub fn run(&mut self, compiled: &Compiled, feeds: &[Array], outputs: &mut Vec<Array>) -> Result<()> {
        let args = RunArgs { feeds, step: self.step, seed: self.seed, ..RunArgs::default() };
        if compiled.program().trains() {
            self.own()?;
            compiled.step_prepared(self.values.lock().state_mut().placed()?, args, outputs)?;
            self.step += 1;
            return Ok(());
        }
        self.catch_up()?;
        compiled.forward_prepared(self.values.lock().state().placed()?, args, outputs)
    }
}
