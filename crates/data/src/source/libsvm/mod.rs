//! LIBSVM (SVMlight) files: sparse rows as text, `label index:value index:value ...`.
//!
//! `line.rs` parses one line, `format.rs` turns chunks of files into rows, and `scan.rs` finds the
//! indices that occur. A row is a pair of ragged features, or a dense one
//! (`transform/sparse_to_dense.rs`).

mod format;
mod line;
mod scan;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Limits, Result};

use crate::files::stream::FileStream;
use crate::files::{Compression, Files, OnError};
use crate::stage::{InputContext, Stage, Stream};
use crate::transform::sparse_to_dense::{IDS, SparseToDense, VALUES};
use crate::{Dataset, Position};
use format::LibSvmFormat;
use line::Layout;
use scan::Found;

/// The name of the label.
pub(crate) const LABEL: &str = "label";

/// The name of the feature with the query of each row.
pub(crate) const QID: &str = "qid";

/// The index of the first feature in a LIBSVM file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexBase {
    /// 0 if the index 0 occurs in any of the files, otherwise 1: scikit-learn's rule. All files are
    /// read once for it.
    #[default]
    Auto,
    /// The first feature has index 0.
    Zero,
    /// The first feature has index 1, as the format defines it.
    One,
}

impl fmt::Display for IndexBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IndexBase::Auto => "auto",
            IndexBase::Zero => "zero-based",
            IndexBase::One => "one-based",
        })
    }
}

/// LIBSVM (SVMlight) files, with options; [`dataset`](LibSvm::dataset) builds the [`Dataset`].
///
/// A line is a row: its label, then pairs `index:value` with rising indices. `#` begins a comment,
/// and lines without a row are skipped. Rows have two ragged features: `ids` (i64, counted from 0)
/// and `values` (f32), a pair for `weighted_categorical_column`. [`dense`](LibSvm::dense) makes one
/// dense feature of them. The label is `label`, an f32.
///
/// ```
/// use estimand_data::LibSvm;
/// use estimand_tensor::{Array, Ragged};
/// # let path = std::env::temp_dir().join(format!("estimand-libsvm-doc-{}.svm", std::process::id()));
/// # std::fs::write(&path, "+1 1:0.5 4:2 # the first row\n-1 2:1.5\n").unwrap();
///
/// let data = LibSvm::new(&path).dataset().batch(2);
/// let batch = data.iter().next().unwrap()?;
/// assert_eq!(batch.features()["ids"], Ragged::new(Array::from([0i64, 3, 1]), [0, 2, 3])?.into());
/// assert_eq!(batch.features()["values"], Ragged::new(Array::from([0.5f32, 2.0, 1.5]), [0, 2, 3])?.into());
/// assert_eq!(batch.labels()["label"], Array::from([1.0f32, -1.0]).into());
///
/// let dense = LibSvm::new(&path).dense().dataset().batch(2).iter().next().unwrap()?;
/// let expected = Array::from_vec([2, 4], vec![0.5f32, 0.0, 0.0, 2.0, 0.0, 1.5, 0.0, 0.0])?;
/// assert_eq!(dense.features()["features"], expected.into());
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LibSvm {
    files: Files,
    n_features: Option<usize>,
    index_base: IndexBase,
    label_dtype: Option<DType>,
    has_many_labels: bool,
    has_query: bool,
    is_dense: bool,
}

impl Dataset {
    /// Creates a dataset from LIBSVM (SVMlight) files: ragged features `ids` and `values`, and the
    /// label `label`. [`LibSvm`] has options.
    pub fn from_libsvm(files: impl Into<Files>) -> Dataset {
        LibSvm::new(files).dataset()
    }
}

impl LibSvm {
    /// Describes LIBSVM files given by a path, a list or a pattern, read one after another.
    pub fn new(files: impl Into<Files>) -> LibSvm {
        LibSvm {
            files: files.into(),
            n_features: None,
            index_base: IndexBase::Auto,
            label_dtype: None,
            has_many_labels: false,
            has_query: false,
            is_dense: false,
        }
    }

    /// The number of features. A row with a larger index is an error. By default, any index is
    /// accepted, and [`dense`](LibSvm::dense) reads all files once to find the largest.
    pub fn n_features(mut self, n: usize) -> LibSvm {
        self.n_features = Some(n);
        self
    }

    /// The index of the first feature. By default, [`IndexBase::Auto`]. Name it if the files are
    /// large, or if they hold only a part of the rows.
    pub fn index_base(mut self, base: IndexBase) -> LibSvm {
        self.index_base = base;
        self
    }

    /// The dtype of the label: f32, f64, i32 or i64. By default, f32; i64 for
    /// [`multilabel`](LibSvm::multilabel) files.
    pub fn label_dtype(mut self, dtype: DType) -> LibSvm {
        self.label_dtype = Some(dtype);
        self
    }

    /// Reads several labels per row, separated by commas: the label becomes a ragged feature of
    /// i64. A row may have none. By default, a row has one label.
    pub fn multilabel(mut self) -> LibSvm {
        self.has_many_labels = true;
        self
    }

    /// Also reads the query of each row, `qid:number` after the label, as the i64 feature `qid`.
    /// Then every row must have one. By default, it is skipped.
    pub fn query_id(mut self) -> LibSvm {
        self.has_query = true;
        self
    }

    /// Makes one dense feature `features` (f32, one value per feature) of each row. By default,
    /// rows are the ragged features `ids` and `values`.
    pub fn dense(mut self) -> LibSvm {
        self.is_dense = true;
        self
    }

    /// The compression of the files. By default, it follows from their extensions.
    pub fn compression(mut self, compression: Compression) -> LibSvm {
        self.files = self.files.compression(compression);
        self
    }

