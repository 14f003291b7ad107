//! The objects of a file that is being built.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use estimand_tensor::{Error, Result};

use super::messages::{self, Value};

/// The largest number of groups on the way to an object; readers accept no more.
const MAX_DEPTH: usize = 256;

/// A group or a dataset with its attributes, by name.
#[derive(Default)]
pub(super) struct Node {
    pub attributes: BTreeMap<String, Value>,
    pub kind: Kind,
}

/// The kind of a node.
pub(super) enum Kind {
    Group(BTreeMap<String, Node>),
    Dataset(Value),
}

impl Default for Kind {
    fn default() -> Kind {
        Kind::Group(BTreeMap::new())
    }
}

/// All nodes.
#[derive(Default)]
pub(super) struct Tree {
    pub root: Node,
}

impl Tree {
    /// The children of the group at a path, which is added if it does not exist.
    pub fn group(&mut self, path: &str) -> Result<&mut BTreeMap<String, Node>> {
        let names = names(path)?;
        let mut node = &mut self.root;
        for name in names {
            let Kind::Group(children) = &mut node.kind else { return Err(inside_dataset(path)) };
            node = children.entry(name.to_string()).or_default();
        }
        match &mut node.kind {
            Kind::Group(children) => Ok(children),
            Kind::Dataset(_) => Err(Error::config(format!("`{path}` is a dataset, expected a group or nothing"))),
        }
    }

    pub fn dataset(&mut self, path: &str, value: Value) -> Result<()> {
        let names = names(path)?;
        let (&name, parents) =
            names.split_last().ok_or_else(|| Error::config("a dataset needs a name; the path is empty"))?;
        let children = self.group(&parents.join("/"))?;
        match children.entry(name.to_string()) {
            Entry::Vacant(entry) => {
                entry.insert(Node { attributes: BTreeMap::new(), kind: Kind::Dataset(value) });
                Ok(())
            }
            Entry::Occupied(_) => Err(Error::config(format!("`{path}` exists already"))),
        }
    }

    pub fn attribute(&mut self, path: &str, name: &str, value: Value) -> Result<()> {
        if name.is_empty() || name.contains('\0') {
            return Err(Error::config(format!("`{}` is no name of an attribute", name.escape_debug())));
        }
        messages::check_attribute(path, name, &value)?;
        let mut node = &mut self.root;
        for part in names(path)? {
            let child = match &mut node.kind {
                Kind::Group(children) => children.get_mut(part),
                Kind::Dataset(_) => return Err(inside_dataset(path)),
            };
            node = child.ok_or_else(|| {
                let message = format!("there is no `{path}` to add the attribute `{name}` to");
                Error::config(message).help("add the group or the dataset first")
            })?;
        }
        node.attributes.insert(name.to_string(), value);
        Ok(())
    }
}

/// The names in a path. Slashes at the ends and doubled ones do not count, as in h5py.
fn names(path: &str) -> Result<Vec<&str>> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    if let Some(name) = names.iter().find(|name| **name == "." || name.contains('\0')) {
        let message = format!("`{}` in the path `{}` is no name", name.escape_debug(), path.escape_debug());
        return Err(Error::config(message));
    }
    match names.len() {
        0..=MAX_DEPTH => Ok(names),
        n => Err(Error::config(format!("a path of {n} names; at most {MAX_DEPTH} are supported"))),
    }
}

fn inside_dataset(path: &str) -> Error {
    Error::config(format!("the path `{path}` leads through a dataset"))
}
