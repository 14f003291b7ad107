//! Maps the variables of a graph to tensors of the checkpoint.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use estimand_checkpoint::BundleReader;
use estimand_graph::{VarId, Variables};
use estimand_tensor::{Array, DType, Error, Result};
use indexmap::IndexMap;

use super::nodes::Nodes;

/// The checkpoint of a graph.
pub(super) struct Checkpoint {
    prefix: PathBuf,
    /// A graph without variables has no checkpoint, so the error is returned only when a variable
    /// is read.
    reader: Result<BundleReader>,
    keys: HashMap<String, Key>,
    /// The names of tensors by the names of variables, as the objects of the checkpoint tell. Read
    /// when a variable is not found in another way.
    objects: OnceCell<Result<BTreeMap<String, String>>>,
}

/// The location of a variable in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    name: String,
    /// The slice of a partitioned variable: start and size on each axis.
    part: Option<Vec<(usize, usize)>>,
}

impl Checkpoint {
    /// Opens the checkpoint of a model's folder, with the names under which its nodes restore
    /// variables.
    pub(super) fn of(folder: &Path, nodes: &Nodes<'_>) -> Checkpoint {
        let prefix = folder.join("variables").join("variables");
        Checkpoint { reader: BundleReader::open(&prefix), prefix, keys: keys(nodes), objects: OnceCell::new() }
    }

    fn reader(&self) -> Result<&BundleReader> {
        self.reader.as_ref().map_err(Clone::clone)
    }

    /// The location of a variable: that of the node that restores it, or that of its own name, or
    /// that of the object with its name.
    fn key(&self, node: &str, shared_name: &str) -> Result<Key> {
        if let Some(key) = self.keys.get(node) {
            return Ok(key.clone());
        }
        let mut name = shared_name.to_string();
        let reader = self.reader()?;
        if !reader.contains(&name) {
            let objects = self.objects.get_or_init(|| reader.object_keys()).as_ref().map_err(Clone::clone)?;
            name = objects.get(&name).cloned().unwrap_or(name);
        }
        Ok(Key { name, part: None })
    }

    /// A tensor by its name.
    pub(super) fn saved(&self, name: &str) -> Result<Array> {
        self.reader()?.read(name)
    }

    /// Dtype and sizes of the variable of a node.
    pub(super) fn spec(&self, node: &str, shared_name: &str) -> Result<(DType, Vec<usize>)> {
        let key = self.key(node, shared_name)?;
        let (dtype, dims) = self.reader()?.spec(&key.name)?;
        match key.part {
            None => Ok((dtype, dims.to_vec())),
            Some(part) => Ok((dtype, part.iter().map(|&(_, size)| size).collect())),
        }
    }

    /// The saved values of variables, by their names in our graph. Values that another signature
    /// has read are in `read`, and their memory is shared.
    pub(super) fn values(
        &self,
        nodes: &[(String, VarId)],
        variables: &Variables,
        read: &mut ReadValues,
    ) -> Result<IndexMap<String, Array>> {
        let mut values = IndexMap::new();
        for (node, id) in nodes {
            let name = &variables.spec(*id).name;
            let key = self.key(node, name)?;
            let value = match read.get(&key) {
                Some(value) => value.clone(),
                None => {
                    let value = self.read(name, &key)?;
                    read.insert(key, value.clone());
                    value
                }
            };
            values.insert(name.clone(), value);
        }
        Ok(values)
    }

    fn read(&self, name: &str, key: &Key) -> Result<Array> {
        let value = self.reader()?.read(&key.name)?;
        match &key.part {
            None => Ok(value),
            Some(part) => cut_out(&value, part).map_err(|e| {
                Error::checkpoint(&self.prefix, format!("cannot read variable `{name}`, a part of `{}`: {e}", key.name))
            }),
        }
    }
}

/// The values that signatures of a model have read, by their location in the checkpoint.
pub(super) type ReadValues = HashMap<Key, Array>;

