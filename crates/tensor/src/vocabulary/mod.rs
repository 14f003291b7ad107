//! Vocabularies: tables from terms to ids and back, read from lists and files or learnt from data.
//!
//! [`VocabularyFile`] or a list makes [`Terms`]; an index over them makes a [`Vocabulary`], in
//! which the host part of a graph looks up batches. [`TermCounts`] learns from data which terms to
//! keep.
//!
//! ```
//! use estimand_tensor::{Strings, vocabulary::{Unknown, Vocabulary}};
//! let colours = Vocabulary::from_strings(["red", "green", "blue"].into_iter().collect())?;
//! let words: Strings = ["blue", "teal"].into_iter().collect();
//! let mut ids = [0; 2];
//! colours.lookup(words.as_slice(), Unknown::Id(-1), &mut ids)?;
//! assert_eq!(ids, [2, -1]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod counts;
mod file;
mod index;
mod keyed_hash;
mod lookup;
mod terms;

pub use counts::TermCounts;
pub use file::VocabularyFile;
pub use terms::Terms;

use crate::cpu::text::Buckets;
use crate::{Error, Result, Strings};
use index::{Duplicate, Index, MAX_TERMS};
use keyed_hash::KeyedHash;
use terms::Data;

/// An immutable table from terms, strings or integers, to their numbers from 0.
///
/// Text costs its bytes plus 16 bytes per term, integers 20 bytes per term.
#[derive(Debug)]
pub struct Vocabulary {
    terms: Terms,
    index: Index,
}

/// The id of a term that is not in the vocabulary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// This id. TensorFlow's default is -1. The id may lie in the vocabulary's own range.
    Id(i64),
    /// An id after those of the vocabulary: its size plus the bucket of the term's fingerprint.
    Buckets(Buckets),
}

impl Vocabulary {
    /// A vocabulary of strings. They must be distinct.
    pub fn from_strings(terms: Strings) -> Result<Vocabulary> {
        Vocabulary::from_terms(Terms::from_strings(terms)?, "term", 0)
    }

    /// A vocabulary of integers. They must be distinct.
    pub fn from_ints(terms: Vec<i64>) -> Result<Vocabulary> {
        Vocabulary::from_terms(Terms::from_ints(terms), "term", 0)
    }

    /// Builds the vocabulary. Error messages call a term `place` and number terms from `first`.
    fn from_terms(terms: Terms, place: &str, first: usize) -> Result<Vocabulary> {
        let n = terms.len();
        if n == 0 {
            return Err(Error::config("the vocabulary is empty; expected at least one term"));
        }
        if n > MAX_TERMS {
            return Err(Error::config(format!("the vocabulary has {n} terms; at most {MAX_TERMS} are supported")));
        }
        let hash = KeyedHash::random();
        let index = match &terms.0 {
            Data::Text(text) => Index::build(n, hash, |i| hash.of(text.get(i)), |a, b| text.get(a) == text.get(b)),
            Data::Ints(ints) => Index::build(n, hash, |i| hash.of_int(ints[i]), |a, b| ints[a] == ints[b]),
        };
        match index {
            Ok(index) => Ok(Vocabulary { terms, index }),
            Err(Duplicate { first: a, second: b }) => {
                let message = format!("{place}s {} and {} are the same term, {}", a + first, b + first, terms.show(b));
                Err(Error::config(message).help("keep one of them; ids after it move up by one"))
            }
        }
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Always false: a vocabulary has at least one term.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms in order.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The memory in bytes, including that of the terms.
    pub fn memory(&self) -> usize {
        self.terms.memory() + self.index.memory()
    }
}
