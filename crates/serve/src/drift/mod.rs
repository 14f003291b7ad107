//! Counts of what requests hold, beside the statistics of the training: missing, unknown and
//! out-of-range values of each column, and one number for how far its values have moved.
//!
//! [`Training`] is what the export says of a column, [`ColumnCounts`] what requests say. `watch.rs`
//! counts the values of a run, after requests were joined, so each row counts once. `page.rs`
//! writes the lines for Prometheus.

mod page;
mod training;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use estimand_tensor::{Array, DType};

pub(crate) use page::lines;
pub(crate) use training::Training;
pub(crate) use watch::{Plan, Watch, plan};

/// Fewer values than this say nothing about drift.
const MIN_VALUES: u64 = 100;

/// The counts of a version, by column.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    pub(crate) columns: BTreeMap<String, Arc<ColumnCounts>>,
}

impl Drift {
    /// The counts of a column.
    fn column(&mut self, name: &str, training: &BTreeMap<String, Training>, empty: Option<i64>) -> Arc<ColumnCounts> {
        let new = || Arc::new(ColumnCounts::new(training.get(name).cloned(), empty));
        Arc::clone(self.columns.entry(name.to_string()).or_insert_with(new))
    }
}

/// What the requests of a version held in one column.
#[derive(Debug)]
pub(crate) struct ColumnCounts {
    pub(crate) training: Option<Training>,
    /// The integer that stands for nothing.
    empty: Option<i64>,
    pub(crate) n_values: AtomicU64,
    pub(crate) n_missing: AtomicU64,
    /// Terms that are not in the vocabulary.
    n_unknown: AtomicU64,
    n_out_of_range: AtomicU64,
    /// Whether a vocabulary reads the column.
    has_vocabulary: AtomicBool,
    /// The sum of all numbers, as the bits of an f64.
    sum: AtomicU64,
    /// Values by the bins of the training.
    bins: Vec<AtomicU64>,
}

/// What is counted in one run before the shared counts change.
#[derive(Default)]
struct Tally {
    n_values: u64,
    n_missing: u64,
    n_out_of_range: u64,
    sum: f64,
    bins: Vec<u64>,
}

