//! The values of a warm start, read from a checkpoint. Its tensors have the names of variables or,
//! as in Keras' checkpoints, those of objects. With the feature `keras_files`, also from a file of
//! Keras.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Array, DType, Error, Limits, Result};

#[cfg(feature = "keras_files")]
use crate::keras::{NamedWeights, cast};
use crate::manifest::{self, Manifest};
use crate::stored::Scopes;

/// The values of variables by name.
pub(super) enum Values {
    Checkpoint(Box<Checkpoint>),
    #[cfg(feature = "keras_files")]
    Keras(Box<NamedWeights>),
}

/// An open checkpoint, by the names of variables.
pub(super) struct Checkpoint {
    prefix: PathBuf,
    reader: BundleReader,
    /// The tensor names of variables whose names differ from them.
    keys: BTreeMap<String, String>,
    scopes: Scopes,
}

impl Values {
    /// Opens a checkpoint.
    pub(super) fn open(prefix: &Path, limits: &Limits) -> Result<Values> {
        let reader = BundleReader::open_within(prefix, limits)?;
        let keys = reader.object_keys()?;
        let scopes = Scopes::of(&reader);
        Ok(Values::Checkpoint(Box::new(Checkpoint { prefix: prefix.to_path_buf(), reader, keys, scopes })))
    }

    /// Opens a file of Keras.
    #[cfg(feature = "keras_files")]
    pub(super) fn open_keras(path: &Path, limits: &Limits) -> Result<Values> {
        NamedWeights::open(path, limits).map(|weights| Values::Keras(Box::new(weights)))
    }

    #[cfg(not(feature = "keras_files"))]
    pub(super) fn open_keras(path: &Path, _: &Limits) -> Result<Values> {
        Err(crate::keras::without_feature(path))
    }

    /// Returns the manifest of the old model, if the checkpoint has one.
    pub(super) fn manifest(&self) -> Result<Option<Manifest>> {
        match self {
            Values::Checkpoint(checkpoint) => manifest::read(&checkpoint.reader, &checkpoint.prefix),
            #[cfg(feature = "keras_files")]
            Values::Keras(_) => Ok(None),
        }
    }

    /// Reads a variable. Keras' files may have its numbers with more or fewer digits than `dtype`.
    #[cfg_attr(not(feature = "keras_files"), expect(unused_variables, reason = "checkpoints have one dtype"))]
    pub(super) fn read(&self, variable: &str, dtype: DType) -> Result<Array> {
        match self {
            Values::Checkpoint(checkpoint) => checkpoint.read(variable),
            #[cfg(feature = "keras_files")]
            Values::Keras(weights) => {
                let found = weights.read(variable)?;
                match found.dtype().is_float() == dtype.is_float() {
                    true => cast(&found, dtype),
                    false => Ok(found),
                }
            }
        }
    }
}

impl Checkpoint {
    fn read(&self, variable: &str) -> Result<Array> {
        let variable = &*self.scopes.name(variable);
        match self.keys.get(variable) {
            // A tensor can also be selected by its own name.
            _ if self.keys.is_empty() || self.reader.contains(variable) => self.reader.read(variable),
            Some(key) => self.reader.read(key),
            None => Err(Error::missing_variable(variable, self.keys.keys().map(String::as_str))
                .context(format!("in checkpoint {}", self.prefix.display()))),
        }
    }
}
