//! `linear_model`: a weighted sum of columns.

use std::panic::Location;

use estimand_graph::{Combiner, Initializer, Lookup, Role, Tensor};
use estimand_tensor::{DType, Error, Result};
use indexmap::IndexMap;

use super::assembly::{layer_name, scope_name, sorted};
use super::input_layer::flat;
use super::{CategoricalColumn, Categories, Columns, DenseColumn, FeatureColumn};
use crate::inputs::Inputs;

/// A weighted sum of columns, with options.
///
/// Categorical columns (also bucketized ones) have a weight for each id, dense columns one for each
/// number. All weights start at 0.
///
/// Variables: `linear_model/<column>/weights` and `linear_model/bias_weights`, inside the open
/// scope.
///
/// ```
/// use estimand_graph::{Combiner, Graph};
/// use estimand_nn::Inputs;
/// use estimand_nn::column::{LinearModel, categorical_column_with_hash_bucket, make_parse_example_spec, numeric_column};
///
/// let columns = [numeric_column("age").into(), categorical_column_with_hash_bucket("words", 100).into()];
/// let g = Graph::new();
/// let features = Inputs::new(&g, "feature", &make_parse_example_spec(&columns)?);
/// let linear = LinearModel::new(&columns).units(3).sparse_combiner(Combiner::Mean).apply(&features);
/// assert_eq!(linear.weights["words"].shape().dims(), [100.into(), 3.into()]);
/// assert_eq!(linear.bias.shape().dims(), [3.into()]);
/// # g.check()?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LinearModel {
    columns: Columns,
    units: usize,
    sparse_combiner: Combiner,
    trainable: bool,
}

/// The name of the weights of a column.
const WEIGHTS: &str = "weights";

/// The result of a linear model.
#[derive(Clone, Debug)]
pub struct LinearOutput {
    /// The sums, f32 `[batch, units]`.
    pub logits: Tensor,
    /// The bias variable, `[units]`, which is added to every row.
    pub bias: Tensor,
    /// The weights of each column by its name, `[ids or numbers, units]`.
    pub weights: IndexMap<String, Tensor>,
    /// The values of each column by its name, which the weights are multiplied with.
    pub values: IndexMap<String, LinearValues>,
}

/// The values of a column in a linear model.
#[derive(Clone, Debug)]
pub enum LinearValues {
    /// Numbers, f32 `[batch, n]`. Each has a row of weights.
    Dense(Tensor),
    /// Ids of rows of weights. A negative id has none.
    Categories(Categories),
}

/// A column of the sum.
struct Summand {
    /// Its contribution to the sums, `[batch, units]`.
    sums: Tensor,
    weights: Tensor,
    values: LinearValues,
}

/// The weighted sum of columns and a bias, f32 `[batch, 1]`. [`LinearModel`] is the form with
/// options.
#[track_caller]
pub fn linear_model(features: &Inputs, columns: impl Into<Columns>) -> Tensor {
    LinearModel::new(columns).apply(features).logits
}

impl LinearModel {
    /// A weighted sum of columns.
    pub fn new(columns: impl Into<Columns>) -> LinearModel {
        LinearModel { columns: columns.into(), units: 1, sparse_combiner: Combiner::Sum, trainable: true }
    }

    /// The number of sums, each with its own weights. By default, 1.
    pub fn units(mut self, units: usize) -> LinearModel {
        self.units = units;
        self
    }

    /// The way the weights of a row's ids are combined. By default, their sum.
    pub fn sparse_combiner(mut self, combiner: Combiner) -> LinearModel {
        self.sparse_combiner = combiner;
        self
    }

    /// Whether optimizers change weights and bias. By default, they do. (Embedding columns have
    /// their own `trainable` option.)
    pub fn trainable(mut self, trainable: bool) -> LinearModel {
        self.trainable = trainable;
        self
    }

    /// Makes the variables and the sums.
    #[track_caller]
    pub fn apply(&self, features: &Inputs) -> LinearOutput {
        let _line = features.graph().line(Location::caller(), file!());
        match self.build(features) {
            Ok(output) => output,
            Err(error) => {
                let poison = features.graph().error(error);
                LinearOutput { logits: poison.clone(), bias: poison, weights: IndexMap::new(), values: IndexMap::new() }
            }
        }
    }

    fn build(&self, features: &Inputs) -> Result<LinearOutput> {
        let columns = sorted(&self.columns)?;
        if self.units == 0 {
            return Err(Error::config("the linear model has 0 units; expected at least 1"));
        }
        let graph = features.graph();
        let _layer = graph.reopen(&layer_name(graph, "linear_model"));
        let (mut weights, mut values) = (IndexMap::new(), IndexMap::new());
        let mut sum: Option<Tensor> = None;
        for column in &columns {
            let part = self.part(column, features).map_err(|error| column.place(error))?;
            weights.insert(column.name(), part.weights);
            values.insert(column.name(), part.values);
            sum = Some(match sum {
                Some(sum) => sum + &part.sums,
                None => part.sums,
            });
        }
        let bias = self.variable(features, "bias_weights", &[self.units]);
        let logits = match sum {
            Some(sum) => sum + &bias,
            None => bias.clone(),
        };
        Ok(LinearOutput { logits, bias, weights, values })
    }

    /// Adds a column.
    fn part(&self, column: &FeatureColumn, features: &Inputs) -> Result<Summand> {
        let _scope = features.graph().reopen(&scope_name(&column.name()));
        let _about = features.graph().about(&column.name());
        let _line = features.graph().line_of_column(column.site(), file!());
        match (column.categorical(), column.dense()) {
            (Some(categorical), _) => self.categorical(categorical, features),
            (None, Some(dense)) => self.dense(dense, features),
            (None, None) => Err(Error::config(format!("{} cannot be used in a linear model", column.describe()))
                .help("use dense or categorical columns; use sequence_input_layer for sequences")),
        }
    }

    fn categorical(&self, column: &dyn CategoricalColumn, features: &Inputs) -> Result<Summand> {
        let found = column.categories(features)?;
        let weights = self.variable(features, WEIGHTS, &[column.n_buckets(), self.units]);
        let mut how = Lookup::new(self.sparse_combiner).source(column.id_source());
        if let Some(weights) = &found.weights {
            how = how.weights(weights);
        }
        let sums = weights.lookup(&found.ids, how);
        sums.means("combiner", self.sparse_combiner.tf_name());
        Ok(Summand { sums, weights, values: LinearValues::Categories(found) })
    }

    fn dense(&self, column: &dyn DenseColumn, features: &Inputs) -> Result<Summand> {
        let x = flat(column, features)?;
        let n = column.dims().iter().product();
        let weights = self.variable(features, WEIGHTS, &[n, self.units]);
        // With one number per row, a plain product is used: it is fused with the sum over all
        // columns into one pass.
        let sums = if n == 1 { &x * &weights } else { x.matmul(&weights) };
        Ok(Summand { sums, weights, values: LinearValues::Dense(x) })
    }

    fn variable(&self, features: &Inputs, name: &str, dims: &[usize]) -> Tensor {
        let role = Role::Model { trainable: self.trainable };
        features.graph().variable_with(name, DType::F32, dims, Initializer::Zeros, role)
    }
}
