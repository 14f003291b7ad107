//! `sequence_input_layer` and `sequence_features`: concatenate sequence columns into the input of a
//! recurrent network.

use std::panic::Location;

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{DType, Error, Result};

use super::assembly::{layer_name, scope_name, sorted};
use super::{Columns, Extent, FeatureColumn, SequenceColumn};
use crate::inputs::Inputs;

/// Concatenates the values of sequence columns, f32 `[batch, steps, n]`, sorted by the bytes of
/// their names. Also returns the length of each sequence, i64 `[batch]`. Shorter sequences are
/// padded with zeros, or with the column's own default.
///
/// Variables: `sequence_input_layer/<column>/embedding_weights`, inside the open scope. Columns
/// whose sequences differ in length are an error at run time.
///
/// ```
/// use estimand_engine::Session;
/// use estimand_graph::Graph;
/// use estimand_nn::Inputs;
/// use estimand_nn::column::{make_parse_example_spec, sequence_input_layer, sequence_numeric_column};
/// use estimand_tensor::{Array, Ragged};
///
/// let columns = [sequence_numeric_column("x").into()];
/// let g = Graph::new();
/// let features = Inputs::new(&g, "feature", &make_parse_example_spec(&columns)?);
/// let (x, lengths) = sequence_input_layer(&features, &columns);
/// let fed = Ragged::new(Array::from([1f32, 2.0, 3.0]), [0, 2, 3])?;
/// let out = Session::new(&g)?.run(&[&x, &lengths], &features.ragged("x").feed(&fed))?;
/// assert_eq!(out[0].as_slice::<f32>()?, [1.0, 2.0, 3.0, 0.0]);
/// assert_eq!(out[1].as_slice::<i64>()?, [2, 1]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn sequence_input_layer(features: &Inputs, columns: impl Into<Columns>) -> (Tensor, Tensor) {
    made(features, columns.into(), "sequence_input_layer", Location::caller())
}

/// Computes what [`sequence_input_layer`] does, with the names of Keras' `SequenceFeatures`:
/// variables are `sequence_features/<column>/embedding_weights`.
#[track_caller]
pub fn sequence_features(features: &Inputs, columns: impl Into<Columns>) -> (Tensor, Tensor) {
    made(features, columns.into(), "sequence_features", Location::caller())
}

/// A layer of a kind, or its error.
fn made(features: &Inputs, columns: Columns, kind: &str, site: &'static Location<'static>) -> (Tensor, Tensor) {
    let _line = features.graph().line(site, file!());
    match build(features, columns, kind) {
        Ok(made) => made,
        Err(error) => {
            let poison = features.graph().error(error);
            (poison.clone(), poison)
        }
    }
}

fn build(features: &Inputs, columns: Columns, kind: &str) -> Result<(Tensor, Tensor)> {
    let columns = sorted(columns)?;
    let graph = features.graph();
    let _layer = graph.reopen(&layer_name(graph, kind));
    let mut sides = Vec::with_capacity(columns.len());
    let mut all: Option<Extent> = None;
    for column in &columns {
        let _line = graph.line_of_column(column.site(), file!());
        let side = column.sequence().ok_or_else(|| column.place(not_a_sequence(column)))?;
        let extent = side.extent(features).map_err(|error| column.place(error))?;
        sides.push((column, side));
        all = Some(match all {
            None => extent,
            Some(all) => Extent {
                lengths: all.lengths.agree(&extent.lengths, "the lengths of sequences"),
                n_steps: all.n_steps.maximum(&extent.n_steps),
            },
        });
    }
    let Some(Extent { lengths, n_steps }) = all else { return Err(Error::internal("a sorted list is not empty")) };
    let part = |(column, side): &(&FeatureColumn, &dyn SequenceColumn)| {
        let _scope = graph.reopen(&scope_name(&column.name()));
        let _about = graph.about(&column.name());
        let _line = graph.line_of_column(column.site(), file!());
        let tensor = side.tensor(features, &n_steps).map_err(|error| column.place(error))?;
        let dims = side.dims();
        if dims.len() == 1 {
            return Ok(tensor);
        }
        let shape = tensor.shape().dims().iter().take(2).copied();
        let shape: estimand_tensor::Shape = shape.chain([dims.iter().product::<usize>().into()]).collect();
        Ok(tensor.reshape_as(shape))
    };
    let parts = sides.iter().map(part).collect::<Result<Vec<Tensor>>>()?;
    Ok((Tensor::concat(&parts.iter().collect::<Vec<_>>(), 2), lengths))
}

fn not_a_sequence(column: &FeatureColumn) -> Error {
    let error =
        Error::config(format!("{} is not a dense sequence, so sequence_input_layer cannot use it", column.describe()));
    match column.categorical_sequence() {
        Some(_) => error.help("wrap it in indicator_column or embedding_column"),
        None => error.help(
            "use sequence_numeric_column or a sequence_categorical_column_with_*; use input_layer for other columns",
        ),
    }
}

impl Extent {
    /// The lengths of ragged rows, where a step takes `n` values.
    pub(super) fn of_rows(rows: &RaggedTensor, n: usize) -> Extent {
        Extent::of_lengths(steps(&rows.row_lengths(), n))
    }

    /// The lengths of dense rows `[batch, values]`. `present` marks the values that exist; a
    /// sequence ends with its last one.
    pub(super) fn of_dense(present: &Tensor, n: usize) -> Extent {
        let width = present.shape().dims().get(1).copied().unwrap_or(1.into());
        let places = present.graph().range(width, DType::I64) + 1;
        let last = (present.cast(DType::I64) * &places).max_axes([1]);
        Extent { lengths: steps(&last, n), n_steps: steps(&present.size(1), n) }
    }

    fn of_lengths(lengths: Tensor) -> Extent {
        // A batch without rows has no longest row.
        let n_steps = lengths.max().maximum(0);
        Extent { lengths, n_steps }
    }
}

/// Converts numbers of values to numbers of steps of `n` values, rounded up.
fn steps(values: &Tensor, n: usize) -> Tensor {
    if n == 1 { values.clone() } else { (values + (n as i64 - 1)).floor_div(n as i64) }
}
