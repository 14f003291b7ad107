//! Finds the arrays of a run that hold the values of columns, and counts them: [`Watch`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use estimand_tensor::{Array, DType};

use super::{ColumnCounts, Drift};
use crate::json::Input;
use crate::model::{About, Column, Made, Unknown};

/// The columns of a signature that are watched.
#[derive(Default)]
pub(crate) struct Watch {
    /// Inputs that hold the values of features.
    inputs: Vec<(usize, Arc<ColumnCounts>)>,
    /// Further outputs that hold the values of features parsed from Examples.
    parsed: Vec<(usize, Arc<ColumnCounts>)>,
    /// Further outputs that hold ids of vocabularies.
    ids: Vec<(usize, Unknown, Arc<ColumnCounts>)>,
    /// Inputs whose default looks like any other value.
    defaults: Vec<(usize, Arc<ColumnCounts>)>,
}

/// The further outputs of a signature: tensors that show what its columns made of their inputs.
#[derive(Default)]
pub(crate) struct Plan<'a> {
    /// The names of the tensors, in the order of the outputs.
    pub(crate) tensors: Vec<&'a str>,
    /// The columns, each with the place of its tensor.
    pub(crate) columns: Vec<(&'a Column, usize)>,
    parsed: Vec<(&'a str, usize)>,
}

/// Finds the tensors of a signature that are worth watching.
pub(crate) fn plan<'a>(about: &'a About, signature: &str) -> Plan<'a> {
    let mut plan = Plan::default();
    let place = |tensors: &mut Vec<&'a str>, tensor: &'a str| {
        tensors.iter().position(|known| *known == tensor).unwrap_or_else(|| {
            tensors.push(tensor);
            tensors.len() - 1
        })
    };
    let is_of = |signatures: &[String]| signatures.iter().any(|name| name == signature);
    for column in about.columns.iter().filter(|column| is_of(&column.signatures)) {
        plan.columns.push((column, place(&mut plan.tensors, &column.tensor)));
    }
    for (_, feature, tensor) in about.parsed.iter().filter(|(signatures, ..)| is_of(signatures)) {
        plan.parsed.push((feature, place(&mut plan.tensors, tensor)));
    }
    plan
}

/// The integer that stands for nothing in a feature of categories.
fn empty(about: &About, feature: &str) -> Option<i64> {
    let default = about.defaults.get(feature)?;
    match default.dtype() {
        DType::I32 | DType::I64 => default.to_f64_vec().ok()?.first().map(|&value| value as i64),
        DType::F32 | DType::F64 | DType::U8 | DType::Bool | DType::Str => None,
    }
}

impl Watch {
    pub(crate) fn new(about: &About, plan: &Plan<'_>, inputs: &[Input], drift: &mut Drift) -> Watch {
        let mut watch = Watch::default();
        for (i, input) in inputs.iter().enumerate().filter(|(_, input)| about.features.contains(&input.name)) {
            let counts = drift.column(&input.name, &about.training, empty(about, &input.name));
            let is_marked = input.dtype == DType::Str || empty(about, &input.name).is_some();
            if input.default.is_some() && !is_marked {
                watch.defaults.push((i, Arc::clone(&counts)));
            }
            watch.inputs.push((i, counts));
        }
        for &(feature, place) in &plan.parsed {
            watch.parsed.push((place, drift.column(feature, &about.training, empty(about, feature))));
        }
        let mut named: Vec<(String, usize)> = Vec::new();
        for &(column, place) in &plan.columns {
            let Made::Term { unknown: Some(unknown) } = column.made else { continue };
            // The same tensor may serve several columns.
            if watch.ids.iter().any(|(known, ..)| *known == place) {
                continue;
            }
            let feature = feature_of(about, column).filter(|name| !named.iter().any(|(known, _)| known == name));
            let name = feature.unwrap_or(&column.name);
            named.push((name.to_string(), place));
            let counts = drift.column(name, &about.training, empty(about, name));
            counts.has_vocabulary.store(true, Ordering::Relaxed);
            watch.ids.push((place, unknown, counts));
        }
        watch
    }

    /// Counts the values of a run. `more` are its further outputs.
    pub(crate) fn count(&self, inputs: &[Array], more: &[Array]) {
        for (arrays, watched) in [(inputs, &self.inputs), (more, &self.parsed)] {
            for (i, counts) in watched {
                arrays.get(*i).into_iter().for_each(|array| counts.count(array));
            }
        }
        for (i, unknown, counts) in &self.ids {
            let Some(Ok(ids)) = more.get(*i).map(|array| array.as_slice::<i64>()) else { continue };
            let n = ids.iter().filter(|id| unknown.has(**id)).count();
            super::add(&counts.n_unknown, n as u64);
        }
    }

    /// Counts rows that took the default of an input: `defaulted` has those of each input.
    pub(crate) fn count_defaults(&self, defaulted: &[Vec<usize>]) {
        for (i, counts) in &self.defaults {
            let n = defaulted.get(*i).map_or(0, Vec::len) as u64;
            super::add(&counts.n_missing, n);
        }
    }
}

/// The only feature that a column reads. Over Examples, it is that of the same column over named
/// features.
fn feature_of<'a>(about: &'a About, column: &Column) -> Option<&'a str> {
    let same = about.columns.iter().filter(|other| other.name == column.name);
    let only = |other: &'a Column| match &other.inputs[..] {
        [only] if about.features.contains(only) => Some(only.as_str()),
        _ => None,
    };
    same.filter_map(only).next()
}
