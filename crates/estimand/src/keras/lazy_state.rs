//! The values of a model's variables, which are computed when somebody asks for one.
//!
//! A model from a file gets all of its weights from that file. Until then it knows the names and
//! sizes of its weights and the seed, and it holds no memory for their initial values.

use std::sync::Arc;

use estimand_graph::executor::{misfit, missing};
use estimand_graph::{Executor, State, VarId, Variables};
use estimand_tensor::{Array, DType, Error, Result};
use indexmap::IndexMap;

/// Variables with values, or with what decides their values.
pub(super) enum LazyState {
    Waiting(Waiting),
    Placed(Box<dyn State>),
    /// There was no memory for the values, or an initializer failed.
    Failed(Error),
}

/// Variables without values, apart from those that were given.
pub(super) struct Waiting {
    executor: Arc<dyn Executor>,
    variables: Variables,
    seed: u64,
    given: IndexMap<VarId, Array>,
}

impl LazyState {
    /// Variables with their initial values.
    pub fn new(executor: Arc<dyn Executor>, variables: Variables, seed: u64) -> LazyState {
        LazyState::Waiting(Waiting { executor, variables, seed, given: IndexMap::new() })
    }

    pub fn holds(&self, name: &str) -> bool {
        match self {
            LazyState::Waiting(waiting) => waiting.variables.get(name).is_some(),
            LazyState::Placed(state) => state.holds(name),
            LazyState::Failed(_) => false,
        }
    }

    /// The current value of a variable.
    pub fn read(&mut self, name: &str) -> Result<Array> {
        if let LazyState::Waiting(waiting) = self
            && let Some(value) = waiting.variables.get(name).and_then(|id| waiting.given.get(&id))
        {
            return Ok(value.clone());
        }
        self.placed()?.read(name)
    }

    /// Replaces the value of a variable; dtype and sizes must fit.
    pub fn write(&mut self, name: &str, value: &Array) -> Result<()> {
        match self {
            LazyState::Waiting(waiting) => {
                let id = waiting.id(name)?;
                let spec = waiting.variables.spec(id);
                if (value.dtype(), value.dims()) != (spec.dtype, &spec.dims[..]) {
                    return Err(misfit(name, (value.dtype(), value.dims()), (spec.dtype, &spec.dims)));
                }
                waiting.given.insert(id, value.clone());
                Ok(())
            }
            LazyState::Placed(state) => state.write(name, value),
            LazyState::Failed(error) => Err(error.clone()),
        }
    }

    /// The dtype and the sizes of a variable.
    pub fn spec(&self, name: &str) -> Result<(DType, Vec<usize>)> {
        match self {
            LazyState::Waiting(waiting) => {
                let spec = waiting.variables.spec(waiting.id(name)?);
                Ok((spec.dtype, spec.dims.to_vec()))
            }
            LazyState::Placed(state) => state.read(name).map(|value| (value.dtype(), value.dims().to_vec())),
            LazyState::Failed(error) => Err(error.clone()),
        }
    }

    /// The values in memory. The first call computes those that were not given.
    pub fn placed(&mut self) -> Result<&mut dyn State> {
        if let LazyState::Waiting(waiting) = self {
            let placed = waiting.place();
            *self = placed.map_or_else(LazyState::Failed, LazyState::Placed);
        }
        match self {
            LazyState::Placed(state) => Ok(&mut **state),
            LazyState::Failed(error) => Err(error.clone()),
            LazyState::Waiting(_) => Err(Error::internal("a state that was not placed")),
        }
    }
}

impl Waiting {
    fn id(&self, name: &str) -> Result<VarId> {
        self.variables.get(name).ok_or_else(|| missing(name))
    }

    fn place(&mut self) -> Result<Box<dyn State>> {
        let mut state = self.executor.place(&Variables::default(), self.seed)?;
        let given = std::mem::take(&mut self.given).into_iter().collect();
        state.extend_with(&self.variables, self.seed, given)?;
        Ok(state)
    }
}
