//! `sequence_categorical_column_with_*`: an id for each step of a sequence.

use std::panic::Location;
use std::path::PathBuf;

use estimand_graph::{IdSource, RaggedTensor, Tensor};
use estimand_tensor::{Array, BatchSpec, DType, Error, Result};

use super::json::written;
use super::{
    CategoricalSequenceColumn, Column, Extent, FeatureColumn, TermList, categorical_column_with_hash_bucket,
    categorical_column_with_identity, categorical_column_with_vocabulary_file, categorical_column_with_vocabulary_list,
};
use super::{HashBucketColumn, IdentityColumn, VocabularyFileColumn, VocabularyListColumn};
use crate::config::{Described, Fields, Json};
use crate::inputs::{Input, Inputs};

/// A categorical column whose values are the steps of a sequence. Made by the functions of this
/// file, or from a column with options by [`SequenceCategoricalColumn::of`].
#[derive(Clone, Debug)]
pub struct SequenceCategoricalColumn {
    column: FeatureColumn,
    key: String,
}

/// A sequence of integers that are ids. Wrap it in an indicator or embedding column.
#[track_caller]
pub fn sequence_categorical_column_with_identity(
    key: impl Into<String>,
    n_buckets: usize,
) -> SequenceCategoricalColumn {
    SequenceCategoricalColumn::of(categorical_column_with_identity(key, n_buckets))
}

/// A sequence of strings, mapped to ids by their hash. Wrap it in an indicator or embedding column.
#[track_caller]
pub fn sequence_categorical_column_with_hash_bucket(
    key: impl Into<String>,
    hash_bucket_size: usize,
) -> SequenceCategoricalColumn {
    SequenceCategoricalColumn::of(categorical_column_with_hash_bucket(key, hash_bucket_size))
}

/// A sequence of categories, mapped to ids by their position in a list. Wrap it in an indicator or
/// embedding column.
#[track_caller]
pub fn sequence_categorical_column_with_vocabulary_list(
    key: impl Into<String>,
    vocabulary_list: impl Into<TermList>,
) -> SequenceCategoricalColumn {
    SequenceCategoricalColumn::of(categorical_column_with_vocabulary_list(key, vocabulary_list))
}

/// A sequence of categories, mapped to ids by their line in a file. Wrap it in an indicator or
/// embedding column.
#[track_caller]
pub fn sequence_categorical_column_with_vocabulary_file(
    key: impl Into<String>,
    vocabulary_file: impl Into<PathBuf>,
) -> SequenceCategoricalColumn {
    SequenceCategoricalColumn::of(categorical_column_with_vocabulary_file(key, vocabulary_file))
}

/// The categorical columns that can be used for sequences: those that read one feature.
pub trait Steps: Into<FeatureColumn> {}

impl Steps for HashBucketColumn {}
impl Steps for IdentityColumn {}
impl Steps for VocabularyFileColumn {}
impl Steps for VocabularyListColumn {}

impl SequenceCategoricalColumn {
    /// Uses the values of a categorical column as steps.
    ///
    /// ```
    /// use estimand_nn::column::{SequenceCategoricalColumn, categorical_column_with_hash_bucket, embedding_column};
    /// use estimand_tensor::DType;
    /// let items = categorical_column_with_hash_bucket("items", 1_000).dtype(DType::I64);
    /// let steps = embedding_column(&SequenceCategoricalColumn::of(items), 8);
    /// # use estimand_nn::column::Column;
    /// # assert!(steps.check().is_ok());
    /// ```
    pub fn of(column: impl Steps) -> SequenceCategoricalColumn {
        let column: FeatureColumn = column.into();
        let key = column.name();
        SequenceCategoricalColumn { column, key }
    }
}

impl Described for SequenceCategoricalColumn {
    const CLASS: &'static str = "SequenceCategoricalColumn";

    fn template() -> SequenceCategoricalColumn {
        sequence_categorical_column_with_identity("", 0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SequenceCategoricalColumn {
        const STEPS: [&str; 4] = ["hash_bucket", "identity", "vocabulary_file", "vocabulary_list"];
        let column = fields.required("categorical_column", &self.column);
        if !STEPS.contains(&column.kind()) {
            fields.refuse_here(&format!("{} cannot be a sequence", column.describe()));
        }
        SequenceCategoricalColumn { key: column.name(), column }
    }
}

impl Column for SequenceCategoricalColumn {
    fn kind(&self) -> &'static str {
        "sequence_categorical"
    }

    fn name(&self) -> String {
        self.column.name()
    }

    fn site(&self) -> &'static Location<'static> {
        self.column.site()
    }

    fn check(&self) -> Result<()> {
        self.column.check()
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        self.column.parse_spec()
    }

    fn categorical_sequence(&self) -> Option<&dyn CategoricalSequenceColumn> {
        Some(self)
    }
}

impl CategoricalSequenceColumn for SequenceCategoricalColumn {
    fn n_buckets(&self) -> usize {
        self.column.categorical().map_or(0, |c| c.n_buckets())
    }

    fn extent(&self, features: &Inputs) -> Result<Extent> {
        match features.find(&self.key)? {
            Input::Ragged(rows) => Ok(Extent::of_rows(rows, 1)),
            Input::Dense(dense) => Ok(Extent::of_dense(&missing(&steps(dense)?)?.logical_not(), 1)),
        }
    }

    fn ids(&self, features: &Inputs) -> Result<RaggedTensor> {
        let column = self.column.expect_categorical()?;
        match features.find(&self.key)? {
            Input::Ragged(_) => Ok(column.categories(features)?.ids),
            // TF: a missing value keeps its step, without an id. So the column receives all values,
            // as if they were ragged.
            Input::Dense(dense) => {
                let dense = steps(dense)?;
                let all = Input::Ragged(RaggedTensor::from_rows(&dense));
                let whole = Inputs::of(features.graph(), "feature", [(self.key.clone(), all)]);
                let ids = column.categories(&whole)?.ids;
                let none = missing(&dense)?.reshape([-1]);
                let absent = &ids.values.zeros_like() - 1;
                Ok(ids.with_values(none.select(&absent, &ids.values)))
            }
        }
    }

    fn id_source(&self) -> Option<IdSource> {
        let source = self.column.categorical()?.id_source()?;
        Some(IdSource {
            column: format!("sequence_{}", source.column),
            otherwise: "use SequenceCategoricalColumn::of(..) with an identity column that has a .default_value(..)",
            // A lookup of steps has a row for each step.
            by_row: false,
            ..source
        })
    }
}

/// A dense feature with one value per step, `[batch, steps]`.
fn steps(dense: &Tensor) -> Result<Tensor> {
    match dense.rank() {
        1 => Ok(dense.expand_dims(1)),
        2 => Ok(dense.clone()),
        3 if dense.shape().dims()[2] == 1.into() => Ok(dense.squeeze(&[2])),
        _ if dense.is_poisoned() => Ok(dense.clone()),
        _ => {
            Err(Error::shape(format!("{} is not a sequence of categories; expected [batch, steps]", dense.describe())))
        }
    }
}

/// Booleans that are true where values are missing.
fn missing(dense: &Tensor) -> Result<Tensor> {
    match dense.dtype() {
        DType::Str => Ok(dense.string_equal(&dense.graph().constant(Array::from_strings([], [""])?))),
        _ => Ok(dense.equal(-1)),
    }
}
