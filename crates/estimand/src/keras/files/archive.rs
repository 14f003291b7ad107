//! Whole models: `.keras`, an archive of configuration and weights, and legacy `.h5`.

use std::panic::Location;
use std::path::Path;

use estimand_data::zip;
use estimand_hdf5::{File, Writer};
use estimand_nn::config::{self, CustomObjects, Json};
use estimand_tensor::{Error, Limits, Result};
use estimand_wire::temporary::write_whole;
use serde_json::json;

use super::compiled::{self, Training};
use super::members::{Archive, WEIGHTS};
use super::options::{LoadModel, SaveModel};
use super::{learned, legacy, members};
use crate::keras::json::{KerasVersion, model_from_document};
use crate::keras::model::Model;

const CONFIG: &str = "config.json";
const METADATA: &str = "metadata.json";
/// The attribute of a legacy file that is the configuration.
pub(super) const MODEL: &str = "model_config";

/// Reads a model with its weights from a `.keras` file of Keras 2 or Keras 3, or from a legacy
/// `.h5` file. Layers, losses, metrics and rules of optimizers that are not of this library are
/// looked up in `objects`; a layer that cannot be read is refused by name.
///
/// If the file says how the model was compiled, the model is compiled so, and its optimizer goes on
/// where it stopped. If Estimand has not what the file names, such as a loss that is a function of
/// Python, the model is loaded and not compiled, with a warning. [`load_model_with`] has options.
#[track_caller]
pub fn load_model(path: impl AsRef<Path>, objects: &CustomObjects) -> Result<Model> {
    load_model_with(path, objects, LoadModel::new())
}

/// Reads a model as [`load_model`] does, with options.
#[track_caller]
pub fn load_model_with(path: impl AsRef<Path>, objects: &CustomObjects, options: LoadModel) -> Result<Model> {
    let (path, site) = (path.as_ref(), Location::caller());
    // Opened once: another process may replace the file meanwhile.
    let compiles = options.compile != Some(false);
    let parts = match is_archive(path) {
        true => Parts::of_archive(&read(path)?, compiles, &options.limits),
        false => Parts::of_legacy(File::open(path, &options.limits)?, compiles),
    };
    let load = |parts: Parts| {
        let mut model = model_from_document(&parts.config, objects)?;
        let values = model.read_weights(&parts.weights)?;
        model.set_weights(&values)?;
        compiled::load(&mut model, parts.training.as_ref(), &parts.weights, objects, options, site)?;
        Ok(model)
    };
    parts.and_then(load).map_err(|error| error.context(format!("in {}", path.display())))
}

/// The parts of a file.
struct Parts {
    config: Json,
    training: Option<Training>,
    weights: File,
}

impl Parts {
    /// With `compiles`, also what the file says of training.
    fn of_archive(archive: &[u8], compiles: bool, limits: &Limits) -> Result<Parts> {
        let archive = Archive::of(archive, limits)?;
        let (document, weights) = whole(&archive)?;
        let training = match &document["compile_config"] {
            Json::Object(fields) if compiles && !fields.is_empty() => {
                let metadata = config::parse(&archive.text(METADATA)?)?;
                let version = version(metadata["keras_version"].as_str());
                Some(Training { config: document["compile_config"].clone(), version })
            }
            _ => None,
        };
        Ok(Parts { config: document, training, weights })
    }

    fn of_legacy(file: File, compiles: bool) -> Result<Parts> {
        let Some(config) = text_of(&file, MODEL)? else {
            let help = "it holds weights alone: make the model and call load_weights";
            return Err(Error::data("the file has no `model_config`").help(help));
        };
        let training = match text_of(&file, "training_config")? {
            Some(training) if compiles => {
                let version = version(text_of(&file, "keras_version")?.as_deref());
                Some(Training { config: config::parse(&training)?, version })
            }
            _ => None,
        };
        Ok(Parts { config: config::parse(&config)?, training, weights: file })
    }
}

/// The form of a version such as `3.6.0`. The oldest files do not tell theirs.
fn version(number: Option<&str>) -> KerasVersion {
    match number.and_then(|number| number.split('.').next()?.parse::<u32>().ok()) {
        Some(3..) => KerasVersion::Keras3,
        _ => KerasVersion::Keras2,
    }
}

pub(super) fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "keras")
}

/// The configuration and the weights in a `.keras` file.
pub(super) fn open(path: &Path, limits: &Limits) -> Result<(Json, File)> {
    whole(&Archive::of(&read(path)?, limits)?)
}

/// The weights in a `.keras` file.
pub(super) fn weights_of(path: &Path, limits: &Limits) -> Result<File> {
    Archive::of(&read(path)?, limits)?.weights()
}

