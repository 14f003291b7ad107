//! The files of Keras: `.weights.h5`, legacy `.h5`, and `.keras`.
//!
//! `places` says where a `.weights.h5` keeps the weights of each layer, `legacy` reads the older
//! form, `archive` is about whole models.

mod archive;
mod legacy;
mod places;

use std::path::Path;

use estimand_hdf5::{File, Group, Writer};
use estimand_tensor::{Array, DType, Error, Limits, Result};
use estimand_wire::temporary::write_whole;

use super::json::KerasVersion;
use super::model::Model;
pub use archive::load_model;
use places::Place;

impl Model {
    /// Writes the weights to a `.weights.h5` file for a version of Keras;
    /// [`save_weights`](Model::save_weights) does it for Keras 3. The file appears as a whole or
    /// not at all.
    pub fn save_weights_for(&self, path: impl AsRef<Path>, version: KerasVersion) -> Result<()> {
        let path = path.as_ref();
        let name = path.to_string_lossy();
        if !name.ends_with(".weights.h5") {
            let text = format!("the weights are to be written to {name}; expected a name that ends with .weights.h5");
            return Err(Error::config(text).help("for the whole model, call model.save(\"model.keras\")"));
        }
        write_whole(path, &self.weights_file(version)?)
    }

    pub(super) fn save_hdf5(&self, path: &Path) -> Result<()> {
        self.save_weights_for(path, KerasVersion::Keras3)
    }

    pub(super) fn load_hdf5(&mut self, path: &Path) -> Result<()> {
        let file = match archive::is_archive(path) {
            true => archive::weights_of(path),
            false => File::open(path, &Limits::default()),
        };
        let values = file.and_then(|file| self.read_weights(&file));
        let set = values.and_then(|values| self.set_weights(&values));
        set.map_err(|error| error.context(format!("in {}", path.display())))
    }

    /// The weights in a file, in the order of `get_weights`.
    fn read_weights(&self, file: &File) -> Result<Vec<Array>> {
        let root = file.root();
        if legacy::is_legacy(&root)? {
            return legacy::read(self, &root);
        }
        let mut values = Vec::new();
        for place in places::of(self, KerasVersion::Keras3)? {
            values.extend(place.read(&root)?);
        }
        Ok(values)
    }

    /// The bytes of a `.weights.h5` file.
    fn weights_file(&self, version: KerasVersion) -> Result<Vec<u8>> {
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
        writer.to_bytes()
    }
}

impl Place {
    /// The weights at this place.
    fn read(&self, root: &Group<'_>) -> Result<Vec<Array>> {
        // Keras 2 calls some attributes by names with an underscore.
        let path = [&self.path, &self.other].into_iter().find(|path| root.contains(path)).unwrap_or(&self.path);
        let weight = |i: usize| float(&root.dataset(&format!("{path}/vars/{i}"))?.read()?);
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

/// Numbers as `f32`, which all weights are.
fn float(array: &Array) -> Result<Array> {
    if array.dtype() == DType::F32 {
        return Ok(array.clone());
    }
    Array::from_vec(array.dims(), array.to_f64_vec()?.into_iter().map(|x| x as f32).collect())
}
