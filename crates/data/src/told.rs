//! A flag for warnings that a pipeline gives once, however often it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a warning was given. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(Arc<AtomicBool>);

impl Told {
    /// Returns `true` once.
    pub(crate) fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }

    /// Warns once if elements are counted after a shuffle that reshuffles.
    pub(crate) fn warn_if_reshuffled(&self, stage: &str, reshuffles: bool) {
        if reshuffles && self.is_first() {
            estimand_tensor::warn!(
                "{stage} comes after a shuffle, which puts other elements first in every epoch and every run: if these are the rows \
                 to test with, the model trains on them too. Divide rows with split(..), or call \
                 reshuffle_each_iteration(false) after shuffle(..)"
            );
        }
    }
}
