//! The results of an evaluation.

use std::fmt;
use std::ops::Index;

use estimand_tensor::{Array, Error, Result};
use indexmap::IndexMap;

use crate::console::sliced;
use crate::events;

/// The results of an evaluation, by name.
///
/// Most are numbers. Metrics with several numbers, such as a confusion matrix, are in
/// [`arrays`](Metrics::arrays).
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    values: IndexMap<String, f64>,
    arrays: IndexMap<String, Array>,
    global_step: u64,
    /// Summaries for TensorBoard in addition to the metrics.
    pub(crate) summaries: Vec<events::Value>,
}

impl Metrics {
    pub(crate) fn new(mut values: IndexMap<String, f64>, global_step: u64) -> Metrics {
        values.sort_keys();
        Metrics { values, arrays: IndexMap::new(), global_step, summaries: Vec::new() }
    }

    /// Returns the same metrics with results of several numbers added.
    pub(crate) fn with_arrays(mut self, mut arrays: IndexMap<String, Array>) -> Metrics {
        arrays.sort_keys();
        self.arrays = arrays;
        self
    }

    /// The step of the checkpoint that was evaluated.
    pub fn global_step(&self) -> u64 {
        self.global_step
    }

    /// A metric by name.
    pub fn get(&self, name: &str) -> Result<f64> {
        self.find(name).copied()
    }

    fn find(&self, name: &str) -> Result<&f64> {
        self.values.get(name).ok_or_else(|| match self.arrays.get(name) {
            Some(array) => Error::shape(format!("metric `{name}` is f64{:?}, not one number", array.dims()))
                .help("use Metrics::array to get all of its numbers"),
            None => unknown(name, self.values.keys().map(String::as_str)),
        })
    }

    /// Returns a metric of several numbers by name, as f64.
    pub fn array(&self, name: &str) -> Result<&Array> {
        self.arrays.get(name).ok_or_else(|| unknown(name, self.arrays.keys().map(String::as_str)))
    }

    /// Returns the metrics of several numbers, sorted by name.
    pub fn arrays(&self) -> impl ExactSizeIterator<Item = (&str, &Array)> {
        self.arrays.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the metrics of one number, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Error {
    Error::unknown("metric", name, names)
}

/// Panics if there is no such metric; [`Metrics::get`] does not.
impl Index<&str> for Metrics {
    type Output = f64;

    fn index(&self, name: &str) -> &f64 {
        self.find(name).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Prints a table sorted by name, with a column for each slice. Metrics of several numbers follow
/// after it.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = ("global_step", self.global_step as f64);
        let tables: Vec<String> = sliced(self.iter().chain([step])).iter().map(ToString::to_string).collect();
        f.write_str(&tables.join("\n\n"))?;
        self.arrays().try_for_each(|(name, array)| write!(f, "\n\n{name}\n{array}"))
    }
}
