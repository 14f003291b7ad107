//! Feature columns: they describe how a model uses its raw features. They are plain values with
//! TensorFlow's names and numbers.
//!
//! A column names the features it reads and has one or more *sides*: dense (numbers for a network),
//! categorical (ids), and both as sequences. [`input_layer`], [`linear_model`] and
//! [`sequence_input_layer`] put columns into a graph; [`make_parse_example_spec`] returns the spec
//! for parsing their features from a `tf.Example`. This file defines the traits; `feature` reads
//! raw features, `assembly` orders and names columns, and the other files hold one column or one
//! function each.
//!
//! A column can be written as JSON and read back (`json`), with the class names and keys of
//! TensorFlow's `get_config`.
//!
//! A constructor only stores its arguments. [`Column::check`] reports mistakes in a column, with
//! the line that made it; so does every function that takes columns.
//!
//! ```
//! use estimand_engine::Session;
//! use estimand_graph::Graph;
//! use estimand_nn::Inputs;
//! use estimand_nn::column::{bucketized_column, input_layer, make_parse_example_spec, numeric_column};
//! use estimand_tensor::Array;
//!
//! let age = numeric_column("age");
//! let decades = bucketized_column(&age, [20, 40, 60]);
//! let columns = [age.into(), decades.into()];
//!
//! let g = Graph::new();
//! let features = Inputs::new(&g, "feature", &make_parse_example_spec(&columns)?);
//! let x = input_layer(&features, &columns);
//! let fed = Array::from_vec([2, 1], vec![40.0f32, 17.0])?;
//! let out = Session::new(&g)?.run(&[&x], &[(&features.dense("age"), fed)])?;
//! assert_eq!(out[0].as_slice::<f32>()?, [40.0, 0.0, 0.0, 1.0, 0.0, 17.0, 1.0, 0.0, 0.0, 0.0]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod assembly;
mod bucketized;
mod crossed;
mod embedding;
mod feature;
mod feature_column;
mod hash_bucket;
mod identity;
mod indicator;
mod input_layer;
mod json;
mod linear_model;
mod normalizer;
mod numeric;
mod parse_spec;
mod sequence_categorical;
mod sequence_input_layer;
mod sequence_numeric;
mod shared_embeddings;
mod vocabulary_file;
mod vocabulary_list;
mod weighted;

use std::fmt;
use std::panic::Location;

use estimand_graph::{IdSource, RaggedTensor, Tensor};
use estimand_tensor::{BatchSpec, Error, Result};

use crate::config::Json;
use crate::inputs::Inputs;
pub use bucketized::{BucketizedColumn, bucketized_column};
pub use crossed::{ColumnKey, CrossedColumn, crossed_column};
pub use embedding::{EmbeddingColumn, default_embedding_column, embedding_column};
pub use feature_column::{Columns, FeatureColumn};
pub use hash_bucket::{HashBucketColumn, categorical_column_with_hash_bucket};
pub use identity::{IdentityColumn, categorical_column_with_identity};
pub use indicator::{IndicatorColumn, indicator_column};
pub use input_layer::{dense_features, input_layer};
pub use json::from_json;
pub use linear_model::{LinearModel, LinearOutput, LinearValues, linear_model};
pub use numeric::{NumericColumn, numeric_column};
pub use parse_spec::{classifier_parse_example_spec, make_parse_example_spec, regressor_parse_example_spec};
pub use sequence_categorical::{
    SequenceCategoricalColumn, Steps, sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity, sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
};
pub use sequence_input_layer::{sequence_features, sequence_input_layer};
pub use sequence_numeric::{SequenceNumericColumn, sequence_numeric_column};
pub use shared_embeddings::{SharedEmbeddingColumn, SharedEmbeddings, shared_embeddings};
pub use vocabulary_file::{VocabularyFileColumn, categorical_column_with_vocabulary_file};
pub use vocabulary_list::{TermList, VocabularyListColumn, categorical_column_with_vocabulary_list};
pub use weighted::{WeightedColumn, weighted_categorical_column};

/// A feature column.
///
/// A custom column needs the first five methods and the sides that it has. [`FeatureColumn::new`]
/// wraps it for use wherever columns are accepted, and
/// [`check_column`](crate::testing::check_column) runs the contract.
pub trait Column: fmt::Debug + Send + Sync {
    /// The kind of column, in the words of its constructor: `numeric`.
    fn kind(&self) -> &'static str;

    /// TensorFlow's name for the column. It determines the order of columns and the names of
    /// variables.
    fn name(&self) -> String;

    /// The source line that made the column.
    fn site(&self) -> &'static Location<'static>;

    /// Reports mistakes in the column's options or in the columns it is made of.
    fn check(&self) -> Result<()>;

    /// The features that the column reads, and their format in a `tf.Example`.
    fn parse_spec(&self) -> BatchSpec;

    /// The column as JSON; [`from_json`] reads it back. A custom column implements
    /// [`Described`](crate::config::Described) and calls [`config::write`](crate::config::write).
    /// By default it cannot be written.
    fn to_json(&self) -> Result<Json> {
        let text = format!("the {} column `{}` cannot be written as JSON", self.kind(), self.name());
        Err(Error::unsupported(text).help("implement `Described` for it, and `to_json` with `config::write`"))
    }

