//! [`VocabInfo`]: the old and the new vocabulary of a variable's rows or columns.

use std::path::{Path, PathBuf};

use estimand_graph::Initializer;
use estimand_graph::meaning::Listing;
use estimand_nn::column::TermList;
use estimand_tensor::vocabulary::{Terms, Unknown, Vocabulary, VocabularyFile};
use estimand_tensor::{Error, Result, Strings};

/// A vocabulary: a file with a term on each line, or a list.
#[derive(Clone, Debug)]
pub enum VocabSource {
    /// A file.
    File(PathBuf),
    /// A list.
    List(TermList),
}

/// The terms of a variable's rows in the checkpoint, and in the model now.
///
/// A row whose term is in the old vocabulary gets that term's old row. The backup initializer sets
/// rows of new terms and of out-of-vocabulary buckets.
///
/// ```
/// use estimand::VocabInfo;
/// let info = VocabInfo::new(["c", "d", "a"], ["a", "b", "c"]).n_oov_buckets(1);
/// let files = VocabInfo::new("words.2.txt", "words.1.txt").new_vocab_size(50_000).old_vocab_size(30_000);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct VocabInfo {
    new_vocab: VocabSource,
    new_vocab_size: Option<usize>,
    n_oov_buckets: usize,
    old_vocab: VocabSource,
    old_vocab_size: Option<usize>,
    backup_initializer: Initializer,
    axis: usize,
}

impl VocabInfo {
    /// Takes the vocabulary of the model, and that of the checkpoint. A path is a file; an array or
    /// a vector holds the terms themselves.
    pub fn new(new_vocab: impl Into<VocabSource>, old_vocab: impl Into<VocabSource>) -> VocabInfo {
        VocabInfo {
            new_vocab: new_vocab.into(),
            new_vocab_size: None,
            n_oov_buckets: 0,
            old_vocab: old_vocab.into(),
            old_vocab_size: None,
            backup_initializer: Initializer::Zeros,
            axis: 0,
        }
    }

    /// Sets how many terms of the new vocabulary the model uses, from the first. By default, all.
    pub fn new_vocab_size(mut self, n: usize) -> VocabInfo {
        self.new_vocab_size = Some(n);
        self
    }

    /// Sets how many rows after those of the new vocabulary are for out-of-vocabulary terms. By
    /// default, none.
    pub fn n_oov_buckets(mut self, n: usize) -> VocabInfo {
        self.n_oov_buckets = n;
        self
    }

    /// Sets how many terms of the old vocabulary the checkpoint was trained with, from the first.
    /// By default, all.
    pub fn old_vocab_size(mut self, n: usize) -> VocabInfo {
        self.old_vocab_size = Some(n);
        self
    }

    /// Sets the initializer of rows that the checkpoint has no values for. By default, zeros.
    pub fn backup_initializer(mut self, initializer: Initializer) -> VocabInfo {
        self.backup_initializer = initializer;
        self
    }

    /// Sets the axis of the terms: 0 for rows (embeddings, linear weights), 1 for columns (the last
    /// layer, where classes are terms). By default, 0.
    pub fn axis(mut self, axis: usize) -> VocabInfo {
        self.axis = axis;
        self
    }

    pub(super) fn axis_number(&self) -> usize {
        self.axis
    }

    pub(super) fn initializer(&self) -> &Initializer {
        &self.backup_initializer
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.axis > 1 {
            return Err(Error::config(format!("the vocabulary is along axis {}; expected 0 or 1", self.axis))
                .help("use axis 0 for rows or axis 1 for columns"));
        }
        Ok(())
    }

    /// Returns the complete lists of terms of the checkpoint and of the model. If an old vocabulary
    /// size is set, the first list is `None`, because the size may cover only the first terms.
    pub(super) fn listings(&self) -> Result<(Option<Listing>, Option<Listing>)> {
        let old = match self.old_vocab_size {
            None => Some(Listing::of_strings(&self.old_vocab.strings(None)?)),
            Some(_) => None,
        };
        Ok((old, Some(Listing::of_strings(&self.new_vocab.strings(self.new_vocab_size)?))))
    }

