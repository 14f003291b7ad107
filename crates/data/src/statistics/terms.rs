//! Statistics of a column's terms (strings, integers, booleans): the terms and their counts.

use estimand_tensor::parallel::Pool;
use estimand_tensor::vocabulary::{TermCounts, Vocabulary};
use estimand_tensor::{DType, Error, Result, StringSlice, Strings};

/// The sign bit, flipped so that bytes compare in the order of the numbers.
const SIGN: u64 = 1 << 63;

/// The largest number of bytes of text kept per column: terms are short, and a long text is not a
/// term.
const MAX_BYTES: usize = 64 << 20;

/// The statistics of a column's terms. The empty string means missing and is not a term.
#[derive(Debug)]
#[non_exhaustive]
pub struct TermStatistics {
    /// The number of values that are not missing.
    pub n_values: u64,
    /// The number of empty strings.
    pub n_missing: u64,
    /// The mean length of strings that are not missing, in bytes; NaN for numbers, or if there are
    /// no strings.
    pub mean_length: f64,
    /// The length of the longest string, in bytes; 0 for numbers.
    pub max_length: u64,
    counts: TermCounts,
    kind: TermKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TermKind {
    Text,
    Int,
    Bool,
}

impl TermStatistics {
    /// The number of distinct terms; `None` if there are more than
    /// [`StatisticsPass::max_terms`](super::StatisticsPass::max_terms), or more than 64 MB of them.
    pub fn n_distinct(&self) -> Option<u64> {
        (self.counts.undercount() == 0).then_some(self.counts.len() as u64)
    }

    /// The most by which a count may be too small; 0 while every distinct term is kept.
    pub fn undercount(&self) -> u64 {
        self.counts.undercount()
    }

    /// The `k` most frequent terms that occur at least `min_count` times, as text with their
    /// counts. Sorted by descending count, and then by ascending term.
    pub fn top(&self, k: usize, min_count: u64) -> Vec<(String, u64)> {
        let (terms, counts) = self.counts.top(k, min_count);
        terms.iter().map(|term| self.show(term)).zip(counts).collect()
    }

    fn show(&self, term: &[u8]) -> String {
        match self.kind {
            TermKind::Text => String::from_utf8_lossy(term).into_owned(),
            TermKind::Int => int_of(term).to_string(),
            TermKind::Bool => (int_of(term) != 0).to_string(),
        }
    }

    /// A vocabulary of the `k` most frequent terms that occur at least `min_count` times, in the
    /// order of [`top`](TermStatistics::top). Strings stay strings, and integers stay integers.
    pub fn vocabulary(&self, k: usize, min_count: u64) -> Result<Vocabulary> {
        let (terms, _) = self.counts.top(k, min_count);
        if terms.is_empty() {
            let n = self.n_values;
            return Err(Error::config(format!(
                "no term of {n} values is among the {k} most frequent and occurs at least {min_count} times"
            ))
            .help("ask for more terms, or a smaller count"));
        }
        match self.kind {
            TermKind::Text => Vocabulary::from_strings(terms),
            TermKind::Int | TermKind::Bool => Vocabulary::from_ints(terms.iter().map(int_of).collect()),
        }
    }

    /// The `k` most frequent strings; `None` if one is not UTF-8.
    pub(crate) fn texts(&self, k: usize) -> Option<Vec<String>> {
        let (terms, _) = self.counts.top(k, 1);
        terms.iter().map(|term| std::str::from_utf8(term).ok().map(str::to_string)).collect()
    }

    /// The `k` most frequent whole numbers.
    pub(crate) fn ints(&self, k: usize) -> Vec<i64> {
        self.counts.top(k, 1).0.iter().map(int_of).collect()
    }
}

/// The integer that a term encodes.
fn int_of(term: &[u8]) -> i64 {
    term.try_into().map_or(0, |bytes| (u64::from_be_bytes(bytes) ^ SIGN) as i64)
}

/// The counts of a column's terms so far.
#[derive(Debug)]
pub(super) struct Terms {
    counts: TermCounts,
    kind: TermKind,
    n_values: u64,
    n_missing: u64,
    n_bytes: u64,
    max_length: u64,
}

impl Terms {
    /// Creates the counts for a dtype; `None` if its values are not terms.
    pub(super) fn new(dtype: DType, max_terms: usize) -> Result<Option<Terms>> {
        let kind = match dtype {
            DType::Str => TermKind::Text,
            DType::Bool => TermKind::Bool,
            DType::I32 | DType::I64 | DType::U8 => TermKind::Int,
            DType::F32 | DType::F64 => return Ok(None),
        };
        let counts = TermCounts::new(max_terms)?.max_bytes(MAX_BYTES);
        Ok(Some(Terms { counts, kind, n_values: 0, n_missing: 0, n_bytes: 0, max_length: 0 }))
    }

    pub(super) fn add_strings(&mut self, pool: &Pool, strings: StringSlice<'_>) -> Result<()> {
        let n_missing = strings.iter().filter(|string| string.is_empty()).count();
        self.n_values += (strings.len() - n_missing) as u64;
        self.n_missing += n_missing as u64;
        self.n_bytes += strings.packed_bytes().len() as u64;
        self.max_length = strings.iter().map(|string| string.len() as u64).fold(self.max_length, u64::max);
        if n_missing == 0 {
            return self.counts.add(pool, strings);
        }
        let present: Strings = strings.iter().filter(|string| !string.is_empty()).collect();
        self.counts.add(pool, present.as_slice())
    }

    pub(super) fn add_ints(&mut self, pool: &Pool, ints: &[i64]) -> Result<()> {
        self.n_values += ints.len() as u64;
        let terms: Strings = ints.iter().map(|&int| (int as u64 ^ SIGN).to_be_bytes()).collect();
        self.counts.add(pool, terms.as_slice())
    }

    pub(super) fn finish(self) -> TermStatistics {
        let is_text = self.kind == TermKind::Text && self.n_values > 0;
        TermStatistics {
            n_values: self.n_values,
            n_missing: self.n_missing,
            mean_length: if is_text { self.n_bytes as f64 / self.n_values as f64 } else { f64::NAN },
            max_length: self.max_length,
            counts: self.counts,
            kind: self.kind,
        }
    }
}
