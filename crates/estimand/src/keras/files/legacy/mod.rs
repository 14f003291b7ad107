//! The legacy form of models and weights in HDF5: groups by the names of layers, in the order of
//! the attribute `layer_names`; the file of a whole model has them in its group `model_weights`.

mod order;
mod read;
mod stored;
mod write;

use std::path::Path;

use estimand_hdf5::Group;
use estimand_tensor::Result;

pub(super) use read::{names, paths, paths_of, read, stored};
pub(super) use stored::Stored;
pub(super) use write::{add_names, add_texts, add_weights};

/// The group of weights in the file of a whole model.
pub(super) const WEIGHTS: &str = "model_weights";
/// The attribute of the group of weights that lists the layers.
const LAYER_NAMES: &str = "layer_names";
/// The attribute of a group that lists its weights.
pub(super) const WEIGHT_NAMES: &str = "weight_names";
/// The group of the weights that belong to no layer.
const TOP_LEVEL: &str = "top_level_model_weights";
/// The group of the optimizer's variables.
pub(super) const OPTIMIZER: &str = "optimizer_weights";

/// The attributes that say who wrote a file.
pub(super) const WRITER: [(&str, &str); 2] = [("keras_version", "2.15.0"), ("backend", "tensorflow")];

/// Whether a file has this form.
pub(super) fn is_legacy(root: &Group<'_>) -> Result<bool> {
    Ok(lists_layers(root)? || root.contains(WEIGHTS))
}

/// Whether a group holds the weights of layers itself.
fn lists_layers(group: &Group<'_>) -> Result<bool> {
    let has = |name: &str| group.find_attribute(name).map(|found| found.is_some());
    Ok(has(LAYER_NAMES)? || has(&format!("{LAYER_NAMES}0"))?)
}

/// Whether Keras writes this form to a file of this name.
pub(super) fn is_legacy_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "h5" || extension == "hdf5") && !has_new_weights(path)
}

/// Whether Keras writes weights in its own form to a file of this name.
pub(super) fn has_new_weights(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".weights.h5")
}
