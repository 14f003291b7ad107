//! Errors of models that ONNX cannot express.

use estimand_graph::{Body, NodeId};
use estimand_tensor::{Error, Result};

use crate::node::NodeWriter;

/// Adds the place of an error: the node, its op, and the column that made it.
pub(crate) fn in_node(error: Error, body: &Body, id: NodeId) -> Error {
    let node = body.node(id);
    let column = body.column_values().into_iter().find(|value| value.value.node == id);
    let of = column.map_or_else(String::new, |value| {
        let inputs: Vec<String> = value.inputs.iter().map(|(what, name)| format!("{what} `{name}`")).collect();
        format!(" of column `{}` ({})", value.column, inputs.join(", "))
    });
    error.context(format!("in node `{}` ({}){of}", node.name, node.op.name())).at_unless_placed(node.site)
}

/// The error of an op that has no counterpart in ONNX.
pub(crate) fn no_counterpart<T>(at: &NodeWriter<'_, '_, '_, '_>, why: &str) -> Result<T> {
    Err(Error::unsupported(format!("ONNX has no counterpart of {}: {why}", at.node.op.name()))
        .help("leave the output that needs it out of the export, or export the model with export_saved_model"))
}

/// The error of a hash. Only TensorFlow has its hash functions.
pub(crate) fn hashed<T>(n_buckets: i64) -> Result<T> {
    let text = format!("values are hashed to {n_buckets} buckets with TensorFlow's hash, which ONNX does not have");
    Err(Error::unsupported(text).help(
        "there are three choices: let callers compute the ids, with categorical_column_with_identity in place of the \
         hash; list the terms, with categorical_column_with_vocabulary_list; or keep the hash and export the model \
         with export_saved_model",
    ))
}
