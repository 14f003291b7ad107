//! Crossed hashing: every combination of one value per key, hashed into a bucket. TensorFlow's
//! `SparseCross` with hashed output, which crossed columns use.
//!
//! The order of the keys affects the hash, and the caller decides it: TensorFlow puts all sparse
//! keys before all dense ones.

mod fill;

use super::Buckets;
use crate::parallel::{DisjointMut, Pool};
use crate::{Error, Result, StringSlice};

/// The largest number of values that one call produces, and of rows that it accepts: half a
/// gigabyte of ids. A larger input is assumed to be damaged or hostile.
pub const MAX_CROSSED_VALUES: usize = 1 << 26;

/// The number of rows of one task.
const ROWS: usize = 2048;

/// TensorFlow's default hash key.
const DEFAULT_HASH_KEY: u64 = 0xdecaf_caffe;

/// One key of a cross: its values, and the rows they belong to.
#[derive(Clone, Copy, Debug)]
pub struct CrossKey<'a> {
    /// The values of all rows.
    pub values: CrossValues<'a>,
    /// The assignment of values to rows.
    pub rows: CrossRows<'a>,
}

/// The values of a key.
#[derive(Clone, Copy, Debug)]
pub enum CrossValues<'a> {
    /// Strings, which are hashed by their fingerprint.
    Strings(StringSlice<'a>),
    /// Integers, which are used as they are. A hashed column would use their text instead.
    Ints(&'a [i64]),
}

/// The positions of the values of row `i`.
#[derive(Clone, Copy, Debug)]
pub enum CrossRows<'a> {
    /// `width` values from `i * width`.
    Dense {
        /// The number of values of each row.
        width: usize,
    },
    /// From `row_splits[i]` to `row_splits[i + 1]`. A part of longer splits is allowed, so they
    /// need not begin at 0.
    Ragged(&'a [i64]),
}

/// The hash from combinations to ids.
///
/// ```
/// use estimand_tensor::{Strings, cpu::text::{Cross, CrossKey, CrossRows, CrossValues}, parallel::Pool};
/// let (a, b): (Strings, Strings) = (["a", "aa"].into_iter().collect(), ["x", "xx"].into_iter().collect());
/// let key = |s| CrossKey { values: CrossValues::Strings(s), rows: CrossRows::Dense { width: 2 } };
/// let keys = [key(a.as_slice()), key(b.as_slice())];
/// let (ids, row_splits) = Cross::new(1000)?.apply(Pool::global(), 1, &keys)?;
/// assert_eq!(ids, [892, 74, 46, 204]); // a x, a xx, aa x, aa xx: the last key is the fastest
/// assert_eq!(row_splits, [0, 4]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Cross {
    buckets: Buckets,
    hash_key: u64,
}

impl Cross {
    /// Ids below `n_buckets`; 0 stands for 2^63 - 1, as in TensorFlow.
    pub fn new(n_buckets: i64) -> Result<Cross> {
        if n_buckets < 0 {
            return Err(Error::config(format!(
                "the number of buckets of the cross is {n_buckets}; expected 0 or more"
            )));
        }
        let buckets = Buckets::new(if n_buckets == 0 { i64::MAX } else { n_buckets })?;
        Ok(Cross { buckets, hash_key: DEFAULT_HASH_KEY })
    }

    /// The initial value of the hash. By default, and for 0, TensorFlow's 0xDECAFCAFFE.
    pub fn hash_key(self, hash_key: u64) -> Cross {
        // TF: Python replaces a key of 0, so crosses with the keys 0 and None are the same.
        self.raw_hash_key(if hash_key == 0 { DEFAULT_HASH_KEY } else { hash_key })
    }

    /// The initial value of the hash, where 0 means 0: the attribute `hash_key` of a `SparseCross`
    /// node.
    pub fn raw_hash_key(self, hash_key: u64) -> Cross {
        Cross { hash_key, ..self }
    }

    /// The initial value of the hash.
    pub fn key(self) -> u64 {
        self.hash_key
    }