fn add(counter: &AtomicU64, n: u64) {
    if n > 0 {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl ColumnCounts {
    fn new(training: Option<Training>, empty: Option<i64>) -> ColumnCounts {
        let n_bins = training.as_ref().map_or(0, Training::n_bins);
        ColumnCounts {
            training,
            empty,
            n_values: AtomicU64::new(0),
            n_missing: AtomicU64::new(0),
            n_unknown: AtomicU64::new(0),
            n_out_of_range: AtomicU64::new(0),
            has_vocabulary: AtomicBool::new(false),
            sum: AtomicU64::new(0),
            bins: (0..n_bins).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts the values of a run.
    fn count(&self, array: &Array) {
        let mut tally = Tally { bins: vec![0; self.bins.len()], ..Tally::default() };
        // An array of another type than its own cannot be.
        let _ = match array.dtype() {
            DType::F32 => {
                array.as_slice().map(|all: &[f32]| self.numbers(all.iter().map(|&v| f64::from(v)), &mut tally))
            }
            DType::F64 => array.as_slice().map(|all: &[f64]| self.numbers(all.iter().copied(), &mut tally)),
            DType::I32 => {
                array.as_slice().map(|all: &[i32]| self.integers(all.iter().map(|&v| i64::from(v)), &mut tally))
            }
            DType::I64 => array.as_slice().map(|all: &[i64]| self.integers(all.iter().copied(), &mut tally)),
            DType::U8 => {
                array.as_slice().map(|all: &[u8]| self.integers(all.iter().map(|&v| i64::from(v)), &mut tally))
            }
            DType::Bool => {
                tally.n_values += array.len() as u64;
                Ok(())
            }
            DType::Str => array.string_slice().map(|all| {
                for i in 0..array.len() {
                    self.term(all.get(i), &mut tally);
                }
            }),
        };
        self.add(&tally);
    }

    fn numbers(&self, values: impl Iterator<Item = f64>, tally: &mut Tally) {
        let numbers = self.training.as_ref().and_then(|training| training.numbers.as_ref());
        for value in values {
            if value.is_nan() {
                tally.n_missing += 1;
                continue;
            }
            tally.n_values += 1;
            tally.sum += if value.is_finite() { value } else { 0.0 };
            if let Some(numbers) = numbers {
                tally.n_out_of_range += u64::from(value < numbers.min || value > numbers.max);
                if let Some(bin) = tally.bins.get_mut(numbers.bin(value)) {
                    *bin += 1;
                }
            }
        }
    }

    fn integers(&self, values: impl Iterator<Item = i64>, tally: &mut Tally) {
        let empty = self.empty;
        let mut n_empty = 0;
        let values = values.filter(|&value| {
            let is_empty = Some(value) == empty;
            n_empty += u64::from(is_empty);
            !is_empty
        });
        self.numbers(values.map(|value| value as f64), tally);
        tally.n_missing += n_empty;
    }

    fn term(&self, term: &[u8], tally: &mut Tally) {
        if term.is_empty() {
            tally.n_missing += 1;
            return;
        }
        tally.n_values += 1;
        if let Some(terms) = self.training.as_ref().and_then(|training| training.terms.as_ref())
            && let Some(bin) = tally.bins.get_mut(terms.bin(term))
        {
            *bin += 1;
        }
    }

    fn add(&self, tally: &Tally) {
        add(&self.n_values, tally.n_values);
        add(&self.n_missing, tally.n_missing);
        add(&self.n_out_of_range, tally.n_out_of_range);
        if tally.sum != 0.0 {
            let more = |bits: u64| Some((f64::from_bits(bits) + tally.sum).to_bits());
            // The function always returns a value.
            let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
        for (bin, &n) in self.bins.iter().zip(&tally.bins) {
            add(bin, n);
        }
    }

    /// The mean of all numbers; `None` if there are none.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.training.as_ref()?.numbers.as_ref()?;
        let n = self.n_values.load(Ordering::Relaxed);
        (n > 0).then(|| f64::from_bits(self.sum.load(Ordering::Relaxed)) / n as f64)
    }

    /// The number of unknown terms; `None` without a vocabulary.
    pub(crate) fn unknown(&self) -> Option<u64> {
        self.has_vocabulary.load(Ordering::Relaxed).then(|| self.n_unknown.load(Ordering::Relaxed))
    }

    /// The number of values out of the range of the training; `None` if it is not known.
    pub(crate) fn out_of_range(&self) -> Option<u64> {
        self.training.as_ref()?.numbers.as_ref()?;
        Some(self.n_out_of_range.load(Ordering::Relaxed))
    }

    /// The population stability index of the values against those of the training: 0 for equal
    /// shares, above 0.2 for values that have clearly moved. `None` while there are few values, or
    /// if the export has no statistics.
    pub(crate) fn drift(&self) -> Option<f64> {
        let expected = self.training.as_ref()?.shares()?;
        let counts: Vec<u64> = self.bins.iter().map(|bin| bin.load(Ordering::Relaxed)).collect();
        let n: u64 = counts.iter().sum();
        (n >= MIN_VALUES).then(|| stability(&counts, n, expected))
    }
}

/// The sum of `(p - q) ln(p / q)` over all bins. Half a value is added to each bin, so that an
/// empty one counts, but not for ever.
fn stability(counts: &[u64], n: u64, expected: &[f64]) -> f64 {
    let total = n as f64 + 0.5 * counts.len() as f64;
    let term = |(&count, &share): (&u64, &f64)| {
        let (p, q) = ((count as f64 + 0.5) / total, share.max(1e-4));
        (p - q) * (p / q).ln()
    };
    counts.iter().zip(expected).map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(json: &str) -> ColumnCounts {
        ColumnCounts::new(Training::of(&serde_json::from_str(json).unwrap()), Some(-1))
    }

    #[test]
    fn numbers_are_counted_by_hand() {
        let text = r#"{"n_rows": 10, "n_values": 9, "n_missing": 1, "numbers": {"mean": 5.0, "std": 1.0, "min": 0.0, "max": 10.0,
            "deciles": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}"#;
        let column = counts(text);
        column.count(&Array::from([0f32, 10.0, 10.5, -0.5, f32::NAN, f32::INFINITY]));
        column.count(&Array::from([-1i64, 4, 11]));
        assert_eq!(column.n_values.load(Ordering::Relaxed), 7);
        assert_eq!(column.n_missing.load(Ordering::Relaxed), 2);
        assert_eq!(column.out_of_range(), Some(4));
        assert_eq!((column.mean(), column.drift(), column.unknown()), (Some(35.0 / 7.0), None, None));
        assert_eq!(column.training.as_ref().unwrap().missing_ratio, 0.1);
    }

    /// Equal shares have no drift; all values in one bin of ten have (0.99.. - 0.1) ln 9.9.. and
    /// nine times (0.0005 - 0.1) ln(0.005).
    #[test]
    fn drift_of_numbers_and_terms() {
        let numbers = r#"{"n_rows": 100, "n_values": 100, "n_missing": 0, "numbers": {"mean": 5.0, "std": 1.0, "min": 0.0,
            "max": 10.0, "deciles": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}"#;
        let column = counts(numbers);
        let even: Vec<f32> = (0..1000).map(|i| (i % 10) as f32 + 0.5).collect();
        column.count(&Array::from(even));
        assert!(column.drift().unwrap().abs() < 1e-12);
        let column = counts(numbers);
        column.count(&Array::from(vec![3.5f32; 1000]));
        let (p, rest) = (1000.5 / 1005.0, 0.5 / 1005.0f64);
        let expected = (p - 0.1) * (p / 0.1f64).ln() + 9.0 * (rest - 0.1) * (rest / 0.1).ln();
        assert!((column.drift().unwrap() - expected).abs() < 1e-12);

        let terms = r#"{"n_rows": 100, "n_values": 100, "n_missing": 0, "terms": {"n_distinct": 3, "top": [["a", 60], ["b", 30]]}}"#;
        let column = counts(terms);
        let words: Vec<&str> = (0..1000).map(|i| ["a", "a", "a", "a", "a", "a", "b", "b", "b", "z"][i % 10]).collect();
        column.count(&Array::from_strings([1000], words).unwrap());
        assert!(column.drift().unwrap() < 1e-4, "{:?}", column.drift());
        column.count(&Array::from_strings([1000], vec!["z"; 1000]).unwrap());
        assert!(column.drift().unwrap() > 0.5);
    }
}
