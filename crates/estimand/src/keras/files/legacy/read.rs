//! Reading the legacy form.

use std::collections::HashMap;

use estimand_hdf5::Group;
use estimand_tensor::{Array, Error, Result};

use super::{LAYER_NAMES, WEIGHT_NAMES, WEIGHTS, lists_layers};
use crate::keras::model::{Model, ModelLayer};

/// A layer of a file that has weights.
pub(in crate::keras::files) struct Stored<'a> {
    pub name: String,
    group: Group<'a>,
    /// The names of its weights in the file, such as `dense/kernel:0`.
    pub weights: Vec<String>,
}

impl Stored<'_> {
    /// Reads one of the weights.
    pub fn read(&self, weight: &str) -> Result<Array> {
        self.group.dataset(weight)?.read()
    }

    /// Reads the weights of a layer, in our order.
    pub fn read_for(&self, layer: &ModelLayer<'_>) -> Result<Vec<Array>> {
        let found = in_order(layer, &self.weights)
            .and_then(|weights| weights.into_iter().map(|weight| self.read(weight)).collect::<Result<Vec<Array>>>());
        found.map_err(|e| e.context(format!("for layer `{}`, from `{}`", layer.name(), self.name)))
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
    let mut all = Vec::new();
    for name in names(root, LAYER_NAMES)? {
        let group = root.group(&name)?;
        let weights = names(&group, WEIGHT_NAMES)?;
        if !weights.is_empty() {
            all.push(Stored { name, group, weights });
        }
    }
    Ok(all)
}

/// The names of all weights as variables of a model, and their paths in the file. A weight inside
/// of a model of its own also has its short name.
pub(in crate::keras::files) fn paths(root: &Group<'_>) -> Result<Vec<(String, String)>> {
    let (mut all, mut short) = (Vec::new(), Vec::new());
    for layer in stored(root)? {
        for weight in &layer.weights {
            let path = format!("{}/{weight}", layer.group.path().trim_matches('/'));
            let name = weight.strip_suffix(":0").unwrap_or(weight);
            match name.strip_prefix(layer.name.as_str()).is_some_and(|rest| rest.starts_with('/')) {
                true => all.push((name.to_string(), path)),
                false => {
                    all.push((format!("{}/{name}", layer.name), path.clone()));
                    short.push((name.to_string(), path));
                }
            }
        }
    }
    all.extend(short);
    Ok(all)
}

/// The weights of all layers. Layers are matched by their order, as Keras does.
pub(in crate::keras::files) fn read(model: &Model, root: &Group<'_>) -> Result<Vec<Array>> {
    let stored = stored(root)?;
    let layers: Vec<ModelLayer<'_>> =
        model.layers().into_iter().filter(|layer| !layer.variables().is_empty()).collect();
    if layers.len() != stored.len() {
        let text = format!("the file has weights of {} layers; the model has {}", stored.len(), layers.len());
        let names: Vec<&str> = stored.iter().map(|layer| layer.name.as_str()).collect();
        return Err(Error::config(text).help(format!("those of the file are {}", names.join(", "))));
    }
    let mut values = Vec::new();
    for (layer, stored) in layers.iter().zip(&stored) {
        values.extend(stored.read_for(layer)?);
    }
    Ok(values)
}

/// The names of a layer's weights in our order. TF: a model inside lists the weights that are not
/// trained last, so they are found by name where the names are the same.
fn in_order<'a>(layer: &ModelLayer<'_>, weights: &'a [String]) -> Result<Vec<&'a str>> {
    let variables = layer.variables();
    if variables.len() != weights.len() {
        let text = format!("the file has {} weights; the layer has {}", weights.len(), variables.len());
        return Err(Error::config(text).help(format!("those of the file are {}", weights.join(", "))));
    }
    let by_name: HashMap<&str, &str> =
        weights.iter().map(|name| (name.strip_suffix(":0").unwrap_or(name), name.as_str())).collect();
    let short = |variable: &str| variable.split_once('/').map_or(variable, |(_, rest)| rest).to_string();
    let found = |variable: &String| by_name.get(short(variable).as_str()).copied();
    let all: Option<Vec<&str>> = variables.iter().map(found).collect();
    Ok(all.unwrap_or_else(|| weights.iter().map(String::as_str).collect()))
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
