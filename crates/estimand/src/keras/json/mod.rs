//! The architecture of models as JSON, as Keras 2 and Keras 3 write and read it.
//!
//! `read` makes models, `calls` finds the values that layers are called with, `write` is the way
//! back, and `versions` says what layers have in one version alone.

mod calls;
mod masks;
mod read;
mod versions;
mod write;

use estimand_graph::Graph;
use estimand_nn::config::{Json, MAX_SIZE, Node};
use estimand_tensor::{Dim, Result, Shape};

#[cfg(feature = "keras_files")]
pub(super) use read::model_from_document;
pub use read::model_from_json;
pub use write::KerasVersion;

/// A shape with its batch axis, `[null, 28, 28, 1]`. The size of the batch itself is left open.
fn read_shape(node: &Node<'_>) -> Result<Shape> {
    let axes = node.elements()?;
    let Some((_, rest)) = axes.split_first() else { return Err(node.expected("a shape with a batch axis")) };
    let size = |axis: &Node<'_>| match axis.value() {
        Json::Null => Ok(Graph::ANY),
        value => {
            let size = value.as_u64().and_then(|size| usize::try_from(size).ok()).filter(|&size| size <= MAX_SIZE);
            size.map(Dim::Known).ok_or_else(|| axis.expected(&format!("a size or null, with sizes up to {MAX_SIZE}")))
        }
    };
    rest.iter().map(size).collect()
}

fn write_shape(shape: &Shape) -> Json {
    let size = |dim: &Dim| dim.known().map_or(Json::Null, Json::from);
    Json::Array(shape.dims().iter().map(size).collect())
}
