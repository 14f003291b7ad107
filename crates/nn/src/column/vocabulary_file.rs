//! `categorical_column_with_vocabulary_file`: maps categories to their line in a file.

use std::panic::Location;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use estimand_graph::LookupTable;
use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Result};

use super::feature::CategoryKind;
use super::json::written;
use super::vocabulary_list::{Unknown, find};
use super::{CategoricalColumn, Categories, Column, place};
use crate::config::{Described, Fields, File, Json};
use crate::inputs::Inputs;

/// Categories by their line in a file. Made by [`categorical_column_with_vocabulary_file`].
#[derive(Clone, Debug)]
#[must_use]
pub struct VocabularyFileColumn {
    key: String,
    path: PathBuf,
    size: Option<usize>,
    dtype: DType,
    unknown: Unknown,
    /// The table. It is read once, when it is first needed; clones share it.
    table: Arc<OnceLock<Result<LookupTable>>>,
    site: &'static Location<'static>,
}

/// Takes categories from a file, one per line; the id is the number of the line, from 0. By
/// default, other values have the id -1, which is ignored everywhere.
///
/// The file is read when the column is first checked or used. Exports of a trained model include
/// it.
///
/// ```no_run
/// use estimand_nn::column::{Column, categorical_column_with_vocabulary_file};
/// let word = categorical_column_with_vocabulary_file("word", "words.txt").vocabulary_size(10_000).n_oov_buckets(100);
/// word.check()?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn categorical_column_with_vocabulary_file(
    key: impl Into<String>,
    vocabulary_file: impl Into<PathBuf>,
) -> VocabularyFileColumn {
    VocabularyFileColumn {
        key: key.into(),
        path: vocabulary_file.into(),
        size: None,
        dtype: DType::Str,
        unknown: Unknown::default(),
        table: Arc::default(),
        site: Location::caller(),
    }
}

impl VocabularyFileColumn {
    /// The number of lines to use. The file must have at least this number of lines. By default,
    /// all are used.
    pub fn vocabulary_size(mut self, n: usize) -> VocabularyFileColumn {
        self.size = Some(n);
        self.table = Arc::default();
        self
    }

    /// The dtype of the lines and the feature. By default, strings.
    pub fn dtype(mut self, dtype: DType) -> VocabularyFileColumn {
        self.dtype = dtype;
        self.table = Arc::default();
        self
    }

    /// The id of values that are not in the file. By default, -1.
    pub fn default_value(mut self, id: i64) -> VocabularyFileColumn {
        self.unknown.default_value = Some(id);
        self
    }

    /// Maps values that are not in the file to `n` additional ids, by their hash. By default, there
    /// are none.
    pub fn n_oov_buckets(mut self, n: usize) -> VocabularyFileColumn {
        self.unknown.n_oov_buckets = n;
        self
    }

    fn table(&self) -> Result<LookupTable> {
        self.unknown.apply(self.table.get_or_init(|| self.read()).clone()?)
    }

    fn read(&self) -> Result<LookupTable> {
        CategoryKind::of(self.dtype)?;
        if self.size == Some(0) {
            return Err(Error::config("the vocabulary size is 0; expected at least 1"));
        }
        LookupTable::from_file(&self.path, self.size, self.dtype)
    }
}

impl Described for VocabularyFileColumn {
    const CLASS: &'static str = "VocabularyFileCategoricalColumn";

    fn template() -> VocabularyFileColumn {
        categorical_column_with_vocabulary_file("", "")
    }

    fn fields(&self, fields: &mut Fields<'_>) -> VocabularyFileColumn {
        VocabularyFileColumn {
            key: fields.required("key", &self.key),
            path: fields.required("vocabulary_file", &File(self.path.clone())).0,
            size: fields.value("vocabulary_size", &self.size),
            dtype: fields.value("dtype", &self.dtype),
            unknown: self.unknown.fields(fields),
            table: Arc::default(),
            site: fields.site(self.site),
        }
    }
}

impl Column for VocabularyFileColumn {
    fn kind(&self) -> &'static str {
        "vocabulary_file"
    }

    fn name(&self) -> String {
        self.key.clone()
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.table().map(drop).map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        BatchSpec::from([(self.key.clone(), FeatureSpec::ragged(self.dtype))])
    }

    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        Some(self)
    }
}

impl CategoricalColumn for VocabularyFileColumn {
    fn n_buckets(&self) -> usize {
        self.table().map_or(0, |table| table.n_ids())
    }

    fn categories(&self, features: &Inputs) -> Result<Categories> {
        find(features, &self.key, &self.table()?)
    }
}
