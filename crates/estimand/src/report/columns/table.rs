//! The first rows of a dataset, column by column; each distinct value has a code.

use std::collections::HashSet;

use estimand_data::{Dataset, InputContext, Position};
use estimand_tensor::cpu::text::fingerprint64;
use estimand_tensor::{Array, Batch, DType, Error, Feature, Result};
use indexmap::IndexMap;

use super::super::fingerprints::join;

pub(super) use estimand_data::statistics::Role;

/// The code of a missing value: NaN, the empty string, or a row in which a default was filled in.
pub(super) const MISSING: u32 = u32::MAX;
/// The maximum number of stored values: slightly more than a hundred columns of a hundred thousand
/// rows.
const MAX_VALUES: usize = 1 << 24;
/// The number of rows that are read at a time.
const PIECE: usize = 1024;

/// The rows.
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) n_rows: usize,
    /// The number of distinct rows; lower than the number of rows if the input repeats.
    pub(super) n_distinct_rows: usize,
    pub(super) is_all: bool,
    pub(super) not_examined: Vec<String>,
    pub(super) fingerprint: u64,
}

/// One column with one value per row.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) dtype: DType,
    /// The index in `values` of each row's value.
    pub(super) codes: Vec<u32>,
    /// The numbers themselves; empty for strings.
    pub(super) numbers: Vec<f64>,
    /// Every distinct value, in the order of its first row, and the number of rows that have it.
    pub(super) values: IndexMap<Key, usize>,
}

/// A key that is equal for equal values.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Key {
    Text(Box<[u8]>),
    /// A whole number.
    Int(i64),
    /// The bits of other numbers.
    Float(u64),
}

impl Key {
    pub(super) fn text(&self) -> String {
        match self {
            Key::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Key::Int(int) => int.to_string(),
            Key::Float(bits) => f64::from_bits(*bits).to_string(),
        }
    }
}

impl Column {
    fn new(role: Role, name: &str, dtype: DType) -> Column {
        Column { name: name.to_string(), role, dtype, codes: Vec::new(), numbers: Vec::new(), values: IndexMap::new() }
    }

    pub(super) fn n_missing(&self) -> usize {
        self.codes.len() - self.values.values().sum::<usize>()
    }

    pub(super) fn is_number(&self) -> bool {
        self.dtype != DType::Str
    }

    pub(super) fn is_float(&self) -> bool {
        matches!(self.dtype, DType::F32 | DType::F64)
    }

    /// Appends the first `n` values of an array. In `missing` rows, a default was filled in.
    fn take(&mut self, array: &Array, missing: Option<&Array>, n: usize) -> Result<()> {
        if array.dtype() != self.dtype {
            let message = format!("column `{}` has rows of {} after rows of {}", self.name, array.dtype(), self.dtype);
            return Err(Error::dtype(Some(self.dtype), array.dtype(), message));
        }
        let filled = missing.map(|rows| rows.as_slice::<bool>()).transpose()?.unwrap_or_default();
        let is_missing = |row: usize| filled.get(row) == Some(&true);
        if self.dtype == DType::Str {
            for (row, text) in array.strings()?.take(n).enumerate() {
                self.push((!text.is_empty() && !is_missing(row)).then(|| Key::Text(text.into())));
            }
            return Ok(());
        }
        let whole = match self.dtype {
            DType::F32 | DType::F64 => {
                for (row, number) in array.to_f64_vec()?.into_iter().take(n).enumerate() {
                    let number = if is_missing(row) { f64::NAN } else { number };
                    // Positive and negative zero are one value.
                    self.push((!number.is_nan()).then(|| Key::Float((number + 0.0).to_bits())));
                    self.numbers.push(number);
                }
                return Ok(());
            }
            DType::I64 => array.as_slice::<i64>()?[..n].to_vec(),
            DType::I32 => array.as_slice::<i32>()?[..n].iter().map(|&int| int.into()).collect(),
            DType::U8 => array.as_slice::<u8>()?[..n].iter().map(|&int| int.into()).collect(),
            DType::Bool => array.as_slice::<bool>()?[..n].iter().map(|&yes| yes.into()).collect(),
            DType::Str => return Ok(()),
        };
        for (row, int) in whole.into_iter().enumerate() {
            self.push((!is_missing(row)).then_some(Key::Int(int)));
            self.numbers.push(if is_missing(row) { f64::NAN } else { int as f64 });
        }
        Ok(())
    }

    fn push(&mut self, key: Option<Key>) {
        let Some(key) = key else { return self.codes.push(MISSING) };
        let entry = self.values.entry(key);
        self.codes.push(entry.index() as u32);
        *entry.or_insert(0) += 1;
    }
}

