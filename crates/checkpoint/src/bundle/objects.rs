//! Object-based checkpoints, as `tf.train.Checkpoint` and Keras write them: tensors are stored
//! under the paths of their objects, and a table holds the names of the variables.

use std::collections::BTreeMap;

use estimand_tensor::{Error, Result};
use estimand_wire::Message;
use estimand_wire::bundle::TrackableObjectGraph;

use super::read::BundleReader;

/// The tensor that holds the table.
const OBJECT_GRAPH: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

impl BundleReader {
    /// Maps the name of each variable to the name of its tensor, in an object-based checkpoint.
    /// Empty if tensors are stored under the names of variables.
    pub fn object_keys(&self) -> Result<BTreeMap<String, String>> {
        if !self.contains(OBJECT_GRAPH) {
            return Ok(BTreeMap::new());
        }
        let table = self.read(OBJECT_GRAPH)?;
        let bytes = table.strings()?.next().unwrap_or_default();
        let graph = TrackableObjectGraph::decode(bytes)
            .map_err(|e| Error::checkpoint(self.prefix(), format!("`{OBJECT_GRAPH}` is damaged: {e}")))?;
        let values = graph.nodes.into_iter().flat_map(|node| node.attributes);
        let named = values.filter(|value| !value.full_name.is_empty() && self.contains(&value.checkpoint_key));
        Ok(named.map(|value| (value.full_name, value.checkpoint_key)).collect())
    }
}
