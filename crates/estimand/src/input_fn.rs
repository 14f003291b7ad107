//! Where batches come from: an input function, or simply a [`Dataset`].

use std::ops::Deref;

use estimand_data::{Dataset, InputContext};
use estimand_tensor::Result;

use crate::{HParams, RunConfig};

/// What an input function is given: the mode, who reads, the model's parameters and the run's
/// configuration.
///
/// It is a [`data::InputContext`](InputContext) with the rest beside it: `cx.mode`, `cx.worker`,
/// `cx.n_workers`, `cx.per_replica_batch_size(..)`.
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

/// Makes the dataset of a run. Called once for every train, evaluate and predict.
///
/// A [`Dataset`] is one; so is a function of an [`InputFnContext`], which can make another dataset
/// for each mode.
pub trait InputFn {
    /// The dataset, batched.
    fn dataset(&self, cx: &InputFnContext<'_>) -> Result<Dataset>;

    /// Whether the dataset is the same whoever asks for it. By default it is not: a function is
    /// given the worker, and may return the worker's shard.
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