/// Finds the tensor that each variable is restored from: `Assign(variable, RestoreV2(file, names,
/// slices):i)`.
///
/// Nodes of an unusual form are skipped: the default key is then the variable's own name.
fn keys(nodes: &Nodes<'_>) -> HashMap<String, Key> {
    let mut keys = HashMap::new();
    let mut lists = Lists::new();
    for (_, def) in nodes.iter().filter(|(_, def)| matches!(def.op.as_str(), "AssignVariableOp" | "Assign")) {
        if let Some((variable, key)) = restored(nodes, &def.input, &mut lists) {
            keys.insert(variable, key);
        }
    }
    keys
}

/// Lists of strings by the node that holds them. One list names all variables of a graph.
type Lists = HashMap<usize, Option<Vec<String>>>;

fn restored(nodes: &Nodes<'_>, inputs: &[String], lists: &mut Lists) -> Option<(String, Key)> {
    let [variable, value, ..] = inputs else { return None };
    let variable = nodes.def(nodes.get(variable)?.node).name.clone();
    let mut value = nodes.get(value)?;
    if nodes.def(value.node).op == "Identity" {
        value = *nodes.inputs(value.node).ok()?.first()?;
    }
    let restore = nodes.def(value.node);
    if restore.op != "RestoreV2" {
        return None;
    }
    let inputs = nodes.inputs(value.node).ok()?;
    let mut text = |i: usize| -> Option<String> {
        let node = inputs.get(i)?.node;
        let list = lists.entry(node).or_insert_with(|| {
            let def = nodes.def(node);
            let list = def.attr.get("value")?.tensor()?.to_array().ok().filter(|_| def.op == "Const")?;
            Some(list.strings().ok()?.map(|text| String::from_utf8_lossy(text).into_owned()).collect())
        });
        list.as_ref()?.get(value.output).cloned()
    };
    let (name, slice) = (text(1)?, text(2)?);
    let part = match slice.is_empty() {
        true => None,
        false => Some(parse_slice(&slice)?),
    };
    Some((variable, Key { name, part }))
}

/// Parses `"10 3 0,5:0,3"`: the sizes of the whole variable, then start and size on each axis; `-`
/// stands for a whole axis.
fn parse_slice(text: &str) -> Option<Vec<(usize, usize)>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (ranges, sizes) = words.split_last()?;
    let ranges: Vec<&str> = ranges.split(':').collect();
    if ranges.len() != sizes.len() {
        return None;
    }
    let part = |(range, size): (&&str, &&str)| match range.split_once(',') {
        None if *range == "-" => Some((0, size.parse().ok()?)),
        Some((first, size)) => Some((first.parse().ok()?, size.parse().ok()?)),
        None => None,
    };
    ranges.iter().zip(sizes).map(part).collect()
}

/// A slice of an array.
fn cut_out(whole: &Array, part: &[(usize, usize)]) -> Result<Array> {
    let inside = |(&(first, size), &n): (&(usize, usize), &usize)| first.checked_add(size).is_some_and(|end| end <= n);
    if part.len() != whole.rank() || !part.iter().zip(whole.dims()).all(inside) {
        return Err(Error::shape(format!("the part {part:?} is not inside {:?}", whole.dims())));
    }
    let Some((&(first, size), rest)) = part.split_first() else { return Ok(whole.clone()) };
    let rows = whole.rows(first..first + size)?;
    // Variables are usually partitioned along their first axis.
    if rest.iter().zip(&whole.dims()[1..]).all(|(&(first, size), &n)| first == 0 && size == n) {
        return Ok(rows);
    }
    Err(Error::unsupported(format!("the part {part:?} of {:?} does not consist of whole rows", whole.dims())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_variables() {
        assert_eq!(parse_slice("10 3 0,5:0,3"), Some(vec![(0, 5), (0, 3)]));
        assert_eq!(parse_slice("10 3 5,5:-"), Some(vec![(5, 5), (0, 3)]));
        assert_eq!(parse_slice("10 3 5,5"), None);
        assert_eq!(parse_slice(""), None);
        let whole = Array::from_vec([3, 2], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(cut_out(&whole, &[(1, 2), (0, 2)]).unwrap().as_slice::<f32>().unwrap(), [3.0, 4.0, 5.0, 6.0]);
        assert!(cut_out(&whole, &[(2, 2), (0, 2)]).is_err());
        assert!(cut_out(&whole, &[(0, 3), (0, 1)]).is_err());
    }
}
