//! `ExampleParser`: parses serialized `tf.Example`s to features.

use std::sync::OnceLock;

use estimand_tensor::parallel::Pool;
use estimand_tensor::{Feature, FeatureSpec, Result};

use super::careful;
use super::cursor::{Cursor, DELIMITED, tag};
use super::plan::{Length, Plan};
use super::rows::Rows;

/// The smallest number of rows worth a separate task, about 20 us.
const MIN_ROWS_PER_TASK: usize = 64;

/// The largest number of tasks for a batch.
const MAX_TASKS: usize = 16;

/// The number of positions in a row for which the feature of the previous row is remembered.
const MAX_GUESSES: usize = 1024;

/// A parser of serialized `tf.Example`s for the features of a spec. The [module](super) lists the
/// parsing rules.
#[derive(Debug)]
pub struct ExampleParser {
    plan: Plan,
}

impl ExampleParser {
    /// Checks the features to parse. Results come in the same order.
    pub fn new<N: Into<String>>(features: impl IntoIterator<Item = (N, FeatureSpec)>) -> Result<ExampleParser> {
        Ok(ExampleParser { plan: Plan::new(features)? })
    }

    /// The names of the features, in the order of the results.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.plan.features.iter().map(|feature| feature.name.as_str())
    }

    /// Parses a batch, one serialized `tf.Example` per row.
    pub fn parse<S: AsRef<[u8]>>(&self, serialized: impl IntoIterator<Item = S>) -> Result<Vec<Feature>> {
        self.rows(serialized, 0)?.finish(&self.plan)
    }

    /// Parses a batch on the threads of a pool. The result or error is the same as that of
    /// [`parse`](ExampleParser::parse).
    pub fn parse_parallel<S: AsRef<[u8]> + Sync>(&self, serialized: &[S], pool: &Pool) -> Result<Vec<Feature>> {
        let per_task = serialized.len().div_ceil(MAX_TASKS).max(MIN_ROWS_PER_TASK);
        let parts: Vec<&[S]> = serialized.chunks(per_task).collect();
        if parts.len() < 2 || pool.n_threads() < 2 {
            return self.parse(serialized);
        }
        let parts = in_parallel(pool, parts.len(), &|task| self.rows(parts[task], task * per_task))?;
        in_parallel(pool, self.plan.features.len(), &|i| Rows::join(&parts, &self.plan, i))
    }

    /// Parses rows; `first` is the index of the first one in its batch.
    fn rows<S: AsRef<[u8]>>(&self, serialized: impl IntoIterator<Item = S>, first: usize) -> Result<Rows> {
        let serialized = serialized.into_iter();
        let mut rows = Rows::new(&self.plan, serialized.size_hint().0);
        let mut guesses = Guesses::default();
        for row in serialized {
            if self.quick_row(row.as_ref(), &mut rows, &mut guesses).is_none() {
                self.careful_row(row.as_ref(), &mut rows, first)?;
            }
        }
        Ok(rows)
    }

    /// Appends a row in the usual encoding, without duplicates and errors. For any other row,
    /// returns `None`, with part of the row appended.
    #[inline]
    fn quick_row(&self, row: &[u8], rows: &mut Rows, guesses: &mut Guesses) -> Option<()> {
        let Plan { features, index } = &self.plan;
        let n_rows = rows.n_rows;
        let mut n_found = 0;
        let mut position = 0;
        let mut example = Cursor::new(row);
        while let Some(byte) = example.byte() {
            let mut map = (byte == FIRST).then_some(Cursor::new(example.delimited()?))?;
            while let Some(byte) = map.byte() {
                let mut entry = (byte == FIRST).then_some(Cursor::new(map.delimited()?))?;
                let key = (entry.byte()? == FIRST).then_some(entry.delimited()?)?;
                let mut value = (entry.byte()? == SECOND).then_some(Cursor::new(entry.delimited()?))?;
                if !entry.is_empty() {
                    return None;
                }
                let guess = guesses.at(position);
                position += 1;
                let i = if index.is(guess, key) {
                    guess
                } else {
                    let found = index.find(key);
                    guesses.set(position - 1, found);
                    let Some(found) = found else { continue };
                    found
                };
                let (feature, column) = (&features[i], &mut rows.columns[i]);
                match value.byte() {
                    None if matches!(feature.length, Length::Ragged) => return None,
                    None => continue,
                    Some(byte) if byte != feature.kind.tag() || column.is_found(n_rows) => return None,
                    Some(_) => column.read(value.delimited()?, &feature.length, n_rows)?,
                }
                if !value.is_empty() {
                    return None;
                }
                n_found += 1;
            }
        }
        if n_found < features.len() {
            for (feature, column) in features.iter().zip(&mut rows.columns) {
                if !column.is_found(n_rows) {
                    column.miss(&feature.length)?;
                }
            }
        }
        rows.n_rows += 1;
        Some(())
    }

    #[cold]
    fn careful_row(&self, row: &[u8], rows: &mut Rows, first: usize) -> Result<()> {
        let n_rows = rows.n_rows;
        for (feature, column) in self.plan.features.iter().zip(&mut rows.columns) {
            column.roll_back(&feature.length, n_rows);
        }
        let mut entries = Vec::new();
        let read = careful::fields(row, |number, contents| match (number, contents) {
            (1, Some(map)) => careful::entries(map, &mut entries),
            _ => Ok(()),
        });
        read.map_err(|damage| {
            let message = format!("{} bytes are not a tf.Example: {damage}", row.len());
            careful::row_error(first + n_rows, None, message)
        })?;
        careful::append_row(&self.plan, rows, &entries, first + n_rows)
    }
}

/// Runs tasks and returns their results in order, or the first error.
fn in_parallel<T: Send + Sync>(
    pool: &Pool,
    n_tasks: usize,
    task: &(dyn Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let results: Vec<OnceLock<Result<T>>> = (0..n_tasks).map(|_| OnceLock::new()).collect();
    pool.run(n_tasks, &|i| {
        // No other task sets this result.
        let _ = results[i].set(task(i));
    });
    results.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// The tags of a message's first and second fields, which are length-delimited.
const FIRST: u8 = tag(1, DELIMITED);
const SECOND: u8 = tag(2, DELIMITED);

/// The feature at each position of the previous row: the rows of a file usually have the same
/// order.
#[derive(Default)]
struct Guesses(Vec<usize>);

impl Guesses {
    /// The number of a feature, or a number that no feature has.
    #[inline]
    fn at(&self, position: usize) -> usize {
        self.0.get(position).copied().unwrap_or(usize::MAX)
    }

    #[inline]
    fn set(&mut self, position: usize, feature: Option<usize>) {
        let feature = feature.unwrap_or(usize::MAX);
        if position < self.0.len() {
            self.0[position] = feature;
        } else if position == self.0.len() && position < MAX_GUESSES {
            self.0.push(feature);
        }
    }
}
