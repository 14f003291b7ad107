//! Training with evaluations in between: `train_and_evaluate`.
//!
//! It is training with one additional hook. `eval_set` is one evaluation input with its schedule,
//! its resident model and its history. `hook` connects the sets to the steps of a training. `watch`
//! is the loop of an evaluator process, which evaluates the checkpoints of another process.
//! `exporter` exports a model after an evaluation.

mod eval_set;
mod exporter;
mod hook;
mod watch;

pub(crate) use eval_set::{EvalSet, is_signal};
pub use exporter::{Export, Exporter};
pub(crate) use hook::EVALUATIONS;

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

use estimand_data::Dataset;
use estimand_tensor::{Error, Result};
use tracing::info;

use crate::console::slice_of;
use crate::estimator::Finished;
use crate::{EarlyStopping, Estimator, EvalSpec, Metrics, TrainSpec};

/// One or more inputs to evaluate on. An [`EvalSpec`], an array or a vector of them, or a
/// [`Dataset`] converts to it.
pub struct EvalSpecs<'a>(Vec<EvalSpec<'a>>);

impl<'a> From<EvalSpec<'a>> for EvalSpecs<'a> {
    fn from(spec: EvalSpec<'a>) -> Self {
        EvalSpecs(vec![spec])
    }
}

impl<'a, const N: usize> From<[EvalSpec<'a>; N]> for EvalSpecs<'a> {
    fn from(specs: [EvalSpec<'a>; N]) -> Self {
        EvalSpecs(specs.into())
    }
}

impl<'a> From<Vec<EvalSpec<'a>>> for EvalSpecs<'a> {
    fn from(specs: Vec<EvalSpec<'a>>) -> Self {
        EvalSpecs(specs)
    }
}

impl From<Dataset> for EvalSpecs<'_> {
    fn from(data: Dataset) -> Self {
        EvalSpec::from(data).into()
    }
}

impl<'a> From<&'a Dataset> for EvalSpecs<'a> {
    fn from(data: &'a Dataset) -> Self {
        EvalSpec::from(data).into()
    }
}

impl EvalSpecs<'_> {
    fn check(&self) -> Result<()> {
        if self.0.is_empty() {
            return Err(Error::config("train_and_evaluate was given nothing to evaluate on")
                .help("give it an EvalSpec, or call train"));
        }
        let restores = |spec: &&EvalSpec<'_>| spec.early_stopping.as_ref().is_some_and(EarlyStopping::restores_best);
        if self.0.iter().filter(restores).count() > 1 {
            return Err(Error::config("two evaluations ask for restore_best, but a model has one set of weights")
                .help("call restore_best() on the early stopping of one evaluation"));
        }
        let (mut names, mut exporters) = (HashSet::new(), HashSet::new());
        for spec in &self.0 {
            spec.check_scheduled()?;
            if !names.insert(spec.name.as_deref()) {
                return Err(match &spec.name {
                    Some(name) => Error::config(format!("train_and_evaluate was given two evaluations named `{name}`")),
                    None => Error::config(
                        "train_and_evaluate was given two evaluations without a name; expected at most one",
                    ),
                }
                .help("give each its own name with .name(..): its results go to the folder eval_<name>"));
            }
            for exporter in &spec.exporters {
                let name = exporter.name();
                exporter.check().map_err(|e| e.context(format!("in the exporter `{name}`")))?;
                if name.is_empty() || !exporters.insert(name) {
                    return Err(Error::config(format!(
                        "an exporter is named `{name}`; expected a name that is not empty and that no other has"
                    ))
                    .help("choose another name: its exports go to the folder export/<name>"));
                }
            }
        }
        Ok(())
    }
}

/// The result of a training with evaluations.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// How the training ended. In an evaluator process, how the evaluation ended.
    pub finished: Finished,
    /// The evaluations, one per input, in the order of the inputs.
    pub evaluations: Vec<Evaluated>,
    /// The paths that exporters wrote, in order.
    pub exports: Vec<PathBuf>,
}

/// The results of the evaluations on one input.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The name of the input.
    pub name: Option<String>,
    /// The criterion of the best evaluation, in words: `lowest loss`.
    pub by: String,
    /// All results of this run, in order.
    pub history: Vec<Metrics>,
    /// The best result, earlier runs included.
    pub best: Option<Metrics>,
}

