//! Computes tensors once, when a run ends.

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use estimand_graph::Tensor;
use estimand_tensor::{Array, Result};
use indexmap::IndexMap;

use super::{BeginContext, Hook, HookContext, SideRun};

/// Computes tensors after the last step, from the final values of the variables.
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
    ops: Vec<(String, FinalOp)>,
    feeds: Vec<(String, Array, &'static Location<'static>)>,
    run: Option<SideRun>,
    values: FinalValues,
}

enum FinalOp {
    Tensor(Tensor),
    /// Found by its name; the line that named it.
    Named(&'static Location<'static>),
}

/// A handle to the values of a [`FinalOpsHook`], during and after its run.
#[derive(Clone, Debug, Default)]
pub struct FinalValues(Arc<Mutex<IndexMap<String, Array>>>);

impl FinalValues {
    /// Returns the values by name. It is empty before the end of the run, and if the run ended with
    /// an error.
    pub fn get(&self) -> IndexMap<String, Array> {
        self.open().clone()
    }

    fn open(&self) -> MutexGuard<'_, IndexMap<String, Array>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FinalOpsHook {
    /// Makes a hook without tensors.
    pub fn new() -> FinalOpsHook {
        FinalOpsHook::default()
    }

    /// Adds a tensor by name, under that name. Use it in hooks that are made outside of the model
    /// function.
    #[track_caller]
    pub fn named(mut self, name: impl Into<String>) -> FinalOpsHook {
        self.ops.push((name.into(), FinalOp::Named(Location::caller())));
        self
    }

    /// Adds a tensor under a name. Use it in hooks that a model function makes.
    pub fn tensor(mut self, name: impl Into<String>, tensor: &Tensor) -> FinalOpsHook {
        self.ops.push((name.into(), FinalOp::Tensor(tensor.clone())));
        self
    }

    /// Sets the value of a placeholder by name. By default, nothing is fed, and the tensors may
    /// depend on variables only.
    #[track_caller]
    pub fn feed(mut self, placeholder: impl Into<String>, value: Array) -> FinalOpsHook {
        self.feeds.push((placeholder.into(), value, Location::caller()));
        self
    }

    /// Returns a handle to read the values after the run.
    pub fn values(&self) -> FinalValues {
        self.values.clone()
    }
}

impl Hook for FinalOpsHook {
    fn name(&self) -> &str {
        "final_ops"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        let named = |name: &str, site: &Location<'_>| cx.graph().find(name).map_err(|error| error.at(site));
        let find = |(name, op): &(String, FinalOp)| match op {
            FinalOp::Tensor(tensor) => Ok(tensor.clone()),
            FinalOp::Named(site) => named(name, site),
        };
        let fetches = self.ops.iter().map(find).collect::<Result<Vec<Tensor>>>()?;
        let placeholders = self.feeds.iter().map(|(name, _, site)| named(name, site)).collect::<Result<Vec<_>>>()?;
        let feeds: Vec<_> = placeholders.iter().zip(&self.feeds).map(|(t, (_, array, _))| (t, array.clone())).collect();
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
