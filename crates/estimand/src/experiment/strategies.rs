//! Export strategies: they export a model after an evaluation of an experiment.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};

use crate::model_folder::best_so_far::BestSoFar;
use crate::{Estimator, Export, Exporter, Metrics};

/// A function that exports.
type ExportFn<'a> = Box<dyn FnMut(&Export<'_>) -> Result<Option<PathBuf>> + 'a>;

/// An export strategy made of a name and a function: TensorFlow's `ExportStrategy`.
///
/// ```
/// use estimand::export::{ExportSpec, Receiver};
/// use estimand::prelude::*;
/// use estimand::{ExportStrategy, Exporter};
///
/// # fn main() -> Result<()> {
/// # let data = Dataset::from_arrays([("x", Array::from([1f32]))]).batch(1);
/// let spec = ExportSpec::new(Receiver::like(&data)?);
/// let servo = ExportStrategy::new("Servo", move |export| {
///     export.estimator.export_saved_model(&export.path, spec.clone().checkpoint(export.checkpoint)).map(Some)
/// });
/// assert_eq!(servo.name(), "Servo");
/// # Ok(())
/// # }
/// ```
pub struct ExportStrategy<'a> {
    name: String,
    export_fn: ExportFn<'a>,
}

impl<'a> ExportStrategy<'a> {
    /// Makes a strategy. The function exports to `export.path`, which is `export/<name>` in the
    /// model folder, and returns the path that it wrote; `None` if it chose not to export.
    pub fn new(
        name: impl Into<String>,
        export_fn: impl FnMut(&Export<'_>) -> Result<Option<PathBuf>> + 'a,
    ) -> ExportStrategy<'a> {
        ExportStrategy { name: name.into(), export_fn: Box::new(export_fn) }
    }
}

impl Exporter for ExportStrategy<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        (self.export_fn)(export)
    }
}

impl fmt::Debug for ExportStrategy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportStrategy").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The strategies of an experiment, and its best evaluation so far.
#[derive(Default)]
pub(super) struct Strategies<'a> {
    exporters: Vec<Box<dyn Exporter + 'a>>,
    /// The lowest loss, as in `train_and_evaluate`.
    best: BestSoFar,
}

impl<'a> Strategies<'a> {
    pub(super) fn add(&mut self, exporter: Box<dyn Exporter + 'a>) {
        self.exporters.push(exporter);
    }

    pub(super) fn replace(&mut self, exporters: Vec<Box<dyn Exporter + 'a>>) -> Vec<Box<dyn Exporter + 'a>> {
        std::mem::replace(&mut self.exporters, exporters)
    }

    pub(super) fn check(&self) -> Result<()> {
        let mut names = HashSet::new();
        for exporter in &self.exporters {
            let name = exporter.name();
            exporter.check().map_err(|e| e.context(format!("in the export strategy `{name}`")))?;
            if name.is_empty() || name.contains(['/', '\\']) || !names.insert(name) {
                return Err(Error::config(format!(
                    "an export strategy is named `{name}`; expected a name that is not empty, has no slashes, and that no other has"
                ))
                .help("choose another name: its exports go to the folder export/<name>"));
            }
        }
        Ok(())
    }

    /// Calls each strategy with the results of an evaluation. Returns the paths that they wrote.
    pub(super) fn export(
        &mut self,
        estimator: &Estimator,
        checkpoint: &Path,
        metrics: &Metrics,
        is_final: bool,
    ) -> Result<Vec<PathBuf>> {
        if self.exporters.is_empty() {
            return Ok(Vec::new());
        }
        let is_best = self.best.update(metrics)?;
        let mut paths = Vec::new();
        for exporter in &mut self.exporters {
            let name = exporter.name().to_string();
            let place = || format!("in the export strategy `{name}`");
            exporter.evaluated(metrics).map_err(|e| e.context(place()))?;
            let path = estimator.model_dir().join("export").join(&name);
            let export = Export { estimator, path, checkpoint, metrics, is_best, is_final };
            paths.extend(exporter.export(&export).map_err(|e| e.context(place()))?);
        }
        Ok(paths)
    }
}
