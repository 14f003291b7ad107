//! Exporters of `train_and_evaluate` that write SavedModels: of the last evaluation, of each, or of
//! the best.

use std::fmt;
use std::path::PathBuf;

use estimand_tensor::{Error, Result};
use serde_json::{Value as Json, json};

use super::ExportSpec;
use super::folder::remove_old;
use crate::criterion::{Criterion, Direction};
use crate::model_folder::best_so_far::BestSoFar;
use crate::{Export, Exporter, Metrics};

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
/// By default, the criterion of the evaluation decides what is better: a lower loss, or
/// [`EvalSpec::highest_is_best`](crate::EvalSpec::highest_is_best). An exporter may have its own.
/// Checkpoints store the best, so a restart does not forget it.
///
/// ```
/// use estimand::export::{BestExporter, Receiver};
/// use estimand::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-best-exporter-{}", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
/// let data = Dataset::from_arrays(rows).label("y").batch(4);
/// let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(&folder).build()?;
/// // As TensorFlow's compare_fn: whether the second evaluation is better than the best so far.
/// let exporter = BestExporter::new("best", Receiver::like(&data)?)
///     .compare(|best, current| current["auc"] - current["loss"] > best["auc"] - best["loss"]);
/// let train = TrainSpec::new(data.repeat_forever()).max_steps(100);
/// let trained = model.train_and_evaluate(train, EvalSpec::new(&data).exporter(exporter))?;
/// assert_eq!(trained.exports.len(), 1);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub struct BestExporter {
    kept: Kept,
    /// Its own criterion; `None` for that of the evaluation.
    own: Option<BestSoFar>,
    /// Whether the last evaluation was the best by its own criterion.
    is_best: bool,
}

impl fmt::Debug for BestExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let criterion = self.own.as_ref().map(|own| own.criterion.to_string());
        f.debug_struct("BestExporter").field("kept", &self.kept).field("criterion", &criterion).finish_non_exhaustive()
    }
}

impl BestExporter {
    /// Exports to `export/<name>` in the model folder.
    pub fn new(name: impl Into<String>, spec: impl Into<ExportSpec>) -> BestExporter {
        BestExporter { kept: Kept::new(name.into(), spec.into()), own: None, is_best: false }
    }

    /// Sets how many exports are kept. By default, 5; `None` keeps all.
    pub fn exports_to_keep(mut self, n: impl Into<Option<usize>>) -> BestExporter {
        self.kept.n_kept = n.into();
        self
    }

    /// Exports when this metric is higher than in all evaluations before.
    pub fn highest_is_best(self, metric: impl Into<String>) -> BestExporter {
        self.by(Criterion::Metric { name: metric.into(), direction: Direction::Higher })
    }

    /// Exports when this metric is lower than in all evaluations before.
    pub fn lowest_is_best(self, metric: impl Into<String>) -> BestExporter {
        self.by(Criterion::Metric { name: metric.into(), direction: Direction::Lower })
    }

    /// Exports when a function of the best results and the current ones says that these are better.
    /// The first evaluation is always the best.
    pub fn compare(self, is_better: impl Fn(&Metrics, &Metrics) -> bool + 'static) -> BestExporter {
        self.by(Criterion::Function(Box::new(is_better)))
    }

    fn by(mut self, criterion: Criterion) -> BestExporter {
        self.own = Some(BestSoFar { criterion, metrics: None });
        self
    }
}

impl Exporter for BestExporter {
    fn name(&self) -> &str {
        &self.kept.name
    }

    fn check(&self) -> Result<()> {
        self.kept.check()
    }

    fn evaluated(&mut self, metrics: &Metrics) -> Result<()> {
        if let Some(own) = &mut self.own {
            self.is_best = own.update(metrics)?;
        }
        Ok(())
    }

    fn state(&self) -> Option<String> {
        Some(json!({ "best": self.own.as_ref()?.state(), "is_best": self.is_best }).to_string())
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        let invalid = || Error::data("the stored best evaluation of the exporter cannot be read");
        let state: Json = serde_json::from_str(state).map_err(|_| invalid())?;
        own.restore(state.get("best").ok_or_else(invalid)?).ok_or_else(invalid)?;
        self.is_best = own.metrics.is_some() && state.get("is_best").and_then(Json::as_bool).ok_or_else(invalid)?;
        Ok(())
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        let is_best = if self.own.is_some() { self.is_best } else { export.is_best };
        if is_best { self.kept.export(export).map(Some) } else { Ok(None) }
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
