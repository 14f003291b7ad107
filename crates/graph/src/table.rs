//! `LookupTable`: a vocabulary in a graph. It maps terms to ids, and ids back to terms.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use estimand_tensor::cpu::text::Buckets;
use estimand_tensor::vocabulary::{Unknown, Vocabulary, VocabularyFile};
use estimand_tensor::{DType, Result, Strings};

use crate::host::HostOp;
use crate::host::check::KnownTerms;
use crate::host::table::{FindId, FindTerm};
use crate::meaning::Listing;
use crate::ragged::RaggedTensor;
use crate::tensor::Tensor;

/// A table from terms to their positions in a list or a file. Cheap to clone; graphs share the
/// terms.
///
/// ```
/// use estimand_engine::Session;
/// use estimand_graph::{Graph, LookupTable};
/// use estimand_tensor::{Array, DType, Dim};
///
/// let g = Graph::new();
/// let colour = g.placeholder("colour", DType::Str, [Dim::BATCH]);
/// let table = LookupTable::from_list(["red", "green"])?.n_oov_buckets(1)?;
/// let ids = table.lookup(&colour);
/// let names = table.reverse(&ids, "?");
/// let fed = Array::from_strings([3], ["green", "teal", "red"])?;
/// let out = Session::new(&g)?.run(&[&ids, &names], &[(&colour, fed)])?;
/// assert_eq!(out[0].as_slice::<i64>()?, [1, 2, 0]);
/// assert_eq!(out[1], Array::from_strings([3], ["green", "?", "red"])?);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct LookupTable {
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) unknown: Unknown,
    /// The file that the terms were read from, and the number of lines read. An export copies the
    /// file.
    pub(crate) file: Option<Arc<(PathBuf, Option<usize>)>>,
    /// The terms with their digest, computed once.
    listing: Arc<OnceLock<Listing>>,
}

impl LookupTable {
    /// Creates a table of strings, which must be distinct.
    pub fn from_list<S: AsRef<[u8]>>(terms: impl IntoIterator<Item = S>) -> Result<LookupTable> {
        let terms: Strings = terms.into_iter().collect();
        Ok(LookupTable::new(Vocabulary::from_strings(terms)?))
    }

    /// Creates a table of integers, which must be distinct.
    pub fn from_ints(terms: impl Into<Vec<i64>>) -> Result<LookupTable> {
        Ok(LookupTable::new(Vocabulary::from_ints(terms.into())?))
    }

    /// Creates a table of the lines of a file, or of its first `size` lines. They are strings if
    /// the dtype is `Str`, otherwise integers.
    pub fn from_file(path: impl AsRef<Path>, size: Option<usize>, dtype: DType) -> Result<LookupTable> {
        let path = path.as_ref();
        let mut file = VocabularyFile::new(path);
        if let Some(size) = size {
            file = file.size(size);
        }
        let vocabulary = if dtype == DType::Str { file.read()? } else { file.read_ints()? };
        Ok(LookupTable { file: Some(Arc::new((path.to_path_buf(), size))), ..LookupTable::new(vocabulary) })
    }

    /// Creates a table from a vocabulary.
    pub fn new(vocabulary: Vocabulary) -> LookupTable {
        LookupTable { vocabulary: Arc::new(vocabulary), unknown: Unknown::Id(-1), file: None, listing: Arc::default() }
    }

    /// Sets the id of terms that are not in the table. By default, -1.
    pub fn default_id(mut self, id: i64) -> LookupTable {
        self.unknown = Unknown::Id(id);
        self
    }

    /// Gives each term that is not in the table one of `n` ids after the table's ids, by its hash.
    /// By default all such terms have the default id.
    pub fn n_oov_buckets(mut self, n: i64) -> Result<LookupTable> {
        self.unknown = Unknown::Buckets(Buckets::new(n)?);
        Ok(self)
    }

    /// The number of ids: of the terms, and of the out-of-vocabulary buckets after them.
    pub fn n_ids(&self) -> usize {
        let behind = match self.unknown {
            Unknown::Id(_) => 0,
            Unknown::Buckets(buckets) => buckets.n() as usize,
        };
        self.vocabulary.len() + behind
    }

    /// The terms, and the index over them.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The id of terms that are not in the table.
    pub fn unknown(&self) -> Unknown {
        self.unknown
    }

    /// The file that the terms were read from, and the number of lines read. An export copies the
    /// file.
    pub fn file(&self) -> Option<(&Path, Option<usize>)> {
        self.file.as_deref().map(|(path, n_lines)| (path.as_path(), *n_lines))
    }

    /// `DType::Str` or `DType::I64`.
    pub fn dtype(&self) -> DType {
        self.vocabulary.terms().dtype()
    }

    /// Returns the id (i64) of each term of a tensor.
    #[track_caller]
    pub fn lookup(&self, terms: &Tensor) -> Tensor {
        terms.then(HostOp::new(FindId(self.clone())), &[], Location::caller())
    }

    /// Returns the id of each term of a tensor. A term that is not in the table fails the run. The
    /// error contains `what`, the term and its row.
    #[track_caller]
    pub fn lookup_known(&self, terms: &Tensor, what: &str) -> Tensor {
        self.known(terms, None, what, Location::caller())
    }

    /// Like [`LookupTable::lookup_known`], for rows of different lengths.
    #[track_caller]
    pub fn lookup_known_ragged(&self, terms: &RaggedTensor, what: &str) -> RaggedTensor {
        terms.with_values(self.known(&terms.values, Some(&terms.row_splits), what, Location::caller()))
    }

    fn known(&self, terms: &Tensor, rows: Option<&Tensor>, what: &str, site: &'static Location<'static>) -> Tensor {
        let table = self.clone().default_id(-1);
        let ids = terms.then(HostOp::new(FindId(table.clone())), &[], site);
        let inputs: Vec<&Tensor> = std::iter::once(&ids).chain(rows).collect();
        terms.then(HostOp::new(KnownTerms { table, what: what.to_string() }), &inputs, site)
    }

    /// The terms in order, with their digest.
    pub(crate) fn listing(&self) -> &Listing {
        self.listing.get_or_init(|| Listing::of_terms(self.vocabulary.terms()))
    }

    /// The terms as text, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let numbers: Vec<i64> = (0..self.vocabulary.len() as i64).collect();
        let mut text = Strings::with_capacity(numbers.len());
        self.vocabulary.terms().find(&numbers, b"", &mut text);
        text.iter().map(|term| String::from_utf8_lossy(term).into_owned()).collect()
    }

    /// Returns the term of each id. Ids without a term get `unknown` (TensorFlow's default is
    /// `UNK`).
    #[track_caller]
    pub fn reverse(&self, ids: &Tensor, unknown: impl AsRef<[u8]>) -> Tensor {
        let op = FindTerm { table: self.clone(), unknown: unknown.as_ref().to_vec() };
        ids.then(HostOp::new(op), &[], Location::caller())
    }
}

/// Tables are equal only if they share their terms.
impl PartialEq for LookupTable {
    fn eq(&self, other: &LookupTable) -> bool {
        Arc::ptr_eq(&self.vocabulary, &other.vocabulary) && self.unknown == other.unknown
    }
}

impl Eq for LookupTable {}

impl Hash for LookupTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.vocabulary).hash(state);
    }
}

impl fmt::Debug for LookupTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LookupTable({} terms, {:?})", self.vocabulary.len(), self.unknown)
    }
}
