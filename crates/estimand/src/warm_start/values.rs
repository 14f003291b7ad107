//! The values of a warm start, read from a checkpoint. Its tensors have the names of variables or,
//! as in Keras' files, those of objects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Array, Error, Result};

use crate::manifest::{self, Manifest};
use crate::stored::Scopes;

/// An open checkpoint, by the names of variables.
pub(super) struct Values {
    prefix: PathBuf,
    reader: BundleReader,
    /// The tensor names of variables whose names differ from them.
    keys: BTreeMap<String, String>,
    scopes: Scopes,
}

impl Values {
    pub(super) fn open(prefix: &Path) -> Result<Values> {
        let reader = BundleReader::open(prefix)?;
        let keys = reader.object_keys()?;
        let scopes = Scopes::of(&reader);
        Ok(Values { prefix: prefix.to_path_buf(), reader, keys, scopes })
    }

    /// Returns the manifest of the old model, if the checkpoint has one.
    pub(super) fn manifest(&self) -> Result<Option<Manifest>> {
        manifest::read(&self.reader, &self.prefix)
    }

    pub(super) fn read(&self, variable: &str) -> Result<Array> {
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
