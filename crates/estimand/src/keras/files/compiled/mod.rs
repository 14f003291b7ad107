//! Compiled models in the files of Keras: the arguments of `compile`, and the state of the
//! optimizer.
//!
//! `read` and `write` are about the arguments, `state` about the variables of the optimizer, whose
//! order is in `order`.

mod order;
mod read;
mod state;
mod write;

use std::panic::Location;

use estimand_hdf5::{File, Writer};
use estimand_nn::config::{CustomObjects, Json};
use estimand_tensor::{Error, Result, warn};

use super::legacy;
use super::options::{LoadModel, SaveModel};
use crate::keras::json::KerasVersion;
use crate::keras::model::Model;
use state::Stored;

/// What a file says of training.
pub(super) struct Training {
    /// The arguments of `compile`.
    pub config: Json,
    /// The version of Keras that wrote them.
    pub version: KerasVersion,
}

/// Compiles a model as its file says, and restores its optimizer. `training` is `None` if the file
/// says nothing; `site` is the user's line.
pub(super) fn load(
    model: &mut Model,
    training: Option<&Training>,
    file: &File,
    objects: &CustomObjects,
    options: LoadModel,
    site: &'static Location<'static>,
) -> Result<()> {
    let must = match options.compile {
        Some(false) => return Ok(()),
        wanted => wanted == Some(true),
    };
    let Some(Training { config, version }) = training else {
        return match must {
            true => Err(Error::data("the file does not say how its model was compiled")
                .help("load it with LoadModel::new().compile(false), and call compile")),
            false => Ok(()),
        };
    };
    let without = |error: Error| error.help("LoadModel::new().compile(false) loads the model without its optimizer");
    // TF: of a legacy file, Keras only warns of a state that does not fit.
    let is_legacy_file = legacy::is_legacy(&file.root())?;
    let refused = |model: &mut Model, error: Error| match !must && is_legacy_file {
        true => model.leave_uncompiled(&error),
        false => Err(without(error)),
    };
    let found = Stored::find(file).and_then(|stored| {
        let n_updates = stored.as_ref().map_or(Ok(0), Stored::iterations)?;
        Ok((stored, n_updates))
    });
    let (stored, n_updates) = match found {
        Ok(found) => found,
        Err(error) => return refused(model, error),
    };
    let compile = read::compile(model, config, *version, n_updates > 0, objects);
    if let Err(error) = compile.and_then(|compile| model.compile(compile.at(site))) {
        return if must { Err(error) } else { model.leave_uncompiled(&error) };
    }
    match stored {
        Some(stored) => stored.restore(model, *version).or_else(|error| refused(model, error)),
        // Older files may have no state; Keras 2 writes none of a legacy optimizer to `.keras`.
        None if is_legacy_file || order::is_legacy(&model.check_compiled()?.optimizer) => {
            warn!("The file of the model `{}` has no state of its optimizer, which begins anew", model.name());
            Ok(())
        }
        None => Err(without(Error::data("the model is compiled, and the file has no state of its optimizer"))),
    }
}

impl Model {
    /// Goes on without what the file says of training, and keeps the reason for later errors.
    fn leave_uncompiled(&mut self, error: &Error) -> Result<()> {
        warn!("The model `{}` is loaded and not compiled: {error}", self.name());
        (self.settings, self.rate) = (None, None);
        self.not_compiled = Some(error.to_string());
        Ok(())
    }
}

/// What is written of a compiled model: the arguments of `compile`, if Keras has them.
pub(super) fn config(model: &Model, options: SaveModel) -> Result<Option<Json>> {
    let must = match options.include_optimizer {
        Some(false) => return Ok(None),
        wanted => wanted == Some(true),
    };
    let settings = match &model.settings {
        Some(settings) => settings,
        None if must => return model.check_compiled().map(|_| None),
        None => return Ok(None),
    };
    match write::config(model, settings, options.version) {
        Ok(config) => Ok(Some(config)),
        Err(error) if must => Err(error),
        Err(error) => {
            warn!("The model `{}` is written without its optimizer, losses and metrics: {error}", model.name());
            Ok(None)
        }
    }
}

/// What [`config`] returns, as legacy files have it.
pub(super) fn in_legacy_form(model: &Model, config: Json, version: KerasVersion) -> Result<Json> {
    Ok(write::in_legacy_form(config, &model.check_compiled()?.optimizer, version))
}

/// Adds the state of the optimizer to a file of weights.
pub(super) fn write_state(model: &Model, version: KerasVersion, is_legacy: bool, writer: &mut Writer) -> Result<()> {
    state::write(model, &model.check_compiled()?.optimizer, version, is_legacy, writer)
}