/// A text among the attributes of a legacy file.
pub(super) fn text_of(file: &File, attribute: &str) -> Result<Option<String>> {
    let Some(value) = file.root().find_attribute(attribute)? else { return Ok(None) };
    members::text(value.strings()?.next().map(<[u8]>::to_vec).unwrap_or_default()).map(Some)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::io(path, "read", &e))
}

/// The configuration, with what layers have learned, and the weights.
fn whole(archive: &Archive<'_>) -> Result<(Json, File)> {
    let mut document = config::parse(&archive.text(CONFIG)?)?;
    let weights = archive.weights()?;
    learned::complete(&mut document, &learned::Sources { archive, weights: &weights })?;
    Ok((document, weights))
}

impl Model {
    /// Writes the model to a `.keras` file that Keras 3 opens: architecture, weights, and if it is
    /// compiled the optimizer with its state, the losses and the metrics. A name that ends with
    /// `.h5` or `.hdf5` becomes a legacy file, which has the same, but for Keras 3 no state of the
    /// optimizer. The file appears as a whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with(path, SaveModel::new())
    }

    /// Writes a `.keras` or `.h5` file for a version of Keras.
    pub fn save_for(&self, path: impl AsRef<Path>, version: KerasVersion) -> Result<()> {
        self.save_with(path, SaveModel::new().version(version))
    }

    /// Writes a `.keras` or `.h5` file with options.
    pub fn save_with(&self, path: impl AsRef<Path>, options: SaveModel) -> Result<()> {
        let path = path.as_ref();
        let bytes = match is_archive(path) {
            true => self.archive(options)?,
            false if legacy::is_legacy_name(path) => self.legacy_file(options)?,
            false => {
                let name = path.display();
                let text =
                    format!("the model is to be written to {name}; expected a name that ends with .keras or .h5");
                return Err(Error::config(text).help("for weights alone, call save_weights(\"name.weights.h5\")"));
            }
        };
        write_whole(path, &bytes)
    }

    fn archive(&self, options: SaveModel) -> Result<Vec<u8>> {
        let version = options.version;
        let mut config = self.to_json_for(version)?;
        let compiled = compiled::config(self, options)?;
        let has_state = compiled.is_some();
        if let Some(compiled) = compiled {
            // Keras builds the model before it compiles it.
            config["build_config"] = json!({ "input_shape": config["config"]["build_input_shape"] });
            config["compile_config"] = compiled;
        }
        let number = number(version);
        let metadata = format!("{{\"keras_version\": \"{number}\", \"date_saved\": \"1980-01-01@00:00:00\"}}");
        let mut weights = self.weights_writer(version)?;
        if has_state {
            compiled::write_state(self, version, false, &mut weights)?;
        }
        let (config, weights) = (config.to_string(), weights.to_bytes()?);
        zip::write(&[(METADATA, metadata.as_bytes()), (CONFIG, config.as_bytes()), (WEIGHTS, &weights[..])])
    }

    fn legacy_file(&self, options: SaveModel) -> Result<Vec<u8>> {
        let (version, mut writer) = (options.version, Writer::new());
        let model = self.to_json_for(version)?;
        let model = json!({ "class_name": model["class_name"], "config": model["config"] }).to_string();
        let about = [("model_config", &*model), ("keras_version", number(version)), ("backend", "tensorflow")];
        legacy::add_texts("/", &about, &mut writer)?;
        legacy::add_weights(self, legacy::WEIGHTS, &mut writer)?;
        legacy::add_texts(legacy::WEIGHTS, &about[1..], &mut writer)?;
        if let Some(training) = compiled::config(self, options)? {
            let training = compiled::in_legacy_form(self, training, version)?.to_string();
            legacy::add_texts("/", &[("training_config", &training)], &mut writer)?;
            match version {
                KerasVersion::Keras2 => compiled::write_state(self, version, true, &mut writer)?,
                // TF: Keras 3 opens a file with a state, its own ones too, and then cannot train.
                KerasVersion::Keras3 if options.include_optimizer == Some(true) => {
                    let error = Error::unsupported("Keras 3 cannot read the state of an optimizer in a .h5 file");
                    return Err(error.help("save to a name that ends with .keras"));
                }
                KerasVersion::Keras3 => {}
            }
        }
        writer.to_bytes()
    }
}

/// The version of Keras that is to read a file.
fn number(version: KerasVersion) -> &'static str {
    match version {
        KerasVersion::Keras2 => "2.15.0",
        KerasVersion::Keras3 => "3.6.0",
    }
}
