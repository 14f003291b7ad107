//! Finds columns with the same content: numbers on a straight line, or values that match one to
//! one.

use super::alone::finding;
use super::association::{Guesses, correlation};
use super::table::{Column, MISSING};
use super::{Finding, Suspicion};

/// Numbers with at least this correlation are the same up to scale.
const CORRELATION: f64 = 0.9999;
/// Values that match one to one avoid at least this share of wrong guesses, in both directions.
const SAVED: f64 = 0.999;
/// Pairs that differ in the first rows are not compared further.
const SAMPLE: usize = 1000;

/// Returns a finding for the later one of each pair of equal features.
pub(super) fn look(features: &[&Column]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, later) in features.iter().enumerate() {
        found.extend(features.iter().take(i).find_map(|earlier| {
            let evidence = same_numbers(later, earlier).or_else(|| one_to_one(later, earlier))?;
            Some(finding(later, Suspicion::Duplicate, evidence, "keep one of the two"))
        }));
    }
    found
}

fn same_numbers(a: &Column, b: &Column) -> Option<String> {
    if !a.is_number() || !b.is_number() || a.n_missing() != b.n_missing() {
        return None;
    }
    let sample = |column: &Column| column.numbers.iter().take(SAMPLE).copied().collect::<Vec<f64>>();
    // Rare values may be missing in the sample; then the sample decides nothing.
    let of_sample = correlation(&sample(a), &sample(b));
    if of_sample != 0.0 && of_sample.abs() < CORRELATION {
        return None;
    }
    let correlation = correlation(&a.numbers, &b.numbers);
    (correlation.abs() >= CORRELATION).then(|| format!("its correlation with `{}` is {correlation:.5}", b.name))
}

fn one_to_one(a: &Column, b: &Column) -> Option<String> {
    let n_rows = a.codes.len();
    // If most rows have a unique value, all columns match one to one.
    let few = |column: &Column| 10 * column.values.len() <= n_rows;
    let (n_a, n_b) = (a.values.len(), b.values.len());
    if !few(a) || !few(b) || 100 * n_a.abs_diff(n_b) > n_a.max(n_b) {
        return None;
    }
    // A missing value is a value here: it should be missing in both columns.
    let codes = |column: &Column, n: usize| -> Vec<u32> {
        column.codes.iter().take(n).map(|&code| if code == MISSING { MISSING - 2 } else { code }).collect()
    };
    let agree = |n: usize, saved: f64| {
        let (a, b) = (codes(a, n), codes(b, n));
        let both = [Guesses::of(&a, &b), Guesses::of(&b, &a)];
        // A sample with one value decides nothing.
        both.iter().all(|guesses| guesses.saved() >= saved || guesses.without == 1.0)
    };
    (agree(SAMPLE.min(n_rows), 0.9) && agree(n_rows, SAVED))
        .then(|| format!("its {n_a} values go one to one with the {n_b} of `{}`", b.name))
}
