//! `embedding_column`: a learnt vector for each category.

use std::panic::Location;
use std::path::{Path, PathBuf};

use estimand_checkpoint::{BundleReader, latest_checkpoint};
use estimand_graph::{Combiner, Graph, IdSource, Initializer, Lookup, RaggedTensor, Role, Tensor};
use estimand_tensor::{BatchSpec, DType, Error, Mode, Result};

use super::json::written;
use super::{Categories, Column, DenseColumn, Extent, FeatureColumn, SequenceColumn, numeric_column, place};
use crate::config::{Described, Fields, Json};
use crate::inputs::Inputs;

/// A learnt vector for each category. Made by [`embedding_column`].
///
/// Variable: `embedding_weights` `[n_buckets, dimension]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct EmbeddingColumn {
    column: FeatureColumn,
    table: Table,
    site: &'static Location<'static>,
}

/// Learns a vector of `dimension` numbers for each category of a column. The vectors of a row are
/// combined into one.
///
/// Ids below 0 are ignored. Unless vectors are summed, ids whose weight is not above 0 are ignored
/// too. A row without ids yields zeros. The cost of a step depends on the categories of a batch,
/// not on the size of the table.
///
/// ```
/// use estimand_graph::Combiner;
/// use estimand_nn::column::{Column, categorical_column_with_hash_bucket, embedding_column};
/// let words = categorical_column_with_hash_bucket("words", 100_000);
/// let meaning = embedding_column(&words, 16).combiner(Combiner::SqrtN).max_norm(1.0);
/// assert_eq!(meaning.name(), "words_embedding");
/// ```
#[track_caller]
pub fn embedding_column(column: impl Into<FeatureColumn>, dimension: usize) -> EmbeddingColumn {
    EmbeddingColumn { column: column.into(), table: Table::new(Some(dimension)), site: Location::caller() }
}

/// Like [`embedding_column`], with the fourth root of the number of categories, rounded up, as the
/// dimension.
///
/// ```
/// use estimand_nn::column::{Column, categorical_column_with_hash_bucket, default_embedding_column};
/// let words = categorical_column_with_hash_bucket("words", 10_000);
/// assert_eq!(default_embedding_column(&words).dense().map(|c| c.dims()), Some(vec![10]));
/// ```
#[track_caller]
pub fn default_embedding_column(column: impl Into<FeatureColumn>) -> EmbeddingColumn {
    EmbeddingColumn { column: column.into(), table: Table::new(None), site: Location::caller() }
}

/// The options of a table of vectors.
#[derive(Clone, Debug)]
pub(super) struct Table {
    dimension: Option<usize>,
    pub combiner: Combiner,
    pub initializer: Option<Initializer>,
    pub checkpoint: Option<InitialCheckpoint>,
    pub max_norm: Option<f64>,
    pub trainable: bool,
}

/// A tensor of a checkpoint that initializes a table.
#[derive(Clone, Debug)]
pub(super) struct InitialCheckpoint {
    pub path: PathBuf,
    pub tensor: String,
}

impl Table {
    pub(super) fn new(dimension: Option<usize>) -> Table {
        let combiner = Combiner::Mean;
        Table { dimension, combiner, initializer: None, checkpoint: None, max_norm: None, trainable: true }
    }

    pub(super) fn fields(&self, fields: &mut Fields<'_>) -> Table {
        let combiners = [Combiner::Sum, Combiner::Mean, Combiner::SqrtN].map(|c| (c.tf_name(), c));
        Table {
            dimension: fields.value("dimension", &self.dimension),
            combiner: fields.choice("combiner", &self.combiner, &combiners),
            initializer: fields.value("initializer", &self.initializer),
            checkpoint: fields.value("ckpt_to_load_from", &self.checkpoint),
            max_norm: fields.value("max_norm", &self.max_norm),
            trainable: fields.value("trainable", &self.trainable),
        }
    }

    pub(super) fn dimension(&self, n_buckets: usize) -> usize {
        self.dimension.unwrap_or_else(|| (n_buckets as f64).powf(0.25).ceil().max(1.0) as usize)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.dimension == Some(0) {
            return Err(Error::config("the embedding dimension is 0; expected at least 1"));
        }
        match self.max_norm {
            Some(norm) if norm.is_nan() || norm <= 0.0 => {
                Err(Error::config(format!("max_norm is {norm}; expected a number above 0")))
            }
            _ => Ok(()),
        }
    }

    /// Makes the variable in the open scope.
    pub(super) fn variable(&self, graph: &Graph, name: &str, n_buckets: usize) -> Result<Tensor> {
        let dimension = self.dimension(n_buckets);
        let stddev = 1.0 / (dimension as f64).sqrt();
        let initializer = match (&self.checkpoint, &self.initializer) {
            // Only training uses initial values. Prediction must not require the other checkpoint.
            (Some(InitialCheckpoint { path, tensor }), _) if graph.mode() == Mode::Train => {
                restored(path, tensor, &[n_buckets, dimension])?
            }
            (_, Some(initializer)) => initializer.clone(),
            _ => Initializer::TruncatedNormal { mean: 0.0, stddev },
        };
        let role = Role::Model { trainable: self.trainable };
        Ok(graph.variable_with(name, DType::F32, [n_buckets, dimension], initializer, role))
    }

    /// Looks up the vectors of each row and combines them.
    pub(super) fn lookup(&self, table: &Tensor, found: &Categories, source: Option<IdSource>) -> Tensor {
        let mut how = Lookup::new(self.combiner).source(source);
        if let Some(weights) = &found.weights {
            how = how.weights(weights);
        }
        if let Some(norm) = self.max_norm {
            how = how.max_norm(norm);
        }
        let vectors = table.lookup(&found.ids, how);
        vectors.means("combiner", self.combiner.tf_name());
        if let Some(norm) = self.max_norm {
            vectors.means("max norm", norm);
        }
        if let Some(dimension) = table.shape().dims().last().and_then(|dim| dim.known()) {
            vectors.means("dimension", dimension);
        }
        vectors
    }

