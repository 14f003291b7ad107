//! Weights in files: checkpoints of TensorFlow and, with the feature `keras_files`, HDF5.

use std::path::Path;

use estimand_checkpoint::{BundleReader, BundleWriter, Objects};
use estimand_tensor::{Array, Error, Limits, Result};

use super::json::KerasVersion;
use super::model::Model;
use super::places;

/// Whether a path is that of a file of Keras.
pub(crate) fn is_hdf5(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["h5", "hdf5", "keras"].iter().any(|known| extension == *known))
}

impl Model {
    /// Writes the weights to a checkpoint of TensorFlow: `path` is the common part of its two
    /// files' names. Folders are made as needed.
    ///
    /// With the feature `keras_files`, a path that ends with `.weights.h5` becomes a file of Keras.
    pub fn save_weights(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "make the folder", &e))?;
        }
        if is_hdf5(path) {
            return self.save_hdf5(path);
        }
        let mut writer = BundleWriter::create(path)?;
        // A bundle is sorted by name.
        let mut names: Vec<&str> = self.weight_names().collect();
        names.sort_unstable();
        for name in names {
            writer.add(name, &self.weights.read(name)?)?;
        }
        writer.finish()
    }

    /// Reads the weights that [`save_weights`](Model::save_weights) wrote. Nothing changes unless
    /// all are there and fit.
    ///
    /// Checkpoints of tf.keras are read too: those of its `save_weights`, `ModelCheckpoint` and
    /// `tf.train.Checkpoint`, and the `variables/variables` of a SavedModel. Their layers are found
    /// by order, whatever they are called.
    ///
    /// With the feature `keras_files`, also those of Keras 2 and Keras 3: `.weights.h5`, `.h5` and
    /// `.keras`.
    pub fn load_weights(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.load_weights_within(path, &Limits::default())
    }

    /// Reads weights as [`load_weights`](Model::load_weights) does, with limits of one's own.
    pub fn load_weights_within(&mut self, path: impl AsRef<Path>, limits: &Limits) -> Result<()> {
        let path = path.as_ref();
        if is_hdf5(path) {
            return self.load_hdf5(path, limits);
        }
        let reader = BundleReader::open_within(path, limits)?;
        let values = match reader.objects()? {
            Some(objects) => self.read_objects(path, &reader, &objects)?,
            None => self.weight_names().map(|name| reader.read(name)).collect::<Result<Vec<Array>>>()?,
        };
        self.set_weights(&values)
    }

    /// The weights in a checkpoint of tf.keras, in the order of `get_weights`.
    fn read_objects(&self, path: &Path, reader: &BundleReader, objects: &Objects) -> Result<Vec<Array>> {
        let refuse = |text: String| Error::checkpoint(path, text);
        let stored = stored_model(objects).map_err(refuse)?;
        let n_stored = objects.children(stored).filter(|(name, _)| name.starts_with(LAYER)).count();
        let n_layers = self.recipe_counts().iter().filter(|n| **n > 0).count();
        if n_stored != n_layers {
            return Err(refuse(format!("it has weights of {n_stored} layers; the model has {n_layers}")));
        }
        let (mut names, mut values) = (self.weight_names(), Vec::new());
        for place in places::of(self, KerasVersion::Keras2)? {
            for name in names.by_ref().take(place.n) {
                let path = format!("{}/{}", place.object, name.rsplit('/').next().unwrap_or(name));
                let found = objects.find(stored, path.split('/').skip(1)).and_then(|object| objects.key(object));
                let Some(key) = found else {
                    let (path, layer) = (path.trim_start_matches('/'), &place.layer);
                    let error = refuse(format!("it has no `{path}`, the weight `{name}` of layer `{layer}`"));
                    return Err(error.help("load it into a model with the layers that it was saved with"));
                };
                values.push(reader.read(key)?);
            }
        }
        Ok(values)
    }
}

/// How tf.keras calls the layers of a model that have weights, before their numbers.
const LAYER: &str = "layer_with_weights-";

/// The object of a checkpoint that is the model: the root, or what it holds.
fn stored_model(objects: &Objects) -> Result<usize, String> {
    let is_model = |object: usize| objects.children(object).any(|(name, _)| name.starts_with(LAYER));
    if is_model(Objects::ROOT) {
        return Ok(Objects::ROOT);
    }
    let mut models: Vec<(&str, usize)> =
        objects.children(Objects::ROOT).filter(|(_, child)| is_model(*child)).collect();
    models.dedup_by_key(|(_, model)| *model);
    match models[..] {
        [(_, model)] => Ok(model),
        [] => Err("it holds no model of Keras".to_string()),
        ref several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            Err(format!("it holds {} models: {}; expected one", names.len(), names.join(", ")))
        }
    }
}

#[cfg(not(feature = "keras_files"))]
impl Model {
    fn save_hdf5(&self, path: &Path) -> Result<()> {
        Err(without_feature(path))
    }

    fn load_hdf5(&mut self, path: &Path, _: &Limits) -> Result<()> {
        Err(without_feature(path))
    }
}

#[cfg(not(feature = "keras_files"))]
pub(crate) fn without_feature(path: &Path) -> Error {
    Error::unsupported(format!("{} is a file of Keras, which this build does not read or write", path.display()))
        .help("build with the feature: estimand = { features = [\"keras_files\"] }")
}