impl Table {
    /// Reads at most `max_rows` rows from the beginning.
    pub(super) fn read(data: &Dataset, max_rows: usize) -> Result<Table> {
        let mut rows = data.open(&InputContext::default(), &Position::default())?;
        let mut table = Table {
            columns: Vec::new(),
            n_rows: 0,
            n_distinct_rows: 0,
            is_all: false,
            not_examined: Vec::new(),
            fingerprint: 0,
        };
        let (mut distinct, mut max_rows) = (HashSet::new(), max_rows);
        let mut names: Option<Vec<(Role, String)>> = None;
        loop {
            let Some(item) = rows.pull(PIECE.min(max_rows - table.n_rows).max(1))? else {
                table.is_all = true;
                break;
            };
            if table.n_rows == max_rows {
                break;
            }
            let features = features_of(&item.batch);
            let known = names.get_or_insert_with(|| {
                max_rows = max_rows.min(MAX_VALUES / features.len().max(1)).max(1);
                features.iter().map(|(role, name, _)| (*role, name.to_string())).collect()
            });
            if !known.iter().map(|(role, name)| (*role, name.as_str())).eq(features.iter().map(|f| (f.0, f.1))) {
                let found: Vec<String> = features.iter().map(|(role, name, _)| format!("{role} `{name}`")).collect();
                let known: Vec<String> = known.iter().map(|(role, name)| format!("{role} `{name}`")).collect();
                return Err(Error::data(format!(
                    "from row {} on the columns are {}; before, they were {}",
                    table.n_rows + 1,
                    found.join(", "),
                    known.join(", ")
                )));
            }
            let n = item.batch.n_rows().min(max_rows - table.n_rows);
            table.take(&item.batch, n, &mut distinct)?;
        }
        table.n_distinct_rows = distinct.len();
        Ok(table)
    }

    fn take(&mut self, batch: &Batch, n: usize, distinct: &mut HashSet<u64>) -> Result<()> {
        let features = features_of(batch);
        if self.n_rows == 0 {
            for (role, name, feature) in features.iter().filter(|(role, ..)| *role != Role::Weights) {
                match single(feature) {
                    Some(array) => self.columns.push(Column::new(*role, name, array.dtype())),
                    None => self.not_examined.push(name.to_string()),
                }
            }
        }
        let mut columns = self.columns.iter_mut().peekable();
        for (role, name, feature) in &features {
            let Some(column) = columns.next_if(|column| column.role == *role && column.name == *name) else { continue };
            let Some(array) = single(feature) else {
                return Err(Error::data(format!("column `{name}` has several values in some rows and one in others")));
            };
            column.take(array, batch.missing(name), n)?;
        }
        let mut hashes = vec![0; n];
        features.iter().try_for_each(|(_, _, feature)| add_rows(feature, &mut hashes))?;
        self.fingerprint = hashes.iter().fold(self.fingerprint, |all, &row| join(all, row));
        distinct.extend(hashes);
        self.n_rows += n;
        Ok(())
    }
}

fn features_of(batch: &Batch) -> Vec<(Role, &str, Feature)> {
    let features = batch.features().iter().map(|(name, feature)| (Role::Feature, &**name, feature.clone()));
    let labels = batch.labels().iter().map(|(name, label)| (Role::Label, &**name, label.clone()));
    let weights = batch.weights().map(|weights| (Role::Weights, "", weights.clone().into()));
    features.chain(labels).chain(weights).collect()
}

/// Returns the values, if there is one in each row.
fn single(feature: &Feature) -> Option<&Array> {
    match feature {
        Feature::Dense(array) if matches!(array.dims(), [_] | [_, 1]) => Some(array),
        _ => None,
    }
}

/// Adds the values of a feature's first rows to the hashes of these rows.
fn add_rows(feature: &Feature, hashes: &mut [u64]) -> Result<()> {
    let (array, splits) = match feature {
        Feature::Dense(array) => (array, None),
        Feature::Ragged(ragged) => (ragged.values(), Some(ragged.row_splits())),
    };
    let n_values = array.len() / array.dims().first().copied().unwrap_or(1).max(1);
    let range = |row: usize| match splits {
        None => row * n_values..(row + 1) * n_values,
        Some(splits) => {
            // In ragged rows of vectors all values count.
            let at = |i: usize| splits.get(i).map_or(0, |&split| split as usize) * n_values;
            at(row)..at(row + 1)
        }
    };
    if array.dtype() == DType::Str {
        let strings = array.string_slice()?;
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = join(*hash, range(row).fold(0, |all, i| join(all, fingerprint64(strings.get(i)))));
        }
    } else {
        let (bytes, size) = (array.bytes(), array.dtype().size());
        for (row, hash) in hashes.iter_mut().enumerate() {
            let range = range(row);
            let values = bytes.get(range.start * size..range.end * size).unwrap_or_default();
            *hash = join(*hash, fingerprint64(values));
        }
    }
    Ok(())
}
