//! Exporters: they write a model after an evaluation, for example to a folder for a server.

use std::path::{Path, PathBuf};

use estimand_tensor::Result;

use crate::{Estimator, Metrics};

/// Exports a model after each evaluation, or after some of them.
///
/// If a process is killed while an exporter works, the next start calls all exporters of that
/// checkpoint again, with the same checkpoint, metrics and flags. An exporter should therefore
/// replace its own output of the same step, and rename a file to its final name only when it is
/// complete.
///
/// This exporter keeps the variables of the best model:
///
/// ```
/// use std::path::PathBuf;
///
/// use estimand::prelude::*;
/// use estimand::{Export, Exporter};
///
/// struct BestWeights;
///
/// impl Exporter for BestWeights {
///     fn name(&self) -> &str {
///         "best_weights"
///     }
///
///     fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
///         if !export.is_best {
///             return Ok(None);
///         }
///         let file = |ending: &str| format!("{}.{ending}", export.checkpoint.display());
///         std::fs::create_dir_all(&export.path).map_err(|e| Error::io(&export.path, "make", &e))?;
///         for ending in ["index", "data-00000-of-00001"] {
///             let to = export.path.join(format!("weights.{ending}"));
///             std::fs::copy(file(ending), &to).map_err(|e| Error::io(&to, "write", &e))?;
///         }
///         Ok(Some(export.path.clone()))
///     }
/// }
/// ```
pub trait Exporter {
    /// The name of the exporter. Its exports are below `export/<name>` in the model folder.
    fn name(&self) -> &str;

    /// Checks the settings before the training begins. By default, there is nothing to check.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Called with the results of each evaluation, before the checkpoint that holds
    /// [`state`](Exporter::state) is saved. By default, does nothing.
    fn evaluated(&mut self, _metrics: &Metrics) -> Result<()> {
        Ok(())
    }

    /// Returns what a later run must know, as JSON, for the checkpoint. By default, nothing.
    fn state(&self) -> Option<String> {
        None
    }

    /// Restores the state of an earlier run.
    fn restore(&mut self, _state: &str) -> Result<()> {
        Ok(())
    }

    /// Exports the model or skips it. Returns the path of the export.
    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>>;
}

impl<E: Exporter + ?Sized> Exporter for Box<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn check(&self) -> Result<()> {
        (**self).check()
    }

    fn evaluated(&mut self, metrics: &Metrics) -> Result<()> {
        (**self).evaluated(metrics)
    }

    fn state(&self) -> Option<String> {
        (**self).state()
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        (**self).restore(state)
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        (**self).export(export)
    }
}

/// The argument of an exporter.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// The estimator that was evaluated.
    pub estimator: &'a Estimator,
    /// The folder of this exporter's exports. It may not exist yet.
    pub path: PathBuf,
    /// The checkpoint that was evaluated; its files exist.
    pub checkpoint: &'a Path,
    /// The results of the evaluation.
    pub metrics: &'a Metrics,
    /// Whether no earlier evaluation was better, earlier runs included.
    pub is_best: bool,
    /// Whether this is the evaluation of the last step.
    pub is_final: bool,
}