    /// Looks up the vector of each step, `[batch, steps, dimension]`.
    pub(super) fn steps(
        &self,
        table: &Tensor,
        ids: &RaggedTensor,
        n_steps: &Tensor,
        source: Option<IdSource>,
    ) -> Tensor {
        let dimension = table.shape().dims().last().copied().unwrap_or(1.into());
        let ids = ids.to_steps(n_steps, &[], -1);
        let shape: estimand_tensor::Shape = ids.shape().dims().iter().copied().chain([dimension]).collect();
        let each = Categories { ids: RaggedTensor::from_rows(&ids.reshape([-1])), weights: None };
        self.lookup(table, &each, source).reshape_as(shape)
    }
}

/// Reads a tensor of a checkpoint. `path` is a prefix, or a folder whose newest checkpoint is used.
fn restored(path: &Path, tensor: &str, dims: &[usize]) -> Result<Initializer> {
    let newest = if path.is_dir() { latest_checkpoint(path)? } else { None };
    let value = BundleReader::open(newest.as_deref().unwrap_or(path))?.read(tensor)?;
    if value.dtype() != DType::F32 || value.dims() != dims {
        let text = format!(
            "tensor `{tensor}` is {}{:?}; expected f32{dims:?}, as the column's table",
            value.dtype(),
            value.dims()
        );
        return Err(Error::checkpoint(path, text));
    }
    Ok(Initializer::Value(value))
}

/// The setters of a column with a field `table`.
macro_rules! table_setters {
    ($column:ty) => {
        impl $column {
            /// The way the vectors of a row are combined. By default, their mean.
            pub fn combiner(mut self, combiner: Combiner) -> Self {
                self.table.combiner = combiner;
                self
            }

            /// The initializer of the table. By default, a normal distribution with deviation
            /// `1 / sqrt(dimension)`, truncated at two deviations.
            pub fn initializer(mut self, initializer: Initializer) -> Self {
                self.table.initializer = Some(initializer);
                self
            }

            /// Initializes the table from a tensor of a checkpoint. `path` is a prefix such as
            /// `model.ckpt-100`, or a folder whose newest checkpoint is used. The checkpoint is
            /// read when a model is built for training. By default, the initializer is used.
            pub fn checkpoint(mut self, path: impl Into<PathBuf>, tensor_name: impl Into<String>) -> Self {
                let (path, tensor) = (path.into(), tensor_name.into());
                self.table.checkpoint = Some(super::embedding::InitialCheckpoint { path, tensor });
                self
            }

            /// Scales longer vectors down to this length before they are combined. By default,
            /// vectors are used as they are.
            pub fn max_norm(mut self, max_norm: f64) -> Self {
                self.table.max_norm = Some(max_norm);
                self
            }

            /// Whether optimizers change the table. By default, they do.
            pub fn trainable(mut self, trainable: bool) -> Self {
                self.table.trainable = trainable;
                self
            }
        }
    };
}
pub(super) use table_setters;

table_setters!(EmbeddingColumn);

/// The name of the variable of an embedding table.
const WEIGHTS: &str = "embedding_weights";

impl Described for EmbeddingColumn {
    const CLASS: &'static str = "EmbeddingColumn";

    fn template() -> EmbeddingColumn {
        default_embedding_column(numeric_column(""))
    }

    fn fields(&self, fields: &mut Fields<'_>) -> EmbeddingColumn {
        EmbeddingColumn {
            column: fields.required("categorical_column", &self.column),
            table: self.table.fields(fields),
            site: fields.site(self.site),
        }
    }
}

impl Column for EmbeddingColumn {
    fn kind(&self) -> &'static str {
        "embedding"
    }

    fn name(&self) -> String {
        format!("{}_embedding", self.column.name())
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.column.check()?;
        self.column.expect_ids().and_then(|_| self.table.check()).map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        self.column.parse_spec()
    }

    fn dense(&self) -> Option<&dyn DenseColumn> {
        self.column.categorical().is_some().then_some(self)
    }

    fn sequence(&self) -> Option<&dyn SequenceColumn> {
        self.column.categorical_sequence().is_some().then_some(self)
    }
}

impl DenseColumn for EmbeddingColumn {
    fn dims(&self) -> Vec<usize> {
        vec![self.table.dimension(self.column.expect_ids().unwrap_or(1))]
    }

    fn tensor(&self, features: &Inputs) -> Result<Tensor> {
        let column = self.column.expect_categorical()?;
        let found = column.categories(features)?;
        let table = self.table.variable(features.graph(), WEIGHTS, column.n_buckets())?;
        let _line = features.graph().line_of_column(self.column.site(), file!());
        Ok(self.table.lookup(&table, &found, column.id_source()))
    }
}

impl SequenceColumn for EmbeddingColumn {
    fn dims(&self) -> Vec<usize> {
        DenseColumn::dims(self)
    }

    fn extent(&self, features: &Inputs) -> Result<Extent> {
        self.column.expect_steps()?.extent(features)
    }

    fn tensor(&self, features: &Inputs, n_steps: &Tensor) -> Result<Tensor> {
        let column = self.column.expect_steps()?;
        let table = self.table.variable(features.graph(), WEIGHTS, column.n_buckets())?;
        let _line = features.graph().line_of_column(self.column.site(), file!());
        Ok(self.table.steps(&table, &column.ids(features)?, n_steps, column.id_source()))
    }
}
