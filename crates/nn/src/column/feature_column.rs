//! `FeatureColumn`, a column of any kind, and `Columns`, a list of them. Functions take these
//! types.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use estimand_tensor::{Error, Result};

use super::{
    BucketizedColumn, CategoricalColumn, CategoricalSequenceColumn, Column, ColumnKey, CrossedColumn, EmbeddingColumn,
    HashBucketColumn, IdentityColumn, IndicatorColumn, NumericColumn, SequenceCategoricalColumn, SequenceNumericColumn,
    SharedEmbeddingColumn, VocabularyFileColumn, VocabularyListColumn, WeightedColumn, place,
};

/// A column of any kind. Cheap to clone.
///
/// ```
/// use estimand_nn::column::{FeatureColumn, categorical_column_with_hash_bucket, embedding_column, numeric_column};
///
/// let occupation = categorical_column_with_hash_bucket("occupation", 1_000);
/// let columns: [FeatureColumn; 2] = [numeric_column("age").into(), embedding_column(&occupation, 8).into()];
/// assert_eq!(columns[1].name(), "occupation_embedding");
/// ```
#[derive(Clone)]
pub struct FeatureColumn(Arc<dyn Column>);

impl FeatureColumn {
    /// Wraps a custom column.
    pub fn new(column: impl Column + 'static) -> FeatureColumn {
        FeatureColumn(Arc::new(column))
    }

    /// Adds to an error this column and the line that made it.
    pub(super) fn place(&self, error: Error) -> Error {
        place(&*self.0, error)
    }

    /// The categorical side, or an error if the column has none.
    pub(super) fn expect_categorical(&self) -> Result<&dyn CategoricalColumn> {
        self.categorical().ok_or_else(|| {
            let error = Error::config(format!("{} is not categorical", self.describe()));
            error.help("use a categorical_column_with_*, a bucketized or a crossed column")
        })
    }

    /// The categorical side for sequences, or an error if the column has none.
    pub(super) fn expect_steps(&self) -> Result<&dyn CategoricalSequenceColumn> {
        self.categorical_sequence().ok_or_else(|| {
            let error = Error::config(format!("{} is not a categorical sequence", self.describe()));
            error.help("use a sequence_categorical_column_with_*")
        })
    }

    /// The number of ids, of rows or of steps, or an error if the column has none.
    pub(super) fn expect_ids(&self) -> Result<usize> {
        match self.categorical_sequence() {
            Some(steps) => Ok(steps.n_buckets()),
            None => Ok(self.expect_categorical()?.n_buckets()),
        }
    }

    pub(super) fn describe(&self) -> String {
        format!("the {} column `{}`", self.kind(), self.name())
    }
}

/// A list of columns as a function argument: `[age.into(), words.into()]`, a list of
/// [`FeatureColumn`], or a reference to one.
///
/// ```
/// use estimand_nn::column::{Columns, FeatureColumn, numeric_column};
/// let few: Columns = [numeric_column("age").into(), numeric_column("height").into()].into();
/// let many: Columns = (0..100).map(|i| numeric_column(format!("x_{i}"))).collect();
/// assert_eq!((few.len(), many.len()), (2, 100));
/// ```
///
/// [`columns!`](crate::columns) makes a list of columns of several kinds.
#[derive(Clone, Debug, Default)]
pub struct Columns(pub(super) Vec<FeatureColumn>);

impl Deref for Columns {
    type Target = [FeatureColumn];

    fn deref(&self) -> &[FeatureColumn] {
        &self.0
    }
}

impl<C: Into<FeatureColumn>> FromIterator<C> for Columns {
    fn from_iter<I: IntoIterator<Item = C>>(columns: I) -> Columns {
        Columns(columns.into_iter().map(Into::into).collect())
    }
}

macro_rules! column_lists {
    ($([$($generics:tt)*] $list:ty => |$v:ident| $columns:expr),* $(,)?) => {$(
        impl<$($generics)*> From<$list> for Columns {
            fn from($v: $list) -> Columns {
                Columns($columns)
            }
        }
    )*};
}

column_lists! {
    [] Vec<FeatureColumn> => |list| list,
    [] &Vec<FeatureColumn> => |list| list.clone(),
    [] &[FeatureColumn] => |list| list.to_vec(),
    [const N: usize] [FeatureColumn; N] => |list| list.into(),
    [const N: usize] &[FeatureColumn; N] => |list| list.to_vec(),
    [] &Columns => |list| list.0.clone(),
}

impl Deref for FeatureColumn {
    type Target = dyn Column;

    fn deref(&self) -> &(dyn Column + 'static) {
        &*self.0
    }
}

impl fmt::Debug for FeatureColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&FeatureColumn> for FeatureColumn {
    fn from(column: &FeatureColumn) -> FeatureColumn {
        column.clone()
    }
}

macro_rules! feature_columns {
    ($($column:ty),* $(,)?) => {$(
        impl From<$column> for FeatureColumn {
            fn from(column: $column) -> FeatureColumn {
                FeatureColumn::new(column)
            }
        }

        impl From<&$column> for FeatureColumn {
            fn from(column: &$column) -> FeatureColumn {
                FeatureColumn::new(column.clone())
            }
        }

        impl From<$column> for ColumnKey {
            fn from(column: $column) -> ColumnKey {
                ColumnKey::Column(column.into())
            }
        }

        impl From<&$column> for ColumnKey {
            fn from(column: &$column) -> ColumnKey {
                ColumnKey::Column(column.into())
            }
        }
    )*};
}

feature_columns! {
    BucketizedColumn, CrossedColumn, EmbeddingColumn, HashBucketColumn, IdentityColumn, IndicatorColumn, NumericColumn,
    SequenceCategoricalColumn, SequenceNumericColumn, SharedEmbeddingColumn, VocabularyFileColumn, VocabularyListColumn,
    WeightedColumn,
}

/// A list of columns of any kinds, or of references to them: [`Columns`](crate::column::Columns).
///
/// ```
/// use estimand_nn::column::{categorical_column_with_hash_bucket, crossed_column, indicator_column, numeric_column};
/// use estimand_nn::columns;
///
/// let age = numeric_column("age");
/// let job = indicator_column(categorical_column_with_hash_bucket("job", 100));
/// let cross = crossed_column(["job", "city"], 1_000);
/// assert_eq!(columns![age, &job, cross].len(), 3);
/// assert!(columns![].is_empty());
/// ```
#[macro_export]
macro_rules! columns {
    ($($column:expr),* $(,)?) => {
        $crate::column::Columns::from([$($crate::column::FeatureColumn::from($column)),*])
    };
}
