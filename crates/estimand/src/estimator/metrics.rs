//! The results of an evaluation.

use std::fmt;
use std::ops::Index;

use estimand_tensor::{Error, Result, nearest_name};
use indexmap::IndexMap;

use crate::console::sliced;

/// The results of an evaluation, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    values: IndexMap<String, f64>,
    global_step: u64,
}

impl Metrics {
    pub(crate) fn new(mut values: IndexMap<String, f64>, global_step: u64) -> Metrics {
        values.sort_keys();
        Metrics { values, global_step }
    }

    /// The step of the checkpoint that was evaluated.
    pub fn global_step(&self) -> u64 {
        self.global_step
    }

    /// A metric by name.
    pub fn get(&self, name: &str) -> Result<f64> {
        self.values.get(name).copied().ok_or_else(|| {
            let error = Error::config(format!("there is no metric `{name}`"));
            let names = || self.values.keys().map(String::as_str);
            match nearest_name(name, names()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("there are {}", names().collect::<Vec<_>>().join(", "))),
            }
        })
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// Panics if there is no such metric; [`Metrics::get`] does not.
impl Index<&str> for Metrics {
    type Output = f64;

    fn index(&self, name: &str) -> &f64 {
        match self.values.get(name) {
            Some(value) => value,
            None => panic!("there is no metric `{name}`; there are {:?}", self.values.keys().collect::<Vec<_>>()),
        }
    }
}

/// A table, sorted by name; slices have a column each.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = ("global_step", self.global_step as f64);
        let tables: Vec<String> = sliced(self.iter().chain([step])).iter().map(ToString::to_string).collect();
        f.write_str(&tables.join("\n\n"))
    }
}
