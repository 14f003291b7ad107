//! Whole models: `.keras`, an archive of configuration and weights, and legacy `.h5`.

use std::path::Path;

use estimand_data::zip;
use estimand_hdf5::File;
use estimand_nn::config::CustomObjects;
use estimand_tensor::{Error, Limits, Result};
use estimand_wire::temporary::write_whole;

use crate::keras::json::{KerasVersion, model_from_json};
use crate::keras::model::Model;

const CONFIG: &str = "config.json";
const METADATA: &str = "metadata.json";
const WEIGHTS: &str = "model.weights.h5";

/// Reads a model with its weights from a `.keras` file of Keras 2 or Keras 3, or from a legacy
/// `.h5` file. It is not compiled. Layers that are not of this library are looked up in `objects`;
/// what cannot be read is refused by name.
#[track_caller]
pub fn load_model(path: impl AsRef<Path>, objects: &CustomObjects) -> Result<Model> {
    let path = path.as_ref();
    let config = match path.extension().is_some_and(|extension| extension == "keras") {
        true => text(member(path, CONFIG)?),
        false => legacy_config(path),
    };
    let read = config.and_then(|config| model_from_json(&config, objects));
    let mut model = read.map_err(|error| error.context(format!("in {}", path.display())))?;
    model.load_weights(path)?;
    Ok(model)
}

fn legacy_config(path: &Path) -> Result<String> {
    let file = File::open(path, &Limits::default())?;
    let Some(config) = file.root().find_attribute("model_config")? else {
        let text = format!("{} has no `model_config`", path.display());
        return Err(Error::data(text).help("it holds weights alone: make the model and call load_weights"));
    };
    let bytes = config.strings()?.next().map(<[u8]>::to_vec).unwrap_or_default();
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::data("the configuration of the model is not UTF-8"))
}

/// The weights in a `.keras` file.
pub(super) fn weights_of(path: &Path) -> Result<File> {
    File::from_bytes(member(path, WEIGHTS)?, &Limits::default())
}

fn member(path: &Path, name: &str) -> Result<Vec<u8>> {
    let archive = std::fs::read(path).map_err(|e| Error::io(path, "read", &e))?;
    let members =
        zip::members(&archive, &Limits::default()).map_err(|e| e.context(format!("in {}", path.display())))?;
    let Some(found) = members.iter().find(|member| member.name == name) else {
        let text = format!("{} has no member `{name}`", path.display());
        return Err(Error::data(text).help("a .keras file is an archive that Keras' model.save(..) writes"));
    };
    found.unpack().map_err(|error| error.context(format!("in `{name}` of {}", path.display())))
}

impl Model {
    /// Writes architecture and weights to a `.keras` file that Keras 3 opens. The optimizer is not
    /// part of it. The file appears as a whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_for(path, KerasVersion::Keras3)
    }

    /// Writes a `.keras` file for a version of Keras.
    pub fn save_for(&self, path: impl AsRef<Path>, version: KerasVersion) -> Result<()> {
        let path = path.as_ref();
        if path.extension().is_none_or(|extension| extension != "keras") {
            let text =
                format!("the model is to be written to {}; expected a name that ends with .keras", path.display());
            return Err(Error::config(text).help("for weights alone, call save_weights(\"name.weights.h5\")"));
        }
        let config = self.to_json_for(version)?.to_string();
        let number = match version {
            KerasVersion::Keras2 => "2.15.0",
            KerasVersion::Keras3 => "3.6.0",
        };
        let metadata = format!("{{\"keras_version\": \"{number}\", \"date_saved\": \"1980-01-01@00:00:00\"}}");
        let weights = self.weights_file(version)?;
        let members = [(METADATA, metadata.as_bytes()), (CONFIG, config.as_bytes()), (WEIGHTS, &weights[..])];
        write_whole(path, &zip::write(&members)?)
    }
}
