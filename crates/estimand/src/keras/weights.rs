//! Weights in files: checkpoints of TensorFlow and, with the feature `keras_files`, HDF5.

use std::path::Path;

use estimand_checkpoint::{BundleReader, BundleWriter};
use estimand_tensor::{Array, Error, Result};

use super::model::Model;

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
    /// With the feature `keras_files`, also those of Keras 2 and Keras 3: `.weights.h5`, `.h5` and
    /// `.keras`.
    pub fn load_weights(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if is_hdf5(path) {
            return self.load_hdf5(path);
        }
        let reader = BundleReader::open(path)?;
        let values: Vec<Array> = self.weight_names().map(|name| reader.read(name)).collect::<Result<_>>()?;
        self.set_weights(&values)
    }
}

#[cfg(not(feature = "keras_files"))]
impl Model {
    fn save_hdf5(&self, path: &Path) -> Result<()> {
        Err(without_feature(path))
    }

    fn load_hdf5(&mut self, path: &Path) -> Result<()> {
        Err(without_feature(path))
    }
}

#[cfg(not(feature = "keras_files"))]
pub(crate) fn without_feature(path: &Path) -> Error {
    Error::unsupported(format!("{} is a file of Keras, which this build does not read or write", path.display()))
        .help("build with the feature: estimand = { features = [\"keras_files\"] }")
}
