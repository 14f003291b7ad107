//! The files of Keras: `.weights.h5`, legacy `.h5`, and `.keras`.
//!
//! `legacy` reads the older form. `archive` is about whole models, `compiled` about their
//! optimizers, losses and metrics, `learned` about vocabularies, `options` says how they are read
//! and written. `by_name` loads the layers that have the same names, and `named` gives the weights
//! of any file names for a warm start; `names` limits their memory.

mod archive;
mod by_name;
mod compiled;
mod learned;
mod legacy;
mod members;
mod named;
mod names;
mod options;

use std::path::Path;

use estimand_hdf5::{File, Group, Writer};
use estimand_tensor::{Array, DType, Error, Limits, Result};
use estimand_wire::temporary::write_whole;

use super::json::KerasVersion;
use super::model::Model;
use super::places::{self, Place};
pub use archive::{load_model, load_model_with};
pub use by_name::{ByName, LoadedByName};
pub(crate) use named::NamedWeights;
pub use options::{LoadModel, SaveModel};

impl Model {
    /// Writes the weights to a `.weights.h5` file for a version of Keras;
    /// [`save_weights`](Model::save_weights) does it for Keras 3. Any other name that ends with
    /// `.h5` or `.hdf5` becomes a legacy file, which has the names of layers and is the same for
    /// both. The file appears as a whole or not at all.
    pub fn save_weights_for(&self, path: impl AsRef<Path>, version: KerasVersion) -> Result<()> {
        let path = path.as_ref();
        let writer = match legacy::is_legacy_name(path) {
            true => self.legacy_weights_writer()?,
            false if legacy::has_new_weights(path) => self.weights_writer(version)?,
            false => {
                let name = path.display();
                let text = format!("the weights are to be written to {name}; expected a name that ends with .h5");
                return Err(Error::config(text).help("for the whole model, call model.save(\"model.keras\")"));
            }
        };
        write_whole(path, &writer.to_bytes()?)
    }

    pub(super) fn save_hdf5(&self, path: &Path) -> Result<()> {
        self.save_weights_for(path, KerasVersion::Keras3)
    }

    pub(super) fn load_hdf5(&mut self, path: &Path, limits: &Limits) -> Result<()> {
        let file = match archive::is_archive(path) {
            true => archive::weights_of(path, limits),
            false => File::open(path, limits),
        };
        let values = file.and_then(|file| self.read_weights(&file));
        let set = values.and_then(|values| self.set_weights(&values));
        set.map_err(|error| error.context(format!("in {}", path.display())))
    }

    /// The weights in a file, in the order of `get_weights`.
    fn read_weights(&self, file: &File) -> Result<Vec<Array>> {
        let root = file.root();
        let mut values = Vec::new();
        match legacy::is_legacy(&root)? {
            true => values = legacy::read(self, &root)?,
            false => {
                for place in places::of(self, KerasVersion::Keras3)? {
                    values.extend(place.read(&root)?);
                }
            }
        }
        let typed = self.weight_names().zip(&values).map(|(name, value)| cast(value, self.spec_of(name).dtype));
        typed.collect()
    }

    /// The tree of a legacy file of weights.
    fn legacy_weights_writer(&self) -> Result<Writer> {
        let mut writer = Writer::new();
        legacy::add_weights(self, "/", &mut writer)?;
        legacy::add_texts("/", &legacy::WRITER, &mut writer)?;
        Ok(writer)
    }

    /// The tree of a `.weights.h5` file.
    fn weights_writer(&self, version: KerasVersion) -> Result<Writer> {
        let (mut writer, mut values) = (Writer::new(), self.get_weights()?.into_iter());
        writer.group("vars")?;
        for Place { path, n, .. } in places::of(self, version)? {
            // Keras 2 asks for the variables of everything on the way, though there are none.
            for (end, _) in path.match_indices('/').filter(|(end, _)| !places::is_list(&path[..*end])) {
                writer.group(&format!("{}/vars", &path[..end]))?;
            }
            for (i, value) in values.by_ref().take(n).enumerate() {
                writer.dataset(&format!("{path}/vars/{i}"), &value)?;
            }
        }
        learned::write_term_weights(self, &mut writer)?;
        Ok(writer)
    }
}

impl Place {
    /// The path in a file. Keras 2 calls some attributes by names with an underscore.
    fn path_in(&self, root: &Group<'_>) -> &str {
        [&self.path, &self.other].into_iter().find(|path| root.contains(path)).unwrap_or(&self.path)
    }

    /// The weights at this place.
    fn read(&self, root: &Group<'_>) -> Result<Vec<Array>> {
        let path = self.path_in(root);
        let weight = |i: usize| root.dataset(&format!("{path}/vars/{i}"))?.read();
        let found = (0..self.n).map(weight).collect::<Result<Vec<Array>>>();
        let text = || format!("for the weights of layer `{}`, which are at {path}/vars", self.layer);
        let n_stored = root.group(&format!("{path}/vars")).map_or(0, |vars| vars.names().count());
        if n_stored > self.n {
            let error = Error::config(format!("the file has {n_stored} weights; expected {}", self.n));
            return Err(error.context(text()));
        }
        found.map_err(|error| error.context(text()))
    }
}

/// Numbers of a file as the dtype of a weight: `f32`, or `i64` for a count.
pub(crate) fn cast(array: &Array, dtype: DType) -> Result<Array> {
    if array.dtype() == dtype {
        return Ok(array.clone());
    }
    let numbers = array.to_f64_vec()?;
    match dtype {
        DType::F32 => Array::from_vec(array.dims(), numbers.into_iter().map(|x| x as f32).collect()),
        DType::I64 => Array::from_vec(array.dims(), numbers.into_iter().map(|x| x as i64).collect()),
        _ => Ok(array.clone()),
    }
}
