//! Vocabularies: tables from terms to ids and back, read from lists and files or learnt from data.
//!
//! [`VocabularyFile`] or a list makes [`Terms`]; an index over them makes a [`Vocabulary`], which
//! the host part of a graph looks batches up in. [`TermCounts`] learns from data which terms to
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
/// Text costs its bytes and 16 more a term, integers 20.
#[derive(Debug)]
pub struct Vocabulary {
    terms: Terms,
    index: Index,
}

/// What becomes of a term that is not in the vocabulary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// This id. TensorFlow's default is -1; nothing keeps it out of the vocabulary's own range.
    Id(i64),
    /// An id behind those of the vocabulary: its size plus the bucket of the term's fingerprint.
    Buckets(Buckets),
}

impl Vocabulary {
    /// A vocabulary of strings, which must be distinct.
    pub fn from_strings(terms: Strings) -> Result<Vocabulary> {
        Vocabulary::from_terms(Terms::from_strings(terms)?, "term", 0)
    }

    /// A vocabulary of integers, which must be distinct.
    pub fn from_ints(terms: Vec<i64>) -> Result<Vocabulary> {
        Vocabulary::from_terms(Terms::from_ints(terms), "term", 0)
    }

    /// `place` and `first` are how messages number the terms.
    fn from_terms(terms: Terms, place: &str, first: usize) -> Result<Vocabulary> {
        let n = terms.len();
        if n == 0 {
            return Err(Error::config("an empty vocabulary, expected at least one term"));
        }
        if n > MAX_TERMS {
            return Err(Error::config(format!("a vocabulary of {n} terms, at most {MAX_TERMS} are supported")));
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
                Err(Error::config(message).help("keep one of them; ids behind it move up by one"))
            }
        }
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Never: a vocabulary has a term.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms in order.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Bytes of memory, those of the terms included.
    pub fn memory(&self) -> usize {
        self.terms.memory() + self.index.memory()
    }
}
