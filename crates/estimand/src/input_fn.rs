//! Input functions, the source of batches: a function of a context, or simply a [`Dataset`].

use std::ops::Deref;

use estimand_data::{Dataset, InputContext};
use estimand_tensor::Result;

use crate::{HParams, RunConfig};

/// The argument of an input function: the mode, the worker, the model's parameters and the run's
/// configuration.
///
/// It dereferences to [`data::InputContext`](InputContext): `cx.mode`, `cx.worker`, `cx.n_workers`,
/// `cx.per_replica_batch_size(..)`.
#[derive(Clone, Copy, Debug)]
pub struct InputFnContext<'a> {
    pub(crate) input: InputContext,
    pub(crate) params: &'a HParams,
    pub(crate) config: &'a RunConfig,
}

impl<'a> InputFnContext<'a> {
    /// The parameters of the estimator.
    pub fn params(&self) -> &'a HParams {
        self.params
    }

    /// The configuration of the run.
    pub fn config(&self) -> &'a RunConfig {
        self.config
    }
}

impl Deref for InputFnContext<'_> {
    type Target = InputContext;

    fn deref(&self) -> &InputContext {
        &self.input
    }
}

/// Makes the dataset of a run. It is called once for every train, evaluate and predict.
///
/// A [`Dataset`] implements it. So does a function of an [`InputFnContext`], which can return a
/// different dataset for each mode.
pub trait InputFn {
    /// Returns the batched dataset.
    fn dataset(&self, cx: &InputFnContext<'_>) -> Result<Dataset>;

    /// Returns whether every worker gets the same dataset. By default, false: a function receives
    /// the worker and may return that worker's shard.
    fn is_same_for_all_workers(&self) -> bool {
        false
    }
}

impl InputFn for Dataset {
    fn is_same_for_all_workers(&self) -> bool {
        !self.differs_by_worker()
    }

    fn dataset(&self, _cx: &InputFnContext<'_>) -> Result<Dataset> {
        Ok(self.clone())
    }
}

impl InputFn for &Dataset {
    fn is_same_for_all_workers(&self) -> bool {
        !self.differs_by_worker()
    }

    fn dataset(&self, _cx: &InputFnContext<'_>) -> Result<Dataset> {
        Ok((*self).clone())
    }
}

impl<F: Fn(&InputFnContext<'_>) -> Result<Dataset>> InputFn for F {
    fn dataset(&self, cx: &InputFnContext<'_>) -> Result<Dataset> {
        self(cx)
    }
}
