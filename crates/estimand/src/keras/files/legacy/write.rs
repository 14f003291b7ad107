//! Writing the legacy form, as tf.keras does.

use estimand_hdf5::Writer;
use estimand_tensor::{Array, Error, Result};

use super::order::as_listed;
use super::{LAYER_NAMES, TOP_LEVEL, WEIGHT_NAMES};
use crate::keras::model::{Model, ModelLayer};

/// The number of bytes of names that Keras puts into one attribute.
const MAX_NAMES: usize = 64_512;

/// Adds the weights of all layers to a group.
pub(in crate::keras::files) fn add_weights(model: &Model, group: &str, writer: &mut Writer) -> Result<()> {
    writer.group(group)?;
    let layers = model.layers();
    let names: Vec<String> = layers.iter().map(|layer| layer.name().to_string()).collect();
    if names.iter().any(|name| name == TOP_LEVEL) {
        let text = format!("a layer is called `{TOP_LEVEL}`, as a group of every .h5 file");
        return Err(Error::config(text).help("rename the layer, or save to .keras or .weights.h5"));
    }
    add_names(group, LAYER_NAMES, &names, writer)?;
    for layer in &layers {
        let path = format!("{group}/{}", layer.name());
        writer.group(&path)?;
        let mut stored = Vec::new();
        for variable in as_listed(layer) {
            let name = name_in_file(layer, variable);
            writer.dataset(&format!("{path}/{name}"), &model.weight(variable)?)?;
            stored.push(name);
        }
        add_names(&path, WEIGHT_NAMES, &stored, writer)?;
    }
    // There are no such weights, but Keras reads the list.
    let path = format!("{group}/{TOP_LEVEL}");
    writer.group(&path)?;
    add_names(&path, WEIGHT_NAMES, &[], writer)
}

/// `dense/kernel:0`; the weights of a model inside have names without that of the model.
fn name_in_file(layer: &ModelLayer<'_>, variable: &str) -> String {
    let inside = variable.strip_prefix(layer.name()).and_then(|rest| rest.strip_prefix('/'));
    format!("{}:0", inside.filter(|_| layer.is_model()).unwrap_or(variable))
}

/// Adds a list of names to a group, in several attributes if it is long: `layer_names0`, ...
pub(in crate::keras::files) fn add_names(
    group: &str,
    attribute: &str,
    names: &[String],
    writer: &mut Writer,
) -> Result<()> {
    let width = names.iter().map(String::len).max().unwrap_or(0).max(1);
    let parts: Vec<&[String]> = names.chunks((MAX_NAMES / width).max(1)).collect();
    for (i, &part) in parts.iter().enumerate() {
        let name = if parts.len() == 1 { attribute.to_string() } else { format!("{attribute}{i}") };
        writer.fixed_attribute(group, &name, &Array::from_strings([part.len()], part.to_vec())?)?;
    }
    match parts.is_empty() {
        // As NumPy makes an array of no names.
        true => writer.attribute(group, attribute, &Array::from_vec([0], Vec::<f64>::new())?),
        false => Ok(()),
    }
}

/// Adds attributes that are texts.
pub(in crate::keras::files) fn add_texts(group: &str, texts: &[(&str, &str)], writer: &mut Writer) -> Result<()> {
    writer.group(group)?;
    texts.iter().try_for_each(|(name, text)| writer.attribute(group, name, &Array::from_strings([], [*text])?))
}