    /// Computes the ids and row splits of the crosses of `n_rows` rows. Each row holds the
    /// cartesian product of its keys' values; the last key changes fastest. A row in which a key
    /// has no value is empty.
    pub fn apply(self, pool: &Pool, n_rows: usize, keys: &[CrossKey<'_>]) -> Result<(Vec<i64>, Vec<i64>)> {
        let splits = row_splits(n_rows, keys)?;
        let mut ids = vec![0; splits.last().map_or(0, |&n| n as usize)];
        let out = DisjointMut::new(&mut ids);
        // Rows are cut by number; the splits determine where each part of the ids begins.
        pool.run(n_rows.div_ceil(ROWS), &|task| {
            let rows = task * ROWS..n_rows.min((task + 1) * ROWS);
            let part = splits[rows.start] as usize..splits[rows.end] as usize;
            // SAFETY: tasks have distinct rows, and splits never decrease, so the parts are
            // disjoint.
            self.fill(keys, rows, &splits, unsafe { out.slice(part.start, part.len()) });
        });
        Ok((ids, splits))
    }
}

impl CrossValues<'_> {
    fn len(&self) -> usize {
        match self {
            CrossValues::Strings(strings) => strings.len(),
            CrossValues::Ints(ints) => ints.len(),
        }
    }
}

impl CrossKey<'_> {
    /// The first value and the number of values of a row.
    #[inline(always)]
    fn row(&self, row: usize) -> (usize, usize) {
        match self.rows {
            CrossRows::Dense { width } => (row * width, width),
            CrossRows::Ragged(splits) => (splits[row] as usize, (splits[row + 1] - splits[row]) as usize),
        }
    }

    fn check(&self, n_rows: usize) -> Result<()> {
        let n_values = self.values.len();
        match self.rows {
            CrossRows::Dense { width } if n_rows.checked_mul(width) == Some(n_values) => Ok(()),
            CrossRows::Dense { width } => {
                Err(Error::shape(format!("there are {n_values} values; expected {n_rows} rows of {width} values")))
            }
            CrossRows::Ragged(splits) => {
                let bad = |what: String| Err(Error::shape(format!("invalid row_splits: {what}")));
                if n_rows.checked_add(1) != Some(splits.len()) {
                    return bad(format!("there are {} for {n_rows} rows; expected one more than rows", splits.len()));
                }
                let (first, last) = (splits[0], splits[n_rows]);
                if first < 0 || last > n_values as i64 {
                    return bad(format!("they go from {first} to {last}, but there are {n_values} values"));
                }
                match splits.windows(2).position(|w| w[0] > w[1]) {
                    Some(i) => bad(format!("they fall from {} to {} at row {i}", splits[i], splits[i + 1])),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Checks the keys and counts the combinations of each row.
fn row_splits(n_rows: usize, keys: &[CrossKey<'_>]) -> Result<Vec<i64>> {
    if keys.is_empty() {
        return Err(Error::config("the cross has no keys; expected at least one"));
    }
    for (i, key) in keys.iter().enumerate() {
        key.check(n_rows).map_err(|error| error.context(format!("in key {i} of a cross")))?;
    }
    if n_rows > MAX_CROSSED_VALUES {
        return Err(Error::shape(format!("the cross has {n_rows} rows; expected at most {MAX_CROSSED_VALUES}")));
    }
    let mut splits = Vec::with_capacity(n_rows + 1);
    splits.push(0);
    let mut total = 0;
    for row in 0..n_rows {
        let counts = keys.iter().map(|key| key.row(row).1);
        // A factor of 0 takes precedence over an overflow before it.
        let product = if counts.clone().any(|n| n == 0) { 0 } else { counts.fold(1, usize::saturating_mul) };
        total = product.saturating_add(total);
        if total > MAX_CROSSED_VALUES {
            let counts: Vec<_> = keys.iter().map(|key| key.row(row).1).collect();
            return Err(Error::shape(format!(
                "the cross of {n_rows} rows has more than {MAX_CROSSED_VALUES} combinations; \
                 row {row} alone has {counts:?} values"
            ))
            .help("cross fewer keys or shorten rows with many values; smaller batches also help"));
        }
        splits.push(total as i64);
    }
    Ok(splits)
}