    /// The dense side, if the column has one: numbers for a network.
    fn dense(&self) -> Option<&dyn DenseColumn> {
        None
    }

    /// The categorical side, if the column has one: ids.
    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        None
    }

    /// The dense side for sequences, if the column has one: numbers for each step.
    fn sequence(&self) -> Option<&dyn SequenceColumn> {
        None
    }

    /// The categorical side for sequences, if the column has one: an id for each step.
    fn categorical_sequence(&self) -> Option<&dyn CategoricalSequenceColumn> {
        None
    }

    /// The column as a cross, if it is one. A cross inside another cross is replaced by its keys.
    fn crossed(&self) -> Option<&CrossedColumn> {
        None
    }
}

/// The dense side of a column: numbers for a network.
pub trait DenseColumn {
    /// The sizes of one row's axes.
    fn dims(&self) -> Vec<usize>;

    /// The column's values, f32 `[batch, dims...]`. Variables are made in the open scope.
    fn tensor(&self, features: &Inputs) -> Result<Tensor>;
}

/// The categorical side of a column: ids.
pub trait CategoricalColumn {
    /// The number of ids.
    fn n_buckets(&self) -> usize;

    /// The ids of each row. An id below 0 is ignored everywhere.
    fn categories(&self, features: &Inputs) -> Result<Categories>;

    /// The origin of ids that may be too large, for the error of such an id. By default none: the
    /// column makes its ids itself, or the error names only the id and its row.
    fn id_source(&self) -> Option<IdSource> {
        None
    }
}

/// Ids and, optionally, their weights.
#[derive(Clone, Debug)]
pub struct Categories {
    /// The ids of each row, i32 or i64.
    pub ids: RaggedTensor,
    /// The weight of each id, f32 `[n]`.
    pub weights: Option<Tensor>,
}

/// The dense side of a column for sequences: numbers for each step.
pub trait SequenceColumn {
    /// The sizes of one step's axes.
    fn dims(&self) -> Vec<usize>;

    /// The lengths of the sequences.
    fn extent(&self, features: &Inputs) -> Result<Extent>;

    /// The column's values, f32 `[batch, steps, dims...]`, padded to `n_steps` steps. Variables are
    /// made in the open scope.
    fn tensor(&self, features: &Inputs, n_steps: &Tensor) -> Result<Tensor>;
}

/// The categorical side of a column for sequences: an id for each step.
pub trait CategoricalSequenceColumn {
    /// The number of ids.
    fn n_buckets(&self) -> usize;

    /// The lengths of the sequences.
    fn extent(&self, features: &Inputs) -> Result<Extent>;

    /// The id of each step of each row. An id below 0 is ignored everywhere.
    fn ids(&self, features: &Inputs) -> Result<RaggedTensor>;

    /// Like [`CategoricalColumn::id_source`].
    fn id_source(&self) -> Option<IdSource> {
        None
    }
}

/// The lengths of the sequences of a batch.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The number of steps of each row, i64 `[batch]`.
    pub lengths: Tensor,
    /// The number of steps of the longest row, a single i64.
    pub n_steps: Tensor,
}

/// Adds to an error the column it is about and the line that made the column.
fn place(column: &dyn Column, error: Error) -> Error {
    let site = column.site();
    error.context(format!("in column `{}`, made at {}:{}", column.name(), site.file(), site.line()))
}

/// Every column of this crate, in its simplest form. Their features are called `x` (numbers), `id`
/// and `word`, and `weight`.
pub const ALL_COLUMNS: [fn() -> FeatureColumn; 17] = [
    || numeric_column("x").into(),
    || bucketized_column(&numeric_column("x"), [0.0, 0.5]).into(),
    || categorical_column_with_identity("id", 4).into(),
    || categorical_column_with_vocabulary_list("word", ["a", "b"]).into(),
    || {
        categorical_column_with_vocabulary_file("word", concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/words.txt"))
            .into()
    },
    || categorical_column_with_hash_bucket("word", 7).into(),
    || crossed_column(["word", "id"], 9).into(),
    || weighted_categorical_column(categorical_column_with_identity("id", 4), "weight").into(),
    || indicator_column(categorical_column_with_identity("id", 4)).into(),
    || embedding_column(categorical_column_with_hash_bucket("word", 7), 2).into(),
    || shared_embeddings([&categorical_column_with_identity("id", 4)], 2).columns().remove(0).into(),
    || sequence_numeric_column("weight").into(),
    || sequence_categorical_column_with_identity("id", 4).into(),
    || sequence_categorical_column_with_hash_bucket("word", 7).into(),
    || sequence_categorical_column_with_vocabulary_list("word", ["a", "b"]).into(),
    || indicator_column(sequence_categorical_column_with_identity("id", 4)).into(),
    || embedding_column(sequence_categorical_column_with_hash_bucket("word", 7), 2).into(),
];
