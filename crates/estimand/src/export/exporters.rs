//! Exporters of `train_and_evaluate` that write SavedModels: of the last evaluation, of each, or of
//! the best.

use std::path::PathBuf;

use estimand_tensor::{Error, Result};

use super::ExportSpec;
use super::folder::remove_old;
use crate::{Export, Exporter};

/// The number of exports that TensorFlow keeps by default.
const KEPT: usize = 5;

/// Exports the model after the last evaluation of a training: that of `max_steps`, or of an early
/// stop. As in TensorFlow, a training that ends with its input has no such evaluation.
///
/// ```
/// use estimand::export::{FinalExporter, Receiver};
/// use estimand::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-exporter-{}", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
/// let data = Dataset::from_arrays(rows).label("y").batch(4);
/// let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(&folder).build()?;
/// let exporter = FinalExporter::new("serving", Receiver::like(&data)?);
/// let train = TrainSpec::new(data.repeat_forever()).max_steps(100);
/// let trained = model.train_and_evaluate(train, EvalSpec::new(&data).exporter(exporter))?;
/// assert!(trained.exports[0].starts_with(folder.join("export/serving")));
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct FinalExporter {
    name: String,
    spec: ExportSpec,
}

impl FinalExporter {
    /// Exports to `export/<name>` in the model folder.
    pub fn new(name: impl Into<String>, spec: impl Into<ExportSpec>) -> FinalExporter {
        FinalExporter { name: name.into(), spec: spec.into() }
    }
}

impl Exporter for FinalExporter {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<()> {
        self.spec.check_for_exporter()
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        if export.is_final { write(&self.spec, export).map(Some) } else { Ok(None) }
    }
}

/// Exports the model after every evaluation, and keeps the newest exports.
#[derive(Clone, Debug)]
#[must_use]
pub struct LatestExporter(Kept);

impl LatestExporter {
    /// Exports to `export/<name>` in the model folder.
    pub fn new(name: impl Into<String>, spec: impl Into<ExportSpec>) -> LatestExporter {
        LatestExporter(Kept::new(name.into(), spec.into()))
    }

    /// Sets how many exports are kept. By default, 5; `None` keeps all.
    pub fn exports_to_keep(mut self, n: impl Into<Option<usize>>) -> LatestExporter {
        self.0.n_kept = n.into();
        self
    }
}

impl Exporter for LatestExporter {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        self.0.export(export).map(Some)
    }
}

/// Exports the model after an evaluation that is better than all before, and keeps the newest
/// exports.
///
/// The evaluation decides what is better, by default a lower loss:
/// [`EvalSpec::highest_is_best`](crate::EvalSpec::highest_is_best). Checkpoints store the best, so
/// a restart does not forget it.
#[derive(Clone, Debug)]
#[must_use]
pub struct BestExporter(Kept);

impl BestExporter {
    /// Exports to `export/<name>` in the model folder.
    pub fn new(name: impl Into<String>, spec: impl Into<ExportSpec>) -> BestExporter {
        BestExporter(Kept::new(name.into(), spec.into()))
    }

    /// Sets how many exports are kept. By default, 5; `None` keeps all.
    pub fn exports_to_keep(mut self, n: impl Into<Option<usize>>) -> BestExporter {
        self.0.n_kept = n.into();
        self
    }
}

impl Exporter for BestExporter {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        if export.is_best { self.0.export(export).map(Some) } else { Ok(None) }
    }
}

/// An exporter that keeps the newest of its exports.
#[derive(Clone, Debug)]
struct Kept {
    name: String,
    spec: ExportSpec,
    n_kept: Option<usize>,
}

impl Kept {
    fn new(name: String, spec: ExportSpec) -> Kept {
        Kept { name, spec, n_kept: Some(KEPT) }
    }

    fn check(&self) -> Result<()> {
        self.spec.check_for_exporter()?;
        match self.n_kept {
            Some(0) => {
                Err(Error::config("exports_to_keep is 0; expected at least 1").help("use None to keep all exports"))
            }
            _ => Ok(()),
        }
    }

    fn export(&self, export: &Export<'_>) -> Result<PathBuf> {
        let path = write(&self.spec, export)?;
        remove_old(&export.path, self.n_kept)?;
        Ok(path)
    }
}

fn write(spec: &ExportSpec, export: &Export<'_>) -> Result<PathBuf> {
    export.estimator.export_saved_model(&export.path, spec.clone().checkpoint(export.checkpoint))
}
