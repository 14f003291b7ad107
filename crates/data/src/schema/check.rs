//! Checks rows against a schema.

use std::collections::HashSet;

use estimand_tensor::{Array, Batch, DType, Feature, Result, nearest_name};

use super::Schema;
use super::column::{SchemaColumn, Value};
use super::misfits::{Found, Misfits};
use crate::stage::{InputContext, PIECE};
use crate::statistics::Role;
use crate::{Dataset, Position};

/// The longest text of a value that a message shows.
const SHOWN: usize = 80;

pub(super) fn dataset(data: &Dataset, schema: &Schema) -> Result<Misfits> {
    let mut rows = data.open(&InputContext::default(), &Position::default())?;
    let mut checker = Checker::new(schema);
    while let Some(item) = rows.pull(PIECE)? {
        checker.check(&item.batch);
    }
    Ok(checker.finish())
}

/// Checks batches, one after another, against a schema.
pub(super) struct Checker<'a> {
    names: HashSet<(Role, &'a str)>,
    columns: Vec<(&'a SchemaColumn, Domain<'a>)>,
    n_rows: u64,
    found: Found,
}

/// The domain of a column, as a set for lookups.
struct Domain<'a> {
    texts: HashSet<&'a [u8]>,
    ints: HashSet<i64>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(schema: &'a Schema) -> Checker<'a> {
        let domain = |column: &'a SchemaColumn| {
            let mut domain = Domain { texts: HashSet::new(), ints: HashSet::new() };
            for member in column.domain.iter().flatten() {
                match member {
                    Value::Text(text) => drop(domain.texts.insert(text.as_bytes())),
                    Value::Int(int) => drop(domain.ints.insert(*int)),
                    Value::Float(_) => {}
                }
            }
            (column, domain)
        };
        let names = schema.columns().iter().map(|column| (column.role, column.name.as_str())).collect();
        Checker { names, columns: schema.columns().iter().map(domain).collect(), n_rows: 0, found: Found::default() }
    }

    pub(super) fn check(&mut self, batch: &Batch) {
        let Checker { names: known, columns, n_rows, found } = self;
        for (column, domain) in columns.iter() {
            let weights = batch.weights().map(|weights| Feature::Dense(weights.clone()));
            let feature = match column.role {
                Role::Feature => batch.features().get(column.name.as_str()),
                Role::Label => batch.labels().get(column.name.as_str()),
                Role::Weights => weights.as_ref(),
            };
            match feature {
                Some(feature) => {
                    let defaults = batch.missing(&column.name).and_then(|missing| missing.as_slice().ok());
                    Values { column, domain, feature, defaults, first: *n_rows + 1 }.check(found)
                }
                None => found.add_once(&column.name, missing(column, batch)),
            }
        }
        let names = [(Role::Feature, batch.features()), (Role::Label, batch.labels())];
        for (role, name) in names.iter().flat_map(|(role, map)| map.keys().map(move |name| (*role, name))) {
            if !known.contains(&(role, &**name)) {
                found.add_once(name, format!("this {role} is not in the schema"));
            }
        }
        *n_rows += batch.n_rows() as u64;
    }

    pub(super) fn finish(self) -> Misfits {
        self.found.finish(self.n_rows)
    }
}

fn missing(column: &SchemaColumn, batch: &Batch) -> String {
    let (role, name) = (column.role, column.name.as_str());
    let others = match role {
        Role::Label => batch.labels(),
        _ => batch.features(),
    };
    let near = nearest_name(name, others.keys().map(|name| &**name)).filter(|_| role != Role::Weights);
    match near {
        Some(near) => format!("the data have no such {role}; the nearest is `{near}`"),
        None => format!("the data have no such {role}"),
    }
}

/// The values of a column in a batch.
struct Values<'a> {
    column: &'a SchemaColumn,
    domain: &'a Domain<'a>,
    feature: &'a Feature,
    /// The rows whose value is only a default.
    defaults: Option<&'a [bool]>,
    /// The number of the batch's first row.
    first: u64,
}

