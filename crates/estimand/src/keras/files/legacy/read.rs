//! Reading the legacy form.

use std::collections::{HashMap, HashSet};

use estimand_hdf5::Group;
use estimand_tensor::{Array, Error, Result};

use super::order::in_order;
use super::stored::Stored;
use super::{LAYER_NAMES, WEIGHT_NAMES, WEIGHTS, lists_layers};
use crate::keras::files::names::Names;
use crate::keras::model::{Model, ModelLayer};

impl Stored<'_> {
    /// The names of a layer's weights, in our order.
    fn names_for<'a>(&'a self, layer: &ModelLayer<'a>) -> Result<Vec<&'a str>> {
        in_order(layer, self).map_err(|error| self.place(layer, error))
    }

    /// Reads the weights of a layer, in our order.
    pub fn read_for(&self, layer: &ModelLayer<'_>) -> Result<Vec<Array>> {
        let read = |weight: &str| self.read(weight).map_err(|error| self.place(layer, error));
        self.names_for(layer)?.into_iter().map(read).collect()
    }

    fn place(&self, layer: &ModelLayer<'_>, error: Error) -> Error {
        error.context(format!("for layer `{}`, from `{}`", layer.name(), self.name))
    }
}

/// The layers of a file that have weights, in its order.
pub(in crate::keras::files) fn stored<'a>(root: &Group<'a>) -> Result<Vec<Stored<'a>>> {
    let inner;
    // A layer, too, may be called as the group is.
    let root = match lists_layers(root)? {
        true => root,
        false => {
            inner = root.group(WEIGHTS)?;
            &inner
        }
    };
    let (mut all, mut known) = (Vec::new(), Names::default());
    for name in names(root, LAYER_NAMES)? {
        let group = root.group(&name)?;
        let weights = names(&group, WEIGHT_NAMES)?;
        weights.iter().try_for_each(|weight| known.add(name.len() + weight.len()))?;
        if !weights.is_empty() {
            all.push(Stored { name, group, weights });
        }
    }
    Ok(all)
}

/// The names of all weights as variables of a model that is not known, and their paths in the file.
/// A weight inside of a model of its own also has its short name, unless two weights would have it.
pub(in crate::keras::files) fn paths(root: &Group<'_>) -> Result<Vec<(String, String)>> {
    let (mut all, mut other) = (Vec::new(), Vec::new());
    for layer in stored(root)? {
        for weight in &layer.weights {
            let path = layer.path_of(weight);
            let name = weight.strip_suffix(":0").unwrap_or(weight);
            let begins = |name: &str| name.strip_prefix(&layer.name).is_some_and(|rest| rest.starts_with('/'));
            // TF: Keras 3 writes the name of a `Sequential` before those of its layers.
            let after_model = name.match_indices('/').map(|(end, _)| &name[end + 1..]).find(|name| begins(name));
            match after_model {
                _ if begins(name) => all.push((name.to_string(), path)),
                Some(rest) => {
                    all.push((rest.to_string(), path.clone()));
                    other.push((format!("{}/{name}", layer.name), path.clone()));
                    other.push((name.to_string(), path));
                }
                None => {
                    all.push((format!("{}/{name}", layer.name), path.clone()));
                    other.push((name.to_string(), path));
                }
            }
        }
    }
    let mut n_of: HashMap<String, usize> = HashMap::new();
    for (name, _) in &other {
        *n_of.entry(name.clone()).or_default() += 1;
    }
    all.extend(other.into_iter().filter(|(name, _)| n_of[name] == 1));
    Ok(all)
}

/// The variables of a model, and the paths of their weights in the file.
pub(in crate::keras::files) fn paths_of(model: &Model, root: &Group<'_>) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for (layer, stored) in matched(model, root)? {
        let names = stored.names_for(&layer)?;
        all.extend(layer.variables().iter().cloned().zip(names.into_iter().map(|weight| stored.path_of(weight))));
    }
    Ok(all)
}

/// The weights of all layers.
pub(in crate::keras::files) fn read(model: &Model, root: &Group<'_>) -> Result<Vec<Array>> {
    let mut values = Vec::new();
    for (layer, stored) in matched(model, root)? {
        values.extend(stored.read_for(&layer)?);
    }
    Ok(values)
}

/// The layers of a model that have weights, and those of the file: by their order, as in Keras.
fn matched<'a, 'b>(model: &'a Model, root: &Group<'b>) -> Result<Vec<(ModelLayer<'a>, Stored<'b>)>> {
    let stored = stored(root)?;
    let layers: Vec<ModelLayer<'_>> =
        model.layers().into_iter().filter(|layer| !layer.variables().is_empty()).collect();
    if layers.len() != stored.len() {
        let text = format!("the file has weights of {} layers; the model has {}", stored.len(), layers.len());
        let names: Vec<&str> = stored.iter().map(|layer| layer.name.as_str()).collect();
        return Err(Error::config(text).help(format!("those of the file are {}", names.join(", "))));
    }
    Ok(layers.into_iter().zip(stored).collect())
}

/// A list of texts in an attribute. Keras splits a long one: `layer_names0`, `layer_names1`, ...
pub(in crate::keras::files) fn names(group: &Group<'_>, attribute: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    match group.find_attribute(attribute)? {
        Some(list) => texts(&list, &mut all)?,
        None => {
            for i in 0.. {
                match group.find_attribute(&format!("{attribute}{i}"))? {
                    Some(list) => texts(&list, &mut all)?,
                    None if i == 0 => return Err(Error::data(format!("{} has no `{attribute}`", group.path()))),
                    None => break,
                }
            }
        }
    }
    let mut known = HashSet::new();
    if let Some(twice) = all.iter().find(|name| !known.insert(name.as_str())) {
        let text = format!("`{attribute}` of {} has `{twice}` twice", group.path());
        return Err(Error::data(text).help("the file is damaged"));
    }
    Ok(all)
}

fn texts(list: &Array, all: &mut Vec<String>) -> Result<()> {
    // An empty list has no strings to tell their type.
    if list.is_empty() {
        return Ok(());
    }
    for text in list.strings()? {
        let text = std::str::from_utf8(text).map_err(|_| Error::data("a name in the file is not UTF-8"))?;
        all.push(text.to_string());
    }
    Ok(())
}
