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
    // Opened once: another process may replace the file meanwhile.
    let (config, weights) = match is_archive(path) {
        true => {
            let archive = read(path)?;
            (member(&archive, CONFIG), weights_in(&archive))
        }
        false => {
            let file = File::open(path, &Limits::default())?;
            (legacy_config(&file), Ok(file))
        }
    };
    let loaded = config.and_then(|config| {
        let mut model = model_from_json(&text(config)?, objects)?;
        let values = model.read_weights(&weights?)?;
        model.set_weights(&values)?;
        Ok(model)
    });
    loaded.map_err(|error| error.context(format!("in {}", path.display())))
}

pub(super) fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "keras")
}

fn legacy_config(file: &File) -> Result<Vec<u8>> {
    let Some(config) = file.root().find_attribute("model_config")? else {
        let help = "it holds weights alone: make the model and call load_weights";
        return Err(Error::data("the file has no `model_config`").help(help));
    };
    Ok(config.strings()?.next().map(<[u8]>::to_vec).unwrap_or_default())
}

/// The configuration and the weights in a `.keras` file.
pub(super) fn open(path: &Path) -> Result<(String, File)> {
    let archive = read(path)?;
    Ok((text(member(&archive, CONFIG)?)?, weights_in(&archive)?))
}

fn text(config: Vec<u8>) -> Result<String> {
    String::from_utf8(config).map_err(|_| Error::data("the configuration is not UTF-8"))
}

/// The weights in a `.keras` file.
pub(super) fn weights_of(path: &Path) -> Result<File> {
    weights_in(&read(path)?)
}

fn weights_in(archive: &[u8]) -> Result<File> {
    File::from_bytes(member(archive, WEIGHTS)?, &Limits::default())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::io(path, "read", &e))
}

fn member(archive: &[u8], name: &str) -> Result<Vec<u8>> {
    let members = zip::members(archive, &Limits::default())?;
    let Some(found) = members.iter().find(|member| member.name == name) else {
        let help = "a .keras file is an archive that Keras' model.save(..) writes";
        return Err(Error::data(format!("the archive has no member `{name}`")).help(help));
    };
    found.unpack().map_err(|error| error.context(format!("in the member `{name}`")))
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
        if !is_archive(path) {
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
