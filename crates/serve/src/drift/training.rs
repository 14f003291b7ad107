//! What an export says of a column's values in the training: [`Training`].

use std::collections::HashMap;

use serde_json::Value as Json;

/// The statistics of a feature.
#[derive(Clone, Debug)]
pub(crate) struct Training {
    /// The share of rows without a value.
    pub(crate) missing_ratio: f64,
    pub(crate) numbers: Option<Numbers>,
    pub(crate) terms: Option<Terms>,
}

/// The statistics of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
    /// The upper ends of all bins but the last, ascending.
    ends: Vec<f64>,
    shares: Vec<f64>,
}

impl Numbers {
    fn of(json: &Json) -> Option<Numbers> {
        let number = |key: &str| json.get(key)?.as_f64();
        let deciles: Vec<f64> = json.get("deciles")?.as_array()?.iter().map(Json::as_f64).collect::<Option<_>>()?;
        let inner = deciles.get(1..deciles.len().checked_sub(1)?)?;
        let (mut ends, mut below): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        for (i, &end) in inner.iter().enumerate() {
            let share = (i + 1) as f64 / (inner.len() + 1) as f64;
            // Equal deciles are one end, with all values up to it below.
            if ends.last() == Some(&end) {
                below.pop();
            } else {
                ends.push(end);
            }
            below.push(share);
        }
        below.push(1.0);
        let shares = below.iter().scan(0.0, |last, &share| Some(share - std::mem::replace(last, share))).collect();
        Some(Numbers { min: number("min")?, max: number("max")?, mean: number("mean")?, ends, shares })
    }

    /// The bin of a value: up to and including the first end that is not smaller.
    pub(super) fn bin(&self, value: f64) -> usize {
        self.ends.partition_point(|&end| end < value)
    }
}

/// The frequent terms, each a bin; all others are the last one.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    bins: HashMap<Vec<u8>, usize>,
    shares: Vec<f64>,
}

impl Terms {
    /// The most terms that have a bin of their own.
    const MAX: usize = 20;

    fn of(json: &Json, n_values: f64) -> Option<Terms> {
        let top = json.get("top")?.as_array()?;
        let (mut bins, mut shares) = (HashMap::new(), Vec::new());
        for pair in top.iter().take(Terms::MAX) {
            let (term, n) = (pair.get(0)?.as_str()?, pair.get(1)?.as_f64()?);
            bins.insert(term.as_bytes().to_vec(), shares.len());
            shares.push(n / n_values);
        }
        shares.push((1.0 - shares.iter().sum::<f64>()).max(0.0));
        Some(Terms { bins, shares })
    }

    pub(super) fn bin(&self, term: &[u8]) -> usize {
        self.bins.get(term).copied().unwrap_or(self.bins.len())
    }
}

impl Training {
    /// Reads the statistics of a feature; `None` if the export has none.
    pub(crate) fn of(json: &Json) -> Option<Training> {
        let count = |key: &str| json.get(key).and_then(Json::as_f64);
        let (n_values, n_missing) = (count("n_values")?, count("n_missing")?);
        if n_values <= 0.0 {
            return None;
        }
        let numbers = json.get("numbers").and_then(Numbers::of);
        let terms = json.get("terms").filter(|_| numbers.is_none()).and_then(|json| Terms::of(json, n_values));
        Some(Training { missing_ratio: n_missing / (n_values + n_missing), numbers, terms })
    }

    /// The share of each bin.
    pub(super) fn shares(&self) -> Option<&[f64]> {
        match (&self.numbers, &self.terms) {
            (Some(numbers), _) => Some(&numbers.shares),
            (None, Some(terms)) => Some(&terms.shares),
            (None, None) => None,
        }
    }

    pub(super) fn n_bins(&self) -> usize {
        self.shares().map_or(0, <[f64]>::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_deciles_are_one_bin() {
        let json =
            serde_json::json!({"mean": 1.0, "min": 0.0, "max": 9.0, "deciles": [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 9]});
        let numbers = Numbers::of(&json).unwrap();
        assert_eq!(numbers.ends, [0.0, 1.0, 2.0]);
        let shares: Vec<String> = numbers.shares.iter().map(|share| format!("{share:.1}")).collect();
        assert_eq!(shares, ["0.7", "0.1", "0.1", "0.1"]);
        assert_eq!([-1.0, 0.0, 0.5, 1.0, 2.5, 99.0].map(|value| numbers.bin(value)), [0, 0, 1, 1, 3, 3]);
    }
}