    /// The limits on the length of a line and on the number of dense features ([`Limits`]). By
    /// default, those of the [`Files`].
    pub fn limits(mut self, limits: Limits) -> LibSvm {
        self.files = self.files.limits(limits);
        self
    }

    /// The handling of a row that cannot be read. By default, it ends the reading with an error.
    pub fn on_error(mut self, on_error: OnError) -> LibSvm {
        self.files = self.files.on_error(on_error);
        self
    }

    /// Builds the dataset. Reads nothing yet.
    pub fn dataset(self) -> Dataset {
        let is_dense = self.is_dense;
        let reading = Arc::new(Reading { libsvm: self, found: OnceLock::new() });
        let rows = Dataset::new(LibSvmSource(reading.clone())).label(LABEL);
        match is_dense {
            true => Dataset::new(SparseToDense::new(rows, move || reading.n_features())),
            false => rows,
        }
    }

    /// The number of features: the given number, or the largest in the files, which are all read
    /// for it. A categorical column needs it.
    ///
    /// ```no_run
    /// use estimand_data::LibSvm;
    ///
    /// let files = LibSvm::new("train-*.svm");
    /// let n = files.count_features()?; // categorical_column_with_identity("ids", n)
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn count_features(&self) -> Result<usize> {
        Reading { libsvm: self.clone(), found: OnceLock::new() }.n_features()
    }
}

impl From<LibSvm> for Dataset {
    fn from(libsvm: LibSvm) -> Dataset {
        libsvm.dataset()
    }
}

/// The files and what is known about them.
struct Reading {
    libsvm: LibSvm,
    found: OnceLock<Result<Found>>,
}

impl Reading {
    fn found(&self) -> Result<Found> {
        self.found.get_or_init(|| Found::in_files(&self.libsvm.files, self.layout(0))).clone()
    }

    /// The index of the first feature.
    fn base(&self) -> Result<u64> {
        match self.libsvm.index_base {
            IndexBase::Zero => Ok(0),
            IndexBase::One => Ok(1),
            IndexBase::Auto => Ok(self.found()?.base()),
        }
    }

    fn n_features(&self) -> Result<usize> {
        let n = match self.libsvm.n_features {
            Some(n) => n,
            None => self.found()?.n_features(self.base()?),
        };
        let limit = self.libsvm.files.reading_limits().columns;
        if self.libsvm.is_dense && n > limit {
            return Err(Limits::exceeded("columns", limit as u64, format!("the rows have {n} features")));
        }
        Ok(n)
    }

    fn layout(&self, base: u64) -> Layout {
        let LibSvm { n_features, label_dtype, has_many_labels, has_query, .. } = self.libsvm;
        let label_dtype = label_dtype.unwrap_or(if has_many_labels { DType::I64 } else { DType::F32 });
        Layout { base, n_features, label_dtype, has_many_labels, has_query }
    }

    fn label_spec(&self) -> FeatureSpec {
        match (self.libsvm.has_many_labels, self.libsvm.label_dtype) {
            (true, _) => FeatureSpec::ragged(DType::I64),
            (false, dtype) => FeatureSpec::dense(dtype.unwrap_or(DType::F32), []),
        }
    }
}

struct LibSvmSource(Arc<Reading>);

impl Stage for LibSvmSource {
    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.0.libsvm.files.resolve()?.to_vec())
    }

    fn describe(&self) -> String {
        let LibSvm { files, n_features, index_base, has_many_labels, has_query, .. } = &self.0.libsvm;
        let mut options = index_base.to_string();
        if let Some(n) = n_features {
            options += &format!(", {n} features");
        }
        options += if *has_many_labels { ", multilabel" } else { "" };
        options += if *has_query { ", query_id" } else { "" };
        format!("libsvm({options}): {}", files.describe())
    }

    fn identity(&self, cx: &InputContext) -> String {
        self.describe() + &self.0.libsvm.files.identity(cx)
    }

    /// Positions are offsets in files, which the options do not change.
    fn landmark(&self) -> String {
        "libsvm".to_string()
    }

    fn check(&self) -> Result<()> {
        let LibSvm { label_dtype, has_many_labels, n_features, .. } = self.0.libsvm;
        if n_features == Some(0) {
            return Err(Error::config("the number of features is 0; expected at least 1"));
        }
        match label_dtype {
            Some(dtype) if has_many_labels && dtype != DType::I64 => {
                Err(Error::config(format!("the labels of multilabel rows are i64; label_dtype is {dtype}"))
                    .help("leave label_dtype out"))
            }
            Some(dtype @ (DType::U8 | DType::Bool | DType::Str)) => {
                Err(Error::config(format!("label_dtype is {dtype}; expected f32, f64, i32 or i64")))
            }
            _ => Ok(()),
        }
    }

    fn spec(&self) -> Result<BatchSpec> {
        let mut spec = BatchSpec::default();
        spec.insert(IDS.to_string(), FeatureSpec::ragged(DType::I64));
        spec.insert(VALUES.to_string(), FeatureSpec::ragged(DType::F32));
        if self.0.libsvm.has_query {
            spec.insert(QID.to_string(), FeatureSpec::dense(DType::I64, []));
        }
        spec.insert(LABEL.to_string(), self.0.label_spec());
        Ok(spec)
    }

    fn reshuffles(&self) -> bool {
        self.0.libsvm.files.is_shuffled()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let format = Arc::new(LibSvmFormat { layout: self.0.layout(self.0.base()?) });
        Ok(Box::new(FileStream::open(&self.0.libsvm.files, format, cx, from)?))
    }
}
