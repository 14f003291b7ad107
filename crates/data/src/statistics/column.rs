//! Collects the statistics of one column. Values wait until they fill whole blocks.

use std::ops::Range;

use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, Batch, DType, Error, Feature, Result, Strings};

use super::numbers::{Block, NumberKind, Numbers};
use super::terms::Terms;
use super::{NumberStatistics, Role, TermStatistics};
use crate::rows::gather;

/// The number of values in a block. Blocks are counted from the column's first value, so the result
/// does not depend on how rows are cut into pieces.
pub(super) const BLOCK: usize = 4096;

/// The statistics of a column.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnStatistics {
    /// Its name; empty for weights.
    pub name: String,
    /// Its role: feature, label or weights.
    pub role: Role,
    /// The type of its values.
    pub dtype: DType,
    /// The sizes of one row's axes; `None` if they differ from row to row.
    pub dims: Option<Vec<usize>>,
    /// The lengths of rows, if the column is ragged.
    pub lengths: Option<RowLengths>,
    /// The statistics of numbers and booleans.
    pub numbers: Option<NumberStatistics>,
    /// The statistics of strings, integers and booleans.
    pub terms: Option<TermStatistics>,
}

impl ColumnStatistics {
    /// The number of missing values: NaN, the empty string, and rows that had no value
    /// ([`Batch::missing`](estimand_tensor::Batch::missing)).
    pub fn n_missing(&self) -> u64 {
        let of_numbers = self.numbers.as_ref().map_or(0, |numbers| numbers.n_missing);
        of_numbers + self.terms.as_ref().map_or(0, |terms| terms.n_missing)
    }

    /// The number of values that are not missing.
    pub fn n_values(&self) -> u64 {
        let of_numbers = self.numbers.as_ref().map(|numbers| numbers.n_values);
        of_numbers.or(self.terms.as_ref().map(|terms| terms.n_values)).unwrap_or(0)
    }
}

/// The lengths of ragged rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RowLengths {
    /// The number of rows without values.
    pub n_empty: u64,
    /// The length of the shortest row.
    pub min: u64,
    /// The length of the longest row.
    pub max: u64,
}

/// A column, and the values that do not fill a block yet.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) role: Role,
    dtype: DType,
    dims: Option<Vec<usize>>,
    lengths: Option<RowLengths>,
    waiting: Waiting,
    numbers: Numbers,
    terms: Option<Terms>,
}

enum Waiting {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Strings(Strings),
}

impl Column {
    pub(super) fn new(role: Role, name: &str, feature: &Feature, max_terms: usize) -> Result<Column> {
        let dtype = feature.dtype();
        let waiting = match dtype {
            DType::F32 | DType::F64 => Waiting::Floats(Vec::new()),
            DType::I32 | DType::I64 | DType::U8 | DType::Bool => Waiting::Ints(Vec::new()),
            DType::Str => Waiting::Strings(Strings::default()),
        };
        Ok(Column {
            name: name.to_string(),
            role,
            dtype,
            dims: values_of(feature).dims().get(1..).map(<[usize]>::to_vec),
            lengths: None,
            waiting,
            numbers: Numbers::default(),
            terms: Terms::new(dtype, max_terms)?,
        })
    }

    /// Adds the values of some more rows. `missing` are the rows of numbers whose value is only a
    /// default: they count as missing.
    pub(super) fn take(&mut self, feature: &Feature, missing: Option<&Array>) -> Result<()> {
        let present;
        let values = match missing.filter(|_| self.dtype != DType::Str) {
            Some(missing) => {
                present = self.without_defaults(values_of(feature), missing.as_slice()?)?;
                &present
            }
            None => values_of(feature),
        };
        if values.dtype() != self.dtype {
            let message = format!("these rows are {}, but earlier rows are {}", values.dtype(), self.dtype);
            return Err(Error::dtype(Some(self.dtype), values.dtype(), message));
        }
        if self.dims.as_deref() != values.dims().get(1..) {
            self.dims = None;
        }
        if let Feature::Ragged(ragged) = feature {
            for row in ragged.row_splits().windows(2) {
                let length = (row[1] - row[0]) as u64;
                let lengths = self.lengths.get_or_insert(RowLengths { n_empty: 0, min: length, max: length });
                lengths.n_empty += u64::from(length == 0);
                (lengths.min, lengths.max) = (lengths.min.min(length), lengths.max.max(length));
            }
        }
        match &mut self.waiting {
            Waiting::Strings(waiting) => waiting.append_slice(values.string_slice()?),
            Waiting::Floats(waiting) => match self.dtype {
                DType::F64 => waiting.extend_from_slice(values.as_slice()?),
                _ => waiting.extend(values.as_slice::<f32>()?.iter().map(|&v| f64::from(v))),
            },
            Waiting::Ints(waiting) => match self.dtype {
                DType::I64 => waiting.extend_from_slice(values.as_slice()?),
                DType::I32 => waiting.extend(values.as_slice::<i32>()?.iter().map(|&v| i64::from(v))),
                DType::U8 => waiting.extend(values.as_slice::<u8>()?.iter().map(|&v| i64::from(v))),
                _ => waiting.extend(values.as_slice::<bool>()?.iter().map(|&v| i64::from(v))),
            },
        }
        Ok(())
    }

