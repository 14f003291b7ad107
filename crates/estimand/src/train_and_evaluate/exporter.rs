//! Exporters: what is made of a model after an evaluation, such as a folder for a server.

use std::path::{Path, PathBuf};

use estimand_tensor::Result;

use crate::{Estimator, Metrics};

/// Makes something of a model after each evaluation, or after some of them.
///
/// A process that is killed while an exporter works calls all exporters of that checkpoint again
/// when it is started again, with the same checkpoint, metrics and flags. So an exporter should
/// replace what it has left of the same step, and give a file its name once it is whole.
///
/// This one keeps the variables of the best model:
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
    /// What it is called; its exports are below `export/<name>` in the model folder.
    fn name(&self) -> &str;

    /// Exports, or does not; returns where to.
    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>>;
}

/// What an exporter is told.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// The estimator that was evaluated.
    pub estimator: &'a Estimator,
    /// The folder of this exporter's exports. It need not be there yet.
    pub path: PathBuf,
    /// The checkpoint that was evaluated; its files are there.
    pub checkpoint: &'a Path,
    /// The results of the evaluation.
    pub metrics: &'a Metrics,
    /// Whether there was nothing better before, in earlier runs too.
    pub is_best: bool,
    /// Whether this is the evaluation of the last step.
    pub is_final: bool,
}
