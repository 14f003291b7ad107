//! The pass over the rows: one thread reads ahead, and a pool summarises the blocks.

use std::sync::{Mutex, OnceLock, PoisonError};

use estimand_tensor::parallel::Pool;
use estimand_tensor::{Batch, Error, Feature, Result};

use super::column::{BLOCK, Column};
use super::{Role, Statistics};
use crate::stage::{InputContext, PIECE};
use crate::{Dataset, Position};

/// The number of waiting values, in the fullest column, at which all columns are summarised. It
/// makes enough blocks for the threads of a large machine.
const CHUNK: usize = 16 * BLOCK;

/// The number of pieces that are read ahead.
const AHEAD: usize = 16;

/// The options for computing [`Statistics`].
///
/// ```
/// # use estimand_data::{Dataset, statistics::StatisticsPass};
/// # use estimand_tensor::Array;
/// # let data = Dataset::from_arrays([("user", Array::from([7i64, 7, 8]))]);
/// let statistics = StatisticsPass::new().max_terms(1_000_000).run(&data)?;
/// # assert_eq!(statistics.terms("user")?.n_distinct(), Some(2));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StatisticsPass {
    max_terms: usize,
}

impl Default for StatisticsPass {
    fn default() -> StatisticsPass {
        StatisticsPass { max_terms: 1 << 18 }
    }
}

impl StatisticsPass {
    /// A pass with all defaults.
    pub fn new() -> StatisticsPass {
        StatisticsPass::default()
    }

    /// Limits the distinct terms of a column, which may also have at most 64 MB of text. By
    /// default, 262,144 terms.
    ///
    /// Within the limit, counts are exact. Beyond it, rare terms are dropped; see
    /// [`TermCounts`](estimand_tensor::vocabulary::TermCounts).
    pub fn max_terms(self, max_terms: usize) -> StatisticsPass {
        StatisticsPass { max_terms }
    }

    /// Reads all rows of a dataset once, on all cores.
    pub fn run(&self, data: &Dataset) -> Result<Statistics> {
        self.run_on(Pool::global(), data)
    }

    /// Reads all rows of a dataset once, on the threads of a pool. The number of threads does not
    /// affect the result.
    pub fn run_on(&self, pool: &Pool, data: &Dataset) -> Result<Statistics> {
        let mut rows = data.prefetch(AHEAD).open(&InputContext::default(), &Position::default())?;
        let mut columns = Vec::new();
        let mut n_rows = 0;
        while let Some(item) = rows.pull(PIECE)? {
            let features = features_of(&item.batch);
            if n_rows == 0 {
                let new =
                    |(role, name, feature): &(Role, &str, Feature)| Column::new(*role, name, feature, self.max_terms);
                columns = features.iter().map(new).collect::<Result<Vec<_>>>()?;
            }
            check_names(&columns, &features, n_rows)?;
            for (column, (_, name, feature)) in columns.iter_mut().zip(&features) {
                let place = || format!("in column `{name}`, from row {} on", n_rows + 1);
                column.take(feature, item.batch.missing(name)).map_err(|e| e.context(place()))?;
            }
            n_rows += item.batch.n_rows() as u64;
            if columns.iter().any(|column| column.n_waiting() >= CHUNK) {
                sum_up(pool, &mut columns, false)?;
            }
        }
        sum_up(pool, &mut columns, true)?;
        Ok(Statistics { n_rows, columns: columns.into_iter().map(Column::finish).collect() })
    }
}

fn features_of(batch: &Batch) -> Vec<(Role, &str, Feature)> {
    let features = batch.features().iter().map(|(name, feature)| (Role::Feature, &**name, feature.clone()));
    let labels = batch.labels().iter().map(|(name, label)| (Role::Label, &**name, label.clone()));
    let weights = batch.weights().map(|weights| (Role::Weights, "", weights.clone().into()));
    features.chain(labels).chain(weights).collect()
}

fn check_names(columns: &[Column], features: &[(Role, &str, Feature)], n_rows: u64) -> Result<()> {
    let known = columns.iter().map(|column| (column.role, column.name.as_str()));
    if known.clone().eq(features.iter().map(|(role, name, _)| (*role, *name))) {
        return Ok(());
    }
    let found: Vec<_> = features.iter().map(|(role, name, _)| format!("{role} `{name}`")).collect();
    let expected: Vec<_> = known.map(|(role, name)| format!("{role} `{name}`")).collect();
    Err(Error::shape(format!("the rows from row {} on have {found:?}; earlier rows have {expected:?}", n_rows + 1)))
}

/// Summarises the whole blocks of all columns, and at the end also the rest.
fn sum_up(pool: &Pool, columns: &mut [Column], is_end: bool) -> Result<()> {
    let blocks: Vec<_> = columns.iter().map(|column| column.blocks(is_end)).collect();
    let tasks: Vec<_> =
        blocks.iter().enumerate().flat_map(|(i, ranges)| ranges.iter().map(move |range| (i, range.clone()))).collect();
    let sums: Vec<OnceLock<_>> = tasks.iter().map(|_| OnceLock::new()).collect();
    pool.run(tasks.len(), &|task| {
        let (i, range) = tasks[task].clone();
        // No other task sets this one.
        let _ = sums[task].set(columns[i].sum_up(range));
    });

    // Merges the blocks of a column in order; columns are independent.
    let mut rest = sums.as_slice();
    let mut parts = Vec::new();
    for (column, ranges) in columns.iter_mut().zip(&blocks) {
        let (own, others) = rest.split_at(ranges.len());
        rest = others;
        parts.push(Mutex::new((column, own)));
    }
    pool.run(parts.len(), &|i| {
        let mut part = parts[i].lock().unwrap_or_else(PoisonError::into_inner);
        let (column, own) = &mut *part;
        own.iter().filter_map(OnceLock::get).for_each(|block| column.absorb(block));
    });
    drop(parts);
    for (column, ranges) in columns.iter_mut().zip(&blocks) {
        column.release(pool, ranges.last().map_or(0, |range| range.end))?;
    }
    Ok(())
}
