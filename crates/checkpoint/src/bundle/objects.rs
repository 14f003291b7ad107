//! Object-based checkpoints, as `tf.train.Checkpoint` and Keras write them: tensors are stored
//! under the paths of their objects, and a table holds the objects and the names of the variables.

use std::collections::BTreeMap;

use estimand_tensor::{Error, Result};
use estimand_wire::Message;
use estimand_wire::bundle::{TrackableObject, TrackableObjectGraph};

use super::read::BundleReader;

/// The tensor that holds the table.
const OBJECT_GRAPH: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The objects of a checkpoint, by number. The first is the root, which holds the others.
#[derive(Clone, Debug)]
pub struct Objects(Vec<TrackableObject>);

impl Objects {
    /// The number of the root.
    pub const ROOT: usize = 0;

    /// The objects that one holds, with the names of its attributes.
    pub fn children(&self, object: usize) -> impl Iterator<Item = (&str, usize)> {
        let children = self.0.get(object).map_or(&[][..], |object| &object.children);
        let known = |id: i32| usize::try_from(id).ok().filter(|id| *id < self.0.len());
        children.iter().filter_map(move |child| Some((child.local_name.as_str(), known(child.node_id)?)))
    }

    /// The object at the end of a path of attributes, such as `["layer", "cell", "kernel"]`.
    pub fn find<'a>(&self, from: usize, path: impl IntoIterator<Item = &'a str>) -> Option<usize> {
        path.into_iter().try_fold(from, |object, name| {
            self.children(object).find(|(known, _)| *known == name).map(|(_, child)| child)
        })
    }

    /// The name of the tensor that holds the value of a variable.
    pub fn key(&self, object: usize) -> Option<&str> {
        let mut attributes = self.0.get(object)?.attributes.iter();
        attributes.find(|value| value.name == "VARIABLE_VALUE").map(|value| value.checkpoint_key.as_str())
    }
}

impl BundleReader {
    /// The objects of an object-based checkpoint. None if tensors are stored under the names of
    /// variables.
    pub fn objects(&self) -> Result<Option<Objects>> {
        if !self.contains(OBJECT_GRAPH) {
            return Ok(None);
        }
        let table = self.read(OBJECT_GRAPH)?;
        let bytes = table.strings()?.next().unwrap_or_default();
        let graph = TrackableObjectGraph::decode(bytes)
            .map_err(|e| Error::checkpoint(self.prefix(), format!("`{OBJECT_GRAPH}` is damaged: {e}")))?;
        Ok(Some(Objects(graph.nodes)))
    }

    /// Maps the name of each variable to the name of its tensor, in an object-based checkpoint.
    /// Empty if tensors are stored under the names of variables.
    pub fn object_keys(&self) -> Result<BTreeMap<String, String>> {
        let objects = self.objects()?.map_or(Vec::new(), |objects| objects.0);
        let values = objects.into_iter().flat_map(|node| node.attributes);
        let named = values.filter(|value| !value.full_name.is_empty() && self.contains(&value.checkpoint_key));
        Ok(named.map(|value| (value.full_name, value.checkpoint_key)).collect())
    }
}