impl Values<'_> {
    fn check(&self, found: &mut Found) {
        let SchemaColumn { name, dtype, dims, required, .. } = self.column;
        if self.feature.dtype() != *dtype {
            return found.add_once(name, format!("holds {}, expected {dtype}", self.feature.dtype()));
        }
        let array = match (self.feature, dims) {
            (Feature::Dense(array), Some(dims)) if array.dims().get(1..) == Some(dims.as_slice()) => array,
            (Feature::Ragged(ragged), None) => {
                let rows = ragged.row_splits().windows(2).enumerate().filter(|(_, row)| *required && row[0] == row[1]);
                rows.for_each(|(i, _)| {
                    found.add(name, Some(self.first + i as u64), || {
                        "the row has no values, but they are required".into()
                    })
                });
                ragged.values()
            }
            (feature, dims) => {
                let expected = dims.as_ref().map_or("ragged rows".to_string(), |dims| format!("rows of {dims:?}"));
                let actual = match feature {
                    Feature::Dense(array) => format!("rows of {:?}", array.dims().get(1..).unwrap_or_default()),
                    Feature::Ragged(_) => "ragged rows".to_string(),
                };
                return found.add_once(name, format!("has {actual}, expected {expected}"));
            }
        };
        // The dtype was compared above, so these reads succeed.
        let checked = match dtype {
            DType::F32 => {
                array.as_slice::<f32>().map(|values| self.floats(values.iter().map(|&v| f64::from(v)), found))
            }
            DType::F64 => array.as_slice::<f64>().map(|values| self.floats(values.iter().copied(), found)),
            DType::I32 => array.as_slice::<i32>().map(|values| self.ints(values.iter().map(|&v| i64::from(v)), found)),
            DType::I64 => array.as_slice::<i64>().map(|values| self.ints(values.iter().copied(), found)),
            DType::U8 => array.as_slice::<u8>().map(|values| self.ints(values.iter().map(|&v| i64::from(v)), found)),
            DType::Bool => Ok(()),
            DType::Str => self.texts(array, found),
        };
        if let Err(error) = checked {
            found.add_once(name, error.message().to_string());
        }
    }

    /// The number of the row that holds a value.
    fn row(&self, i: usize) -> Option<u64> {
        let row = match self.feature {
            Feature::Dense(array) => i / array.dims().iter().skip(1).product::<usize>().max(1),
            Feature::Ragged(ragged) => ragged.row_splits().partition_point(|&split| split <= i as i64) - 1,
        };
        Some(self.first + row as u64)
    }

    /// Whether a number is only the default of a row without a value. Reports it if values are
    /// required.
    fn is_default(&self, i: usize, found: &mut Found) -> bool {
        let is_default = self.defaults.is_some_and(|defaults| {
            self.row(i).is_some_and(|row| defaults.get((row - self.first) as usize).copied().unwrap_or(false))
        });
        if is_default && self.column.required {
            found.add(&self.column.name, self.row(i), || "missing, but required".to_string());
        }
        is_default
    }

    fn floats(&self, values: impl Iterator<Item = f64>, found: &mut Found) {
        let SchemaColumn { name, dtype, required, .. } = self.column;
        let (min, max) = (self.column.min.as_ref().map(Value::to_f64), self.column.max.as_ref().map(Value::to_f64));
        // Prints a float with the digits of its own type.
        let shown = |value: f64| if *dtype == DType::F32 { (value as f32).to_string() } else { value.to_string() };
        for (i, value) in values.enumerate() {
            if self.is_default(i, found) {
                continue;
            }
            if value.is_nan() {
                if *required {
                    found.add(name, self.row(i), || "missing (NaN), but required".to_string());
                }
            } else if let Some(bound) = min.filter(|&bound| value < bound) {
                found.add(name, self.row(i), || format!("{} is below the min of {}", shown(value), shown(bound)));
            } else if let Some(bound) = max.filter(|&bound| value > bound) {
                found.add(name, self.row(i), || format!("{} is above the max of {}", shown(value), shown(bound)));
            }
        }
    }

    fn ints(&self, values: impl Iterator<Item = i64>, found: &mut Found) {
        let name = &self.column.name;
        let bound = |bound: &Option<Value>| if let Some(Value::Int(int)) = bound { Some(*int) } else { None };
        let (min, max) = (bound(&self.column.min), bound(&self.column.max));
        let has_domain = self.column.domain.is_some();
        for (i, value) in values.enumerate() {
            if self.is_default(i, found) {
                continue;
            }
            if let Some(bound) = min.filter(|&bound| value < bound) {
                found.add(name, self.row(i), || format!("{value} is below the min of {bound}"));
            } else if let Some(bound) = max.filter(|&bound| value > bound) {
                found.add(name, self.row(i), || format!("{value} is above the max of {bound}"));
            } else if has_domain && !self.domain.ints.contains(&value) {
                found.add(name, self.row(i), || format!("{value} is not in the domain"));
            }
        }
    }

    fn texts(&self, array: &Array, found: &mut Found) -> Result<()> {
        let SchemaColumn { name, required, domain, .. } = self.column;
        for (i, text) in array.strings()?.enumerate() {
            if text.is_empty() {
                if *required {
                    found.add(name, self.row(i), || "missing (an empty string), but required".to_string());
                }
            } else if domain.is_some() && !self.domain.texts.contains(text) {
                found.add(name, self.row(i), || self.unknown(text));
            }
        }
        Ok(())
    }

    fn unknown(&self, text: &[u8]) -> String {
        let shown = text[..text.len().min(SHOWN)].escape_ascii().to_string();
        let known = self.column.domain.iter().flatten().filter_map(|member| match member {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        });
        match std::str::from_utf8(text).ok().and_then(|text| nearest_name(text, known)) {
            Some(near) => format!("\"{shown}\" is not in the domain; did you mean {near:?}?"),
            None => format!("\"{shown}\" is not in the domain"),
        }
    }
}
