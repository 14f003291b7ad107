//! `History`: the losses and metrics of a training.

use estimand_tensor::{Error, Result};
use indexmap::IndexMap;

/// Losses and metrics by Keras' names, such as `loss` and `val_accuracy`.
pub type Logs = IndexMap<String, f64>;

/// The losses and metrics of each epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// One list for each name, with one value for each epoch that has it.
    pub history: IndexMap<String, Vec<f64>>,
    /// The epochs, from 0.
    pub epoch: Vec<usize>,
}

impl History {
    /// The names, in Keras' order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.history.keys().map(String::as_str)
    }

    /// The values of a name. For an unknown name, the error suggests the nearest one.
    pub fn get(&self, name: &str) -> Result<&[f64]> {
        let found = self.history.get(name).map(Vec::as_slice);
        found.ok_or_else(|| Error::unknown("entry of the history", name, self.keys()))
    }

    pub(super) fn add(&mut self, epoch: usize, logs: &Logs) {
        self.epoch.push(epoch);
        for (name, value) in logs {
            self.history.entry(name.clone()).or_default().push(*value);
        }
    }
}

/// Panics for a name that the history does not have; [`History::get`] returns an error.
impl std::ops::Index<&str> for History {
    type Output = [f64];

    fn index(&self, name: &str) -> &[f64] {
        &self.history[name]
    }
}
