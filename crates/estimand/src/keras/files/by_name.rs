//! Weights of legacy files by the names of layers: `load_weights(by_name=True)`.

use std::collections::HashMap;
use std::path::Path;

use estimand_hdf5::File;
use estimand_tensor::{Array, Error, ErrorKind, Limits, Result, warn};

use super::cast;
use super::legacy::{self, Stored};
use crate::keras::model::{Model, ModelLayer};

/// How [`load_weights_by_name`](Model::load_weights_by_name) treats layers that do not fit.
#[derive(Clone, Copy, Default, Debug)]
#[must_use]
pub struct ByName {
    skip_mismatch: bool,
    limits: Limits,
}

impl ByName {
    /// A layer whose weights have another number or other shapes in the file is an error.
    pub fn new() -> ByName {
        ByName::default()
    }

    /// Whether such weights stay as they are, with a warning. Other weights of the layer are set,
    /// as in Keras. By default it is an error.
    pub fn skip_mismatch(mut self, skip: bool) -> ByName {
        self.skip_mismatch = skip;
        self
    }

    /// How much the file may demand of its reader. By default, [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> ByName {
        self.limits = limits;
        self
    }
}

/// The layers that a file has given weights to.
#[derive(Clone, Default, PartialEq, Debug)]
#[non_exhaustive]
pub struct LoadedByName {
    /// The layers with weights of the file.
    pub loaded: Vec<String>,
    /// The layers that keep weights, because the file has another number or other shapes of them.
    pub skipped: Vec<String>,
    /// The layers that have weights, but are not in the file.
    pub missing: Vec<String>,
}

impl Model {
    /// Reads the weights of the layers that have the same names in a legacy `.h5` file, as Keras'
    /// `load_weights(path, by_name=True)` does. Other layers keep theirs. Nothing changes if there
    /// is an error.
    ///
    /// Files with the ending `.weights.h5` and `.keras` have no names of layers: their weights are
    /// found by class and order.
    pub fn load_weights_by_name(&mut self, path: impl AsRef<Path>, options: ByName) -> Result<LoadedByName> {
        let path = path.as_ref();
        let result = self.fitting(path, options).and_then(|(report, values)| {
            self.set_named(&values)?;
            Ok(report)
        });
        result.map_err(|error| error.context(format!("in {}", path.display())))
    }

    /// The weights that a file has for this model, by the name of the variable.
    fn fitting(&self, path: &Path, options: ByName) -> Result<(LoadedByName, Vec<(String, Array)>)> {
        let file = File::open(path, &options.limits)?;
        let root = file.root();
        if !legacy::is_legacy(&root)? {
            return Err(Error::unsupported("the file has no names of layers")
                .help("call load_weights, which finds weights by class and order of the layers"));
        }
        let stored: HashMap<String, Stored<'_>> =
            legacy::stored(&root)?.into_iter().map(|layer| (layer.name.clone(), layer)).collect();
        let (mut report, mut values) = (LoadedByName::default(), Vec::new());
        for layer in self.layers().into_iter().filter(|layer| !layer.variables().is_empty()) {
            let name = layer.name().to_string();
            let Some(found) = stored.get(&name) else {
                report.missing.push(name);
                continue;
            };
            let fits = match found.read_for(&layer) {
                Ok(found) => self.take_fitting(&layer, &found, &mut values)?,
                Err(error) => Err(error),
            };
            match fits {
                Ok(()) => report.loaded.push(name),
                Err(error) if options.skip_mismatch && is_mismatch(&error) => {
                    warn!("Skipping weights of layer `{name}`: {error}");
                    report.skipped.push(name);
                }
                Err(error) if is_mismatch(&error) => {
                    return Err(error.help("ByName::new().skip_mismatch(true) keeps such weights"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((report, values))
    }

    /// Adds the values that have the right shapes, by the names of a layer's variables. The inner
    /// result is the first mistake in shapes.
    fn take_fitting(
        &self,
        layer: &ModelLayer<'_>,
        found: &[Array],
        values: &mut Vec<(String, Array)>,
    ) -> Result<Result<()>> {
        let mut fits = Ok(());
        for (name, value) in layer.variables().iter().zip(found) {
            let spec = self.spec_of(name);
            if value.dims() == spec.dims {
                values.push((name.clone(), cast(value, spec.dtype)?));
            } else if fits.is_ok() {
                let (dims, expected) = (value.dims(), &spec.dims);
                fits = Err(Error::shape(format!("weight `{name}` is {dims:?} in the file; expected {expected:?}")));
            }
        }
        Ok(fits)
    }
}

/// Whether a layer has another number or shape of weights, and not a damaged file.
fn is_mismatch(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Config | ErrorKind::Shape)
}
