//! Metrics of a slice: the rows in which a feature has a certain value.

use std::fmt;

use estimand_graph::Tensor;
use estimand_tensor::{Array, DType, Error, Result};

use super::batch::{LabelledBatch, any_of_row};
use crate::Input;

/// A value of a feature or a label: text or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A string.
    Text(String),
    /// An integer.
    Int(i64),
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Text(text) => f.write_str(text),
            Term::Int(n) => n.fmt(f),
        }
    }
}

impl From<&str> for Term {
    fn from(text: &str) -> Term {
        Term::Text(text.to_string())
    }
}

impl From<String> for Term {
    fn from(text: String) -> Term {
        Term::Text(text)
    }
}

impl From<i32> for Term {
    fn from(n: i32) -> Term {
        Term::Int(n.into())
    }
}

impl From<i64> for Term {
    fn from(n: i64) -> Term {
        Term::Int(n)
    }
}

/// A feature, and its values that metrics are reported for.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(super) feature: String,
    pub(super) values: Vec<Term>,
}

impl Slice {
    pub(crate) fn new(feature: String, values: Vec<Term>) -> Slice {
        Slice { feature, values }
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.values.is_empty() {
            false => Ok(()),
            true => {
                Err(Error::config(format!("metrics are sliced by `{}`, but no value of it is given", self.feature))
                    .help("name the values: .slice_by(feature, [..])"))
            }
        }
    }

    /// Returns the suffix of metric keys for each value, and its rows: 1 for rows of the slice, 0
    /// for others.
    pub(super) fn rows(&self, batch: &LabelledBatch) -> Result<Vec<(String, Tensor)>> {
        let place = || format!("in the metrics sliced by `{}`", self.feature);
        let input = batch.features().find(&self.feature).map_err(|e| e.context(place()))?;
        let dtype = match input {
            Input::Dense(tensor) => tensor.dtype(),
            Input::Ragged(ragged) => ragged.values.dtype(),
        };
        let rows = |value: &Term| {
            let tensor = match (value, dtype) {
                (Term::Text(text), DType::Str) => {
                    let text = Array::from_strings([], [text])?;
                    any_of_row(input, |x| x.string_equal(&x.graph().constant(text.clone())))
                }
                (Term::Int(n), dtype) if dtype.is_number() => any_of_row(input, |x| x.equal(*n as f64)),
                _ => {
                    let message = format!("the value `{value}` does not fit a feature of {dtype}");
                    return Err(Error::dtype(None, dtype, message).context(place()));
                }
            };
            Ok((format!("{}={value}", self.feature), tensor))
        };
        self.values.iter().map(rows).collect()
    }
}
