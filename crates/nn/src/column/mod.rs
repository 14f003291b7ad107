//! Feature columns: what a model makes of its raw features, as plain values with TensorFlow's names
//! and numbers.
//!
//! A column says which features it reads and has one or more *sides*: dense (numbers for a
//! network), categorical (ids), and both as sequences. [`input_layer`], [`linear_model`] and
//! [`sequence_input_layer`] put columns into a graph; [`make_parse_example_spec`] tells how their
//! features stand in a `tf.Example`. This file is the seam; `feature` reads raw features,
//! `assembly` orders and names columns, the others hold one column or one function each.
//!
//! A constructor only stores. What is wrong with a column comes back from [`Column::check`], with
//! the line that made it, and from everything that columns are given to.
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

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{BatchSpec, Error, Result};

use crate::inputs::Inputs;
pub use bucketized::{BucketizedColumn, bucketized_column};
pub use crossed::{ColumnKey, CrossedColumn, crossed_column};
pub use embedding::{EmbeddingColumn, default_embedding_column, embedding_column};
pub use feature_column::{Columns, FeatureColumn};
pub use hash_bucket::{HashBucketColumn, categorical_column_with_hash_bucket};
pub use identity::{IdentityColumn, categorical_column_with_identity};
pub use indicator::{IndicatorColumn, indicator_column};
pub use input_layer::input_layer;
pub use linear_model::{LinearModel, LinearOutput, linear_model};
pub use numeric::{NumericColumn, numeric_column};
pub use parse_spec::{classifier_parse_example_spec, make_parse_example_spec, regressor_parse_example_spec};
pub use sequence_categorical::{
    SequenceCategoricalColumn, Steps, sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity, sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
};
pub use sequence_input_layer::sequence_input_layer;
pub use sequence_numeric::{SequenceNumericColumn, sequence_numeric_column};
pub use shared_embeddings::{SharedEmbeddingColumn, SharedEmbeddings, shared_embeddings};
pub use vocabulary_file::{VocabularyFileColumn, categorical_column_with_vocabulary_file};
pub use vocabulary_list::{TermList, VocabularyListColumn, categorical_column_with_vocabulary_list};
pub use weighted::{WeightedColumn, weighted_categorical_column};

/// A feature column.
///
/// A column of one's own needs the first five methods and the side that it has;
/// [`FeatureColumn::new`] makes it fit where columns are taken, and
/// [`check_column`](crate::testing::check_column) runs the contract.
pub trait Column: fmt::Debug + Send + Sync {
    /// What sort of column it is, in the words of its constructor: `numeric`.
    fn kind(&self) -> &'static str;

    /// TensorFlow's name for it: columns are ordered and variables are called by it.
    fn name(&self) -> String;

    /// The line that made it.
    fn site(&self) -> &'static Location<'static>;

    /// What is wrong with its options or with the columns it is made of.
    fn check(&self) -> Result<()>;

    /// The features that it reads, as they stand in a `tf.Example`.
    fn parse_spec(&self) -> BatchSpec;

    /// Its numbers for a network, if it has some.
    fn dense(&self) -> Option<&dyn DenseColumn> {
        None
    }

    /// Its ids, if it has some.
    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        None
    }

    /// Its numbers for each step of a sequence, if it has some.
    fn sequence(&self) -> Option<&dyn SequenceColumn> {
        None
    }

    /// Its id for each step of a sequence, if it has one.
    fn categorical_sequence(&self) -> Option<&dyn CategoricalSequenceColumn> {
        None
    }

    /// Itself, if it is a cross, whose keys stand for it in another cross.
    fn crossed(&self) -> Option<&CrossedColumn> {
        None
    }
}

/// The side of a column that is numbers for a network.
pub trait DenseColumn {
    /// The sizes of one row's axes.
    fn dims(&self) -> Vec<usize>;

    /// Its values, f32 `[batch, dims...]`. Variables are made in the open scope.
    fn tensor(&self, features: &Inputs) -> Result<Tensor>;
}

/// The side of a column that is ids.
pub trait CategoricalColumn {
    /// The number of ids.
    fn n_buckets(&self) -> usize;

    /// The ids of each row. An id below 0 counts nowhere.
    fn categories(&self, features: &Inputs) -> Result<Categories>;
}

/// Ids and, if there are some, their weights.
#[derive(Clone, Debug)]
pub struct Categories {
    /// The ids of each row, i32 or i64.
    pub ids: RaggedTensor,
    /// The weight of each id, f32 `[n]`.
    pub weights: Option<Tensor>,
}

/// The side of a column that is numbers for each step of a sequence.
pub trait SequenceColumn {
    /// The sizes of one step's axes.
    fn dims(&self) -> Vec<usize>;

    /// How long the sequences are.
    fn extent(&self, features: &Inputs) -> Result<Extent>;

    /// Its values, f32 `[batch, steps, dims...]`, for this number of steps. Variables are made in
    /// the open scope.
    fn tensor(&self, features: &Inputs, n_steps: &Tensor) -> Result<Tensor>;
}

/// The side of a column that is an id for each step of a sequence.
pub trait CategoricalSequenceColumn {
    /// The number of ids.
    fn n_buckets(&self) -> usize;

    /// How long the sequences are.
    fn extent(&self, features: &Inputs) -> Result<Extent>;

    /// The id of each step of each row. An id below 0 counts nowhere.
    fn ids(&self, features: &Inputs) -> Result<RaggedTensor>;
}

/// How long the sequences of a batch are.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The number of steps of each row, i64 `[batch]`.
    pub lengths: Tensor,
    /// The number of steps that hold all rows, a single i64.
    pub n_steps: Tensor,
}

/// An error with the column it is about, and the line that made it.
fn place(column: &dyn Column, error: Error) -> Error {
    let site = column.site();
    error.context(format!("in column `{}`, made at {}:{}", column.name(), site.file(), site.line()))
}

/// Every column of this crate, in its plainest form. Their features are called `x` (numbers), `id`
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