impl Trained {
    /// The newest results of the first input; `None` if nothing was evaluated.
    pub fn metrics(&self) -> Option<&Metrics> {
        self.evaluations.first()?.history.last()
    }

    /// The results of the input with this name.
    pub fn evaluation(&self, name: &str) -> Result<&Evaluated> {
        let names = self.evaluations.iter().filter_map(|set| set.name.as_deref());
        let found = self.evaluations.iter().find(|set| set.name.as_deref() == Some(name));
        found.ok_or_else(|| Error::unknown("evaluation named", name, names))
    }
}

impl fmt::Display for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.finished)?;
        for set in &self.evaluations {
            write!(f, "\n{set}")?;
        }
        Ok(())
    }
}

impl Evaluated {
    /// Makes an empty result.
    fn none(name: Option<String>) -> Evaluated {
        Evaluated { name, by: String::new(), history: Vec::new(), best: None }
    }
}

/// `test: 3 evaluations, the last at step 300; best (highest auc) at step 200: accuracy 0.9, auc
/// 0.95, loss 0.2`, without slices.
impl fmt::Display for Evaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("evaluation");
        let Some(last) = self.history.last() else { return write!(f, "{name}: not evaluated") };
        let n = self.history.len();
        let plural = if n == 1 { "" } else { "s" };
        write!(f, "{name}: {n} evaluation{plural}, the last at step {}", last.global_step())?;
        let Some(best) = &self.best else { return Ok(()) };
        let of_all = |key: &&str| slice_of(key, |whole| best.get(whole).is_ok()).is_none();
        let shown = best.iter().filter(|(name, _)| of_all(name));
        let values: Vec<String> = shown.map(|(name, value)| format!("{name} {value:.4}")).collect();
        write!(f, "; best ({}) at step {}: {}", self.by, best.global_step(), values.join(", "))
    }
}

impl Estimator {
    /// Trains, with evaluations in between.
    ///
    /// Every input is evaluated after each checkpoint, unless the previous evaluation was less than
    /// [`throttle_secs`](EvalSpec::throttle_secs) ago, and always after the last step.
    /// Alternatively, an input has its own period ([`every`](EvalSpec::every)). The evaluation
    /// model is built once and reads the variables directly from memory. Checkpoints store the best
    /// evaluation so far and the patience count of early stopping.
    ///
    /// If an evaluation is the best so far, a checkpoint of that step is saved, and kept until an
    /// evaluation is better: [`PredictSpec::best`](crate::PredictSpec::best) predicts with it.
    ///
    /// ```
    /// use estimand::prelude::*;
    ///
    /// # let folder = std::env::temp_dir().join(format!("estimand-doc-evaluate-{}", std::process::id()));
    /// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
    /// let data = Dataset::from_arrays(rows).label("y");
    /// let classifier = LinearClassifier::new([numeric_column("x").into()]).model_dir(&folder).build()?;
    /// let trained = classifier.train_and_evaluate(
    ///     TrainSpec::new(data.repeat_forever().batch(4)).max_steps(1000),
    ///     EvalSpec::new(data.batch(4))
    ///         .every(Every::Steps(10))
    ///         .early_stopping(EarlyStopping::higher_is_better("auc").patience(3)),
    /// )?;
    /// assert!(trained.finished.reason.starts_with("early stopping"));
    /// assert_eq!(trained.evaluations[0].best.as_ref().map(|best| best["auc"]), Some(1.0));
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// If `TF_CONFIG` declares this process an evaluator, it does not train. It evaluates the
    /// checkpoints that other processes write, up to that of `max_steps`.
    pub fn train_and_evaluate<'a>(
        &'a self,
        train: impl Into<TrainSpec<'a>>,
        evaluate: impl Into<EvalSpecs<'a>>,
    ) -> Result<Trained> {
        let (train, evaluate) = (train.into(), evaluate.into());
        evaluate.check()?;
        let is_evaluator = self.config().cluster.as_ref().is_some_and(|cluster| cluster.is_evaluator());
        let trained = match is_evaluator {
            true => watch::watch(self, train, evaluate.0)?,
            false => hook::train(self, train, evaluate.0)?,
        };
        info!("{trained}");
        Ok(trained)
    }
}