    /// Returns the row in the checkpoint for each row of the model.
    fn old_rows(&self) -> Result<Vec<Option<usize>>> {
        let old = self.old_vocab.vocabulary(self.old_vocab_size).map_err(|e| e.context("in the old vocabulary"))?;
        let new = self.new_vocab.strings(self.new_vocab_size).map_err(|e| e.context("in the new vocabulary"))?;
        let mut found = vec![0; new.len()];
        old.lookup(new.as_slice(), Unknown::Id(-1), &mut found)?;
        let known = found.into_iter().map(|id| usize::try_from(id).ok());
        Ok(known.chain(std::iter::repeat_n(None, self.n_oov_buckets)).collect())
    }
}

impl VocabSource {
    fn vocabulary(&self, size: Option<usize>) -> Result<Vocabulary> {
        match self {
            VocabSource::File(path) => file(path, size).read(),
            VocabSource::List(_) => Vocabulary::from_strings(self.strings(size)?),
        }
    }

    /// Returns the terms as text, because terms are compared as a file would contain them.
    fn strings(&self, size: Option<usize>) -> Result<Strings> {
        let terms = match self {
            VocabSource::File(path) => file(path, size).terms()?,
            VocabSource::List(TermList::Text(terms)) => Terms::from_strings(terms.clone())?,
            VocabSource::List(TermList::Integers(terms)) => Terms::from_ints(terms.clone()),
        };
        let n = size.unwrap_or(terms.len());
        if n > terms.len() || n == 0 {
            return Err(Error::config(format!("the vocabulary size is {n}, but the list has {} terms", terms.len())));
        }
        let mut text = Strings::with_capacity(n);
        for number in 0..n {
            terms.push_to(number, &mut text);
        }
        Ok(text)
    }
}

fn file(path: &Path, size: Option<usize>) -> VocabularyFile {
    let file = VocabularyFile::new(path);
    match size {
        Some(size) => file.size(size),
        None => file,
    }
}

/// The old row of each new row, computed once for variables that share a vocabulary.
#[derive(Default)]
pub(super) struct OldRows<'a>(Vec<(&'a VocabInfo, Vec<Option<usize>>)>);

impl<'a> OldRows<'a> {
    pub(super) fn of(&mut self, info: &'a VocabInfo) -> Result<&[Option<usize>]> {
        let at = match self.0.iter().position(|(known, _)| std::ptr::eq(*known, info)) {
            Some(at) => at,
            None => {
                self.0.push((info, info.old_rows()?));
                self.0.len() - 1
            }
        };
        Ok(&self.0[at].1)
    }
}

macro_rules! vocab_sources {
    (files: $($path:ty),*; lists: $($term:ty),*) => {
        $(impl From<$path> for VocabSource {
            fn from(path: $path) -> VocabSource {
                VocabSource::File(path.into())
            }
        })*
        $(impl<const N: usize> From<[$term; N]> for VocabSource {
            fn from(terms: [$term; N]) -> VocabSource {
                VocabSource::List(terms.into())
            }
        }
        impl From<Vec<$term>> for VocabSource {
            fn from(terms: Vec<$term>) -> VocabSource {
                VocabSource::List(terms.into())
            }
        }
        impl From<&[$term]> for VocabSource {
            fn from(terms: &[$term]) -> VocabSource {
                VocabSource::List(terms.into())
            }
        })*
    };
}
vocab_sources!(files: &str, &String, String, &Path, &PathBuf, PathBuf; lists: &str, String, i32, i64);

impl From<TermList> for VocabSource {
    fn from(terms: TermList) -> VocabSource {
        VocabSource::List(terms)
    }
}
