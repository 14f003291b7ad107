//! Checks that pass values through. A wrong value fails the run with an error that names the value
//! and its row.
//!
//! Fed values are checked when they enter the graph, so that a bad label is found before a step and
//! not through a NaN loss.

use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::assertion::{BETWEEN, TERMS, Words, assertion, bounds, checked, comparison};
use super::{HostRules, Inference, Said, Specs};
use crate::body::Node;
use crate::op::expect;
use crate::op::spelling::Spelling;
use crate::table::LookupTable;

/// Checks that numbers are from `low` to `high`. A second input gives the row splits of ragged
/// numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Between {
    /// The bits of the bounds, so that equal bounds compare equal.
    low: u64,
    high: u64,
    what: String,
    help: Option<String>,
}

impl Between {
    pub(crate) fn new(low: f64, high: f64, what: &str, help: Option<&str>) -> Between {
        let (low, high) = (low.to_bits(), high.to_bits());
        Between { low, high, what: what.to_string(), help: help.map(str::to_string) }
    }

    fn range(&self) -> String {
        let (low, high) = (f64::from_bits(self.low), f64::from_bits(self.high));
        if high.is_infinite() { format!("{low} or more") } else { format!("{low} to {high}") }
    }
}

impl HostRules for Between {
    fn name(&self) -> &'static str {
        "Identity"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect::number(x[0].dtype)?;
        Ok(smallvec![x[0].clone()])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (low, high) = (f64::from_bits(self.low), f64::from_bits(self.high));
        // NaN is not between any two numbers.
        let is_outside = |v: f64| !(low..=high).contains(&v);
        // Labels are checked in every batch, so the usual dtypes are read without a copy.
        let found = match x[0].dtype() {
            DType::F32 => x[0].as_slice::<f32>()?.iter().position(|&v| is_outside(v.into())),
            DType::I64 => x[0].as_slice::<i64>()?.iter().position(|&v| is_outside(v as f64)),
            _ => x[0].to_f64_vec()?.into_iter().position(is_outside),
        };
        let Some(i) = found else { return Ok(vec![x[0].clone()]) };
        let (value, place) = (x[0].to_f64_vec()?[i], place(x[0].dims(), i, x.get(1).copied())?);
        let error = Error::data(format!("the {} {place} is {value}; expected {}", self.what, self.range()));
        Err(match &self.help {
            Some(help) => error.help(help),
            None => error,
        })
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let (owner, value) = (def.name.clone(), def.input[0].clone());
        let (dtype, rank) = (writer.dtype(node, 0), writer.spec(node, 0).shape.rank());
        let [low, high] = bounds(dtype, f64::from_bits(self.low), f64::from_bits(self.high));
        let (low, high) = (writer.constant(&owner, "low", &low)?, writer.constant(&owner, "high", &high)?);
        let above = comparison(writer, &owner, ("is_above", "GreaterEqual"), &value, &low, dtype);
        let below = comparison(writer, &owner, ("is_below", "LessEqual"), &value, &high, dtype);
        let inside = writer.part(&owner, "is_inside", "LogicalAnd").input(above).input(below);
        let inside = writer.add(inside);
        let message = format!("the {} must be {}; found", self.what, self.range());
        let words = Words { kind: BETWEEN, what: &self.what, help: self.help.as_deref(), message };
        let splits = def.input.get(1).cloned();
        let done = assertion(writer, &owner, &words, (inside, rank), (value.clone(), dtype), splits)?;
        Ok(checked(def, value, dtype, done))
    }
}

/// Returns the ids of terms after checking that the table has found all of them. Inputs: the terms,
/// their ids, and the row splits of ragged terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownTerms {
    pub table: LookupTable,
    pub what: String,
}

impl HostRules for KnownTerms {
    fn name(&self) -> &'static str {
        "Identity"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Ok(smallvec![x[1].clone()])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        match x[1].as_slice::<i64>()?.iter().position(|&id| id < 0) {
            None => Ok(vec![x[1].clone()]),
            Some(i) => Err(self.unknown(x[0], i, x.get(2).copied())?),
        }
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let (owner, terms, ids) = (def.name.clone(), def.input[0].clone(), def.input[1].clone());
        let (dtype, rank) = (writer.dtype(node, 0), writer.spec(node, 0).shape.rank());
        let zero = writer.constant(&owner, "zero", &Array::scalar(0i64))?;
        let known = comparison(writer, &owner, ("is_known", "GreaterEqual"), &ids, &zero, DType::I64);
        let message = format!("the {} must be in the vocabulary; found", self.what);
        let words = Words { kind: TERMS, what: &self.what, help: None, message };
        let splits = def.input.get(2).cloned();
        let done = assertion(writer, &owner, &words, (known, rank), (terms, dtype), splits)?;
        Ok(checked(def, ids, DType::I64, done))
    }
}

impl KnownTerms {
    fn unknown(&self, terms: &Array, i: usize, row_splits: Option<&Array>) -> Result<Error> {
        let term = match terms.dtype() {
            DType::Str => String::from_utf8_lossy(terms.string_slice()?.get(i)).into_owned(),
            _ => terms.to_f64_vec()?.get(i).map_or_else(String::new, f64::to_string),
        };
        let place = place(terms.dims(), i, row_splits)?;
        let error = Error::data(format!("{} `{term}` {place} is not in the vocabulary", self.what));
        let known = self.table.names();
        Ok(error.suggest(&term, known.iter().map(String::as_str)))
    }
}

/// Formats the position of an element for an error message.
fn place(dims: &[usize], i: usize, row_splits: Option<&Array>) -> Result<String> {
    if let Some(splits) = row_splits {
        let row = splits.as_slice::<i64>()?.partition_point(|&begin| begin <= i as i64);
        return Ok(format!("in row {}", row.saturating_sub(1)));
    }
    let width: usize = dims.iter().skip(1).product::<usize>().max(1);
    Ok(match width {
        1 => format!("in row {i}"),
        _ => format!("in row {}, column {}", i / width, i % width),
    })
}
