//! What is computed once, when a run is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use estimand_graph::Tensor;
use estimand_tensor::{Array, Result};
use indexmap::IndexMap;

use super::{BeginContext, Hook, HookContext, SideRun};

/// Computes tensors after the last step, from the variables as they are then.
///
/// ```no_run
/// use estimand::hook::FinalOpsHook;
/// use estimand::prelude::*;
///
/// # fn train(estimator: &Estimator, data: &Dataset) -> Result<()> {
/// let hook = FinalOpsHook::new().named("dense/kernel");
/// let values = hook.values();
/// estimator.train(TrainSpec::new(data).hook(hook))?;
/// println!("{:?}", values.get()["dense/kernel"]);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use]
pub struct FinalOpsHook {
    ops: Vec<(String, Option<Tensor>)>,
    feeds: Vec<(String, Array)>,
    run: Option<SideRun>,
    values: FinalValues,
}

/// The values of a [`FinalOpsHook`] that is in a run, or was.
#[derive(Clone, Debug, Default)]
pub struct FinalValues(Arc<Mutex<IndexMap<String, Array>>>);

impl FinalValues {
    /// The values by their names; none before the end of the run, or if it ended with an error.
    pub fn get(&self) -> IndexMap<String, Array> {
        self.open().clone()
    }

    fn open(&self) -> MutexGuard<'_, IndexMap<String, Array>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FinalOpsHook {
    /// Nothing yet.
    pub fn new() -> FinalOpsHook {
        FinalOpsHook::default()
    }

    /// Adds the tensor of a name, under that name: for hooks that know the model from outside.
    pub fn named(mut self, name: impl Into<String>) -> FinalOpsHook {
        self.ops.push((name.into(), None));
        self
    }

    /// Adds a tensor under a name: for hooks that a model function makes.
    pub fn tensor(mut self, name: impl Into<String>, tensor: &Tensor) -> FinalOpsHook {
        self.ops.push((name.into(), Some(tensor.clone())));
        self
    }

    /// What the placeholder of a name is fed. By default, nothing: what is computed may depend on
    /// variables alone.
    pub fn feed(mut self, placeholder: impl Into<String>, value: Array) -> FinalOpsHook {
        self.feeds.push((placeholder.into(), value));
        self
    }

    /// The values, to look at when the run is over.
    pub fn values(&self) -> FinalValues {
        self.values.clone()
    }
}

impl Hook for FinalOpsHook {
    fn name(&self) -> &str {
        "final_ops"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        let find = |(name, tensor): &(String, Option<Tensor>)| match tensor {
            Some(tensor) => Ok(tensor.clone()),
            None => cx.graph().find(name),
        };
        let fetches = self.ops.iter().map(find).collect::<Result<Vec<Tensor>>>()?;
        let placeholders = self.feeds.iter().map(|(name, _)| cx.graph().find(name)).collect::<Result<Vec<_>>>()?;
        let feeds: Vec<_> = placeholders.iter().zip(&self.feeds).map(|(t, (_, array))| (t, array.clone())).collect();
        self.run = Some(cx.side_run(&fetches.iter().collect::<Vec<_>>(), &feeds)?);
        Ok(())
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if let Some(run) = self.run.as_ref().filter(|_| !self.ops.is_empty()) {
            let names = self.ops.iter().map(|(name, _)| name.clone());
            *self.values.open() = names.zip(cx.run(run)?).collect();
        }
        Ok(())
    }
}
