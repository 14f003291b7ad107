//! `input_layer` and `dense_features`: concatenate dense columns into the input of a network.

use std::panic::Location;

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::assembly::{layer_name, scope_name, sorted};
use super::feature::rows_of;
use super::{Columns, DenseColumn, FeatureColumn};
use crate::inputs::Inputs;

/// Concatenates the values of dense columns, f32 `[batch, n]`. Columns are sorted by the bytes of
/// their names (capital letters first), and each is flattened.
///
/// Variables: `input_layer/<column>/embedding_weights`, inside the open scope. A second layer in
/// the same scope is `input_layer_1`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::Inputs;
/// use estimand_nn::column::{categorical_column_with_hash_bucket, embedding_column, input_layer, make_parse_example_spec, numeric_column};
///
/// let words = categorical_column_with_hash_bucket("words", 100);
/// let columns = [numeric_column("age").into(), embedding_column(&words, 4).into()];
/// let g = Graph::new();
/// let features = Inputs::new(&g, "feature", &make_parse_example_spec(&columns)?);
/// assert_eq!(input_layer(&features, &columns).shape().dims()[1], 5.into());
/// assert!(g.body().variables().find("input_layer/words_embedding/embedding_weights").is_ok());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn input_layer(features: &Inputs, columns: impl Into<Columns>) -> Tensor {
    made(features, columns.into(), "input_layer", Location::caller())
}

/// Computes what [`input_layer`] does, with the names of Keras' `DenseFeatures`: variables are
/// `dense_features/<column>/embedding_weights`.
#[track_caller]
pub fn dense_features(features: &Inputs, columns: impl Into<Columns>) -> Tensor {
    made(features, columns.into(), "dense_features", Location::caller())
}

/// A layer of a kind, or its error.
fn made(features: &Inputs, columns: Columns, kind: &str, site: &'static Location<'static>) -> Tensor {
    let graph = features.graph();
    let _line = graph.line(site, file!());
    match sorted(columns).and_then(|columns| tensors(features, &columns, kind)) {
        Ok(tensors) if tensors.len() == 1 => tensors[0].clone(),
        Ok(tensors) => Tensor::concat(&tensors.iter().collect::<Vec<_>>(), 1),
        Err(error) => graph.error(error),
    }
}

fn tensors(features: &Inputs, columns: &[FeatureColumn], kind: &str) -> Result<Vec<Tensor>> {
    let graph = features.graph();
    let _layer = graph.reopen(&layer_name(graph, kind));
    let tensor = |column: &FeatureColumn| {
        let dense = column.dense().ok_or_else(|| not_dense(column))?;
        let _scope = graph.reopen(&scope_name(&column.name()));
        let _about = graph.about(&column.name());
        let _line = graph.line_of_column(column.site(), file!());
        flat(dense, features)
    };
    columns.iter().map(|column| tensor(column).map_err(|error| column.place(error))).collect()
}

/// A dense column's values, `[batch, n]`.
pub(super) fn flat(dense: &dyn DenseColumn, features: &Inputs) -> Result<Tensor> {
    let tensor = dense.tensor(features)?;
    let dims = dense.dims();
    Ok(if dims.len() == 1 { tensor } else { tensor.reshape(rows_of(&[dims.iter().product()])) })
}

fn not_dense(column: &FeatureColumn) -> Error {
    let error = Error::config(format!("{} is not dense, so input_layer cannot use it", column.describe()));
    if column.categorical().is_some() {
        error.help("wrap it in indicator_column or embedding_column")
    } else if column.sequence().is_some() || column.categorical_sequence().is_some() {
        error.help("use sequence_input_layer for sequences")
    } else {
        error
    }
}
