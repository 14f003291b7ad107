//! Looks up many terms at once: hashes a block, prefetches its slots, then compares.

use super::index::{Index, prefetch};
use super::terms::{Data, Text};
use super::{Unknown, Vocabulary};
use crate::cpu::text::{Decimal, fingerprint64};
use crate::{DType, Error, Result, StringSlice};

/// The number of terms looked up together: enough to keep memory busy, and few enough for the
/// first-level cache.
const BLOCK: usize = 32;

impl Vocabulary {
    /// The id of each string: its number in the vocabulary, or the id given by `unknown`.
    pub fn lookup(&self, strings: StringSlice<'_>, unknown: Unknown, out: &mut [i64]) -> Result<()> {
        let Data::Text(text) = &self.terms.0 else {
            return Err(Error::dtype(
                Some(DType::I64),
                DType::Str,
                "strings were looked up in a vocabulary of integers",
            )
            .help("feed integers, or use a vocabulary of strings"));
        };
        assert_eq!(strings.len(), out.len(), "one id for each string");
        self.check(unknown)?;
        let n_terms = self.len() as i64;
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = block * BLOCK;
            find_block(&self.index, text, strings.range(first..first + out.len()), out);
            for (i, id) in out.iter_mut().enumerate() {
                if *id < 0 {
                    *id = unknown.id(n_terms, || fingerprint64(strings.get(first + i)));
                }
            }
        }
        Ok(())
    }

    /// The id of each integer, likewise. An unknown integer goes to the bucket of its decimal text.
    pub fn lookup_ints(&self, values: &[i64], unknown: Unknown, out: &mut [i64]) -> Result<()> {
        let Data::Ints(ints) = &self.terms.0 else {
            return Err(Error::dtype(
                Some(DType::Str),
                DType::I64,
                "integers were looked up in a vocabulary of strings",
            )
            .help("feed strings, or use a vocabulary of integers"));
        };
        assert_eq!(values.len(), out.len(), "one id for each value");
        self.check(unknown)?;
        let n_terms = self.len() as i64;
        let mut hashes = [0; BLOCK];
        for (values, out) in values.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            for (hash, &value) in hashes.iter_mut().zip(values) {
                *hash = self.index.hash.of_int(value);
                self.index.prefetch(*hash);
            }
            for ((id, &value), &hash) in out.iter_mut().zip(values).zip(&hashes) {
                *id = match self.index.find(hash, |number| ints[number] == value) {
                    Some(number) => number as i64,
                    None => unknown.id(n_terms, || fingerprint64(Decimal::new(value).as_bytes())),
                };
            }
        }
        Ok(())
    }

    /// Checks that the largest id fits.
    fn check(&self, unknown: Unknown) -> Result<()> {
        match unknown {
            Unknown::Buckets(buckets) if buckets.n().checked_add(self.len() as i64).is_none() => Err(Error::config(
                format!("{} terms and {} buckets are more than there are ids", self.len(), buckets.n()),
            )),
            _ => Ok(()),
        }
    }
}

impl Unknown {
    #[inline(always)]
    fn id(self, n_terms: i64, fingerprint: impl Fn() -> u64) -> i64 {
        match self {
            Unknown::Id(id) => id,
            Unknown::Buckets(buckets) => n_terms + buckets.of(fingerprint()),
        }
    }
}

/// The numbers of at most [`BLOCK`] strings; -1 for those that are no term.
fn find_block(index: &Index, text: &Text, strings: StringSlice<'_>, out: &mut [i64]) {
    let mut hashes = [0; BLOCK];
    for (hash, string) in hashes.iter_mut().zip(strings) {
        *hash = index.hash.of(string);
        index.prefetch(*hash);
    }
    for (out, &hash) in out.iter_mut().zip(&hashes) {
        *out = match index.candidate(hash) {
            Some(number) => {
                prefetch(text.offset_address(number));
                number as i64
            }
            None => -1,
        };
    }
    for &number in out.iter().filter(|number| **number >= 0) {
        prefetch(text.address(number as usize));
    }
    for ((number, string), &hash) in out.iter_mut().zip(strings).zip(&hashes) {
        if *number >= 0 && !is_equal(text.get(*number as usize), string) {
            // Another term with the same tag came first: one time in a billion.
            let found = index.find(hash, |number| text.get(number) == string);
            *number = found.map_or(-1, |number| number as i64);
        }
    }
}

/// Compares short strings without a function call.
#[inline(always)]
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    fn same<const N: usize>(a: &[u8], b: &[u8]) -> bool {
        a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
    }
    a.len() == b.len()
        && match a.len() {
            8..=16 => same::<8>(a, b),
            4..=7 => same::<4>(a, b),
            2..=3 => same::<2>(a, b),
            _ => a == b,
        }
}