    /// The values of rows that had one.
    fn without_defaults(&mut self, values: &Array, missing: &[bool]) -> Result<Array> {
        let width = values.dims().iter().skip(1).product::<usize>() as u64;
        if let Some(row) = missing.iter().position(|&missing| missing) {
            self.numbers.n_missing += missing.iter().filter(|&&missing| missing).count() as u64 * width;
            let default = values.rows(row..row + 1)?.to_f64_vec()?;
            self.numbers.default = self.numbers.default.or(default.first().copied());
        }
        let present: Vec<u64> = (0..).zip(missing).filter_map(|(row, &missing)| (!missing).then_some(row)).collect();
        match gather(&Batch::new().with_feature("", values.clone())?, &present)?.feature("")? {
            Feature::Dense(present) => Ok(present.clone()),
            Feature::Ragged(_) => Err(Error::internal("dense values became ragged")),
        }
    }

    /// The number of waiting values.
    pub(super) fn n_waiting(&self) -> usize {
        match &self.waiting {
            Waiting::Ints(waiting) => waiting.len(),
            Waiting::Floats(waiting) => waiting.len(),
            Waiting::Strings(waiting) => waiting.len(),
        }
    }

    /// The ranges of the blocks among the waiting numbers. With `is_end`, the last block may be
    /// short. Strings have none.
    pub(super) fn blocks(&self, is_end: bool) -> Vec<Range<usize>> {
        if matches!(self.waiting, Waiting::Strings(_)) {
            return Vec::new();
        }
        let n = self.n_waiting();
        let end = if is_end { n } else { n / BLOCK * BLOCK };
        (0..end).step_by(BLOCK).map(|start| start..end.min(start + BLOCK)).collect()
    }

    /// Summarises a block of waiting numbers.
    pub(super) fn sum_up(&self, block: Range<usize>) -> Block {
        match &self.waiting {
            Waiting::Ints(waiting) => Block::of_ints(&waiting[block]),
            Waiting::Floats(waiting) => Block::of_floats(&waiting[block]),
            Waiting::Strings(_) => Block::default(),
        }
    }

    /// Adds the summary of the next block.
    pub(super) fn absorb(&mut self, block: &Block) {
        self.numbers.absorb(block);
    }

    /// Counts the terms among the first `n` waiting numbers, or all waiting strings, and drops
    /// these values.
    pub(super) fn release(&mut self, pool: &Pool, n: usize) -> Result<()> {
        match (&mut self.waiting, &mut self.terms) {
            (Waiting::Strings(waiting), Some(terms)) => {
                terms.add_strings(pool, waiting.as_slice())?;
                waiting.clear();
            }
            (Waiting::Ints(waiting), Some(terms)) => {
                terms.add_ints(pool, &waiting[..n])?;
                waiting.drain(..n);
            }
            (Waiting::Floats(waiting), _) => drop(waiting.drain(..n)),
            (_, None) => return Err(Error::internal("terms are not counted")),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> ColumnStatistics {
        let numbers = match self.waiting {
            Waiting::Ints(_) => Some(self.numbers.finish(NumberKind::Int)),
            Waiting::Floats(_) => Some(self.numbers.finish(NumberKind::Float)),
            Waiting::Strings(_) => None,
        };
        ColumnStatistics {
            name: self.name,
            role: self.role,
            dtype: self.dtype,
            dims: self.dims,
            lengths: self.lengths,
            numbers,
            terms: self.terms.map(Terms::finish),
        }
    }
}

fn values_of(feature: &Feature) -> &Array {
    match feature {
        Feature::Dense(array) => array,
        Feature::Ragged(ragged) => ragged.values(),
    }
}
