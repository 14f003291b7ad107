//! Statistics of a column's numbers: their count, range, moments and quantiles.

use super::moments::Moments;
use super::quantiles::{Ranks, Sketch, key_of, value_of};

/// The statistics of a column's numbers. A number is missing if it is NaN, or if its row had no
/// value and the number is only a default, as in CSV files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NumberStatistics {
    /// The number of values that are not missing.
    pub n_values: u64,
    /// The number of missing values.
    pub n_missing: u64,
    /// The number of infinite values; they count for everything but mean and deviation.
    pub n_infinite: u64,
    /// The number of values that are zero.
    pub n_zeros: u64,
    /// The mean of finite values; NaN if there are none.
    pub mean: f64,
    /// The standard deviation of finite values, divided by their number as in NumPy; NaN if there
    /// are none.
    pub std: f64,
    /// The smallest value; NaN if there is none.
    pub min: f64,
    /// The largest value; NaN if there is none.
    pub max: f64,
    ranks: Ranks,
    range: Option<(i64, i64)>,
    kind: NumberKind,
    /// The default that missing values have, if they have one.
    pub(crate) default: Option<f64>,
}

/// The meaning of the keys of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NumberKind {
    /// Keys are the integers themselves.
    Int,
    /// Keys are floats, converted by [`key_of`].
    Float,
}

impl NumberKind {
    fn value(self, key: i64) -> f64 {
        match self {
            NumberKind::Int => key as f64,
            NumberKind::Float => value_of(key),
        }
    }
}

impl NumberStatistics {
    /// The value below which a fraction `q` of the values lies, interpolated linearly between
    /// neighbours, like `numpy.quantile`'s default. NaN if there are no values or `q` is not from 0
    /// to 1.
    ///
    /// The result is exact up to 65,536 distinct values. Beyond that, see
    /// [`rank_error`](NumberStatistics::rank_error).
    pub fn quantile(&self, q: f64) -> f64 {
        if self.n_values == 0 || !(0.0..=1.0).contains(&q) {
            return f64::NAN;
        }
        let last = self.n_values - 1;
        let place = q * last as f64;
        let (rank, part) = (place.floor() as u64, place.fract());
        let (low, high) = (self.at(rank), self.at((rank + 1).min(last)));
        if low == high || part == 0.0 {
            return low;
        }
        // Exact at both ends, which one formula alone would not be.
        if part < 0.5 { low + (high - low) * part } else { high - (high - low) * (1.0 - part) }
    }

    fn at(&self, rank: u64) -> f64 {
        // The sketch may have dropped the smallest and the largest value.
        match rank {
            0 => self.min,
            rank if rank + 1 == self.n_values => self.max,
            rank => self.ranks.at(rank).map_or(f64::NAN, |key| self.kind.value(key)),
        }
    }

    /// The largest error of [`quantile`](NumberStatistics::quantile) in `q`, as a fraction of the
    /// values. The bound always holds; it is 0 if quantiles are exact.
    pub fn rank_error(&self) -> f64 {
        if self.ranks.error == 0 { 0.0 } else { self.ranks.error as f64 / self.ranks.n() as f64 }
    }

    /// Boundaries that divide the values into up to `n_buckets` parts of about equal size,
    /// ascending. A bucketized column takes them.
    ///
    /// There are fewer where values repeat: boundaries are distinct, and none leaves its first
    /// bucket empty.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_arrays([("gain", Array::from([0.0f32, 0.0, 0.0, 0.0, 10.0, 20.0, 30.0, 40.0, 50.0]))]);
    /// assert_eq!(data.statistics()?.numbers("gain")?.quantile_boundaries(4), [10.0, 30.0]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn quantile_boundaries(&self, n_buckets: usize) -> Vec<f32> {
        let mut boundaries: Vec<f32> = Vec::new();
        let min = self.min as f32;
        for i in 1..n_buckets {
            let boundary = self.quantile(i as f64 / n_buckets as f64) as f32;
            if boundary.is_finite() && boundary > *boundaries.last().unwrap_or(&min) {
                boundaries.push(boundary);
            }
        }
        boundaries
    }

    /// The number of distinct values, if there are at most 65,536.
    pub fn n_distinct(&self) -> Option<u64> {
        self.ranks.n_distinct()
    }

    /// The smallest and the largest integer or boolean, with all digits.
    pub fn int_range(&self) -> Option<(i64, i64)> {
        self.range.filter(|_| self.kind == NumberKind::Int)
    }
}

/// The summary of a block of numbers.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The keys of values that are not missing, sorted.
    keys: Vec<i64>,
    n_missing: u64,
    n_infinite: u64,
    n_zeros: u64,
    moments: Moments,
}

impl Block {
    pub(super) fn of_ints(values: &[i64]) -> Block {
        let mut keys = values.to_vec();
        keys.sort_unstable();
        let floats: Vec<f64> = values.iter().map(|&v| v as f64).collect();
        Block {
            keys,
            n_zeros: values.iter().filter(|&&v| v == 0).count() as u64,
            moments: Moments::of(&floats),
            ..Block::default()
        }
    }

    pub(super) fn of_floats(values: &[f64]) -> Block {
        let mut keys: Vec<i64> = values.iter().filter(|v| !v.is_nan()).map(|&v| key_of(v)).collect();
        keys.sort_unstable();
        let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        Block {
            n_missing: (values.len() - keys.len()) as u64,
            n_infinite: (keys.len() - finite.len()) as u64,
            n_zeros: values.iter().filter(|&&v| v == 0.0).count() as u64,
            moments: Moments::of(&finite),
            keys,
        }
    }
}

/// The statistics of the blocks of a column so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    n_values: u64,
    pub(super) n_missing: u64,
    /// The default of the first row that had no value.
    pub(super) default: Option<f64>,
    n_infinite: u64,
    n_zeros: u64,
    range: Option<(i64, i64)>,
    moments: Moments,
    sketch: Sketch,
}

impl Numbers {
    /// Adds the summary of the next block.
    pub(super) fn absorb(&mut self, block: &Block) {
        self.n_values += block.keys.len() as u64;
        self.n_missing += block.n_missing;
        self.n_infinite += block.n_infinite;
        self.n_zeros += block.n_zeros;
        self.moments = self.moments.merge(block.moments);
        if let (Some(&min), Some(&max)) = (block.keys.first(), block.keys.last()) {
            let (low, high) = self.range.unwrap_or((min, max));
            self.range = Some((low.min(min), high.max(max)));
        }
        self.sketch.absorb(&block.keys);
    }

    pub(super) fn finish(self, kind: NumberKind) -> NumberStatistics {
        let (min, max) = self.range.map_or((f64::NAN, f64::NAN), |(min, max)| (kind.value(min), kind.value(max)));
        NumberStatistics {
            n_values: self.n_values,
            n_missing: self.n_missing,
            n_infinite: self.n_infinite,
            n_zeros: self.n_zeros,
            mean: self.moments.mean(),
            std: self.moments.std(),
            min,
            max,
            ranks: self.sketch.finish(),
            range: self.range,
            kind,
            default: self.default,
        }
    }
}
