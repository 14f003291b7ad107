//! Sweeps: the same program with several hyper-parameters, and one report that compares them.
//!
//! A sweep tries every combination of some values, or random samples. The user's function trains
//! and evaluates one model for each. Every trial has a folder of its own, so TensorBoard shows them
//! side by side, and a sweep that was killed continues where it was: complete trials are read from
//! their files.
//!
//! ```
//! use estimand::Sweep;
//! use estimand::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-sweep-{}", std::process::id()));
//! let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
//! let data = Dataset::from_arrays(rows).label("y");
//!
//! let swept = Sweep::new(&folder)
//!     .over("learning_rate", [0.01, 0.1])
//!     .over("hidden_units", [vec![4], vec![8, 4]])
//!     .highest("auc")
//!     .run(|trial| {
//!         let params = trial.params();
//!         DnnClassifier::new(params.usizes("hidden_units")?, [numeric_column("x").into()])
//!             .optimizer(Optimizer::new(Adagrad::default(), params.f64("learning_rate")?))
//!             .params(params.clone())
//!             .model_dir(trial.model_dir())
//!             .build()?
//!             .train_and_evaluate(data.repeat(50).batch(4), data.batch(4))
//!     })?;
//!
//! println!("{swept}");
//! assert_eq!(swept.trials().len(), 4);
//! let best = swept.best()?;
//! assert!(best.model_dir().join("checkpoint").exists() && folder.join("report.html").exists());
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! `space.rs` has the values to try, `trial.rs` one trial and its stored result, `swept.rs` the
//! results of all trials.

mod space;
mod swept;
mod trial;

use std::path::PathBuf;
use std::time::Instant;

use estimand_tensor::{ErrorKind, Result, warn};
use tracing::info;

use crate::HParams;
use crate::criterion::Direction;
use crate::hparams::Value;
use space::{Choice, Space};
pub use swept::Swept;
pub use trial::{Outcome, Trial, TrialResult};

/// A sweep over hyper-parameters. See the [module](crate::sweep) for an example.
#[derive(Clone, Debug)]
#[must_use]
pub struct Sweep {
    folder: PathBuf,
    shared: HParams,
    space: Space,
    samples: Option<(usize, u64)>,
    metric: String,
    direction: Direction,
}

impl Sweep {
    /// Makes a sweep whose trials are in folders of this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Sweep {
        Sweep {
            folder: folder.into(),
            shared: HParams::new(),
            space: Space::default(),
            samples: None,
            metric: "loss".to_string(),
            direction: Direction::Lower,
        }
    }

    /// Tries these values of a parameter.
    pub fn over<V: Into<Value>>(self, name: impl Into<String>, values: impl IntoIterator<Item = V>) -> Sweep {
        self.with(name, Choice::Values(values.into_iter().map(Into::into).collect()))
    }

    /// Draws a float between two numbers. It is rounded to four digits. Needs
    /// [`samples`](Sweep::samples).
    pub fn uniform(self, name: impl Into<String>, low: f64, high: f64) -> Sweep {
        self.with(name, Choice::Uniform { low, high })
    }

    /// Draws a float between two positive numbers so that its logarithm is uniform, as is usual for
    /// learning rates. It is rounded to four digits. Needs [`samples`](Sweep::samples).
    pub fn log_uniform(self, name: impl Into<String>, low: f64, high: f64) -> Sweep {
        self.with(name, Choice::LogUniform { low, high })
    }

    /// Draws an integer between two numbers, both included. Needs [`samples`](Sweep::samples).
    pub fn integers(self, name: impl Into<String>, low: i64, high: i64) -> Sweep {
        self.with(name, Choice::Integers { low, high })
    }

    fn with(mut self, name: impl Into<String>, choice: Choice) -> Sweep {
        self.space.add(name.into(), choice);
        self
    }

    /// Tries `n` different random combinations instead of all. The same seed gives the same ones,
    /// and a larger `n` adds to them.
    pub fn samples(mut self, n: usize, seed: u64) -> Sweep {
        self.samples = Some((n, seed));
        self
    }

    /// Sets parameters that all trials share. A parameter of the sweep of the same name replaces
    /// one of these, and must have its type.
    pub fn params(mut self, params: HParams) -> Sweep {
        self.shared = params;
        self
    }

    /// The trial with the lowest value of this metric is the best. By default, of the loss.
    pub fn lowest(mut self, metric: impl Into<String>) -> Sweep {
        (self.metric, self.direction) = (metric.into(), Direction::Lower);
        self
    }

    /// The trial with the highest value of this metric is the best.
    pub fn highest(mut self, metric: impl Into<String>) -> Sweep {
        (self.metric, self.direction) = (metric.into(), Direction::Higher);
        self
    }

    /// Runs the trials one after the other, each with all threads, and writes `report.html` to the
    /// sweep's folder.
    ///
    /// A trial counts with the metrics of the checkpoint that its folder has at the end. Trials of
    /// an earlier run that are complete are not run again; remove the folder of a trial to repeat
    /// it. A trial whose loss becomes NaN is noted, and the sweep goes on. Any other error ends the
    /// sweep: call it again to continue.
    pub fn run<R: Into<Outcome>>(&self, mut run: impl FnMut(&Trial) -> Result<R>) -> Result<Swept> {
        self.space.check()?;
        let values = match self.samples {
            Some((n, seed)) => self.space.samples(n, seed)?,
            None => self.space.grid()?,
        };
        let trials = values.into_iter().map(|values| Trial::new(&self.folder, &self.shared, values));
        let trials = trials.collect::<Result<Vec<_>>>()?;
        let mut swept = Swept::new(self.folder.clone(), self.metric.clone(), self.direction);
        let n = trials.len();
        for (i, trial) in trials.into_iter().enumerate() {
            let ended = self.run_one(&trial, i, n, &mut run).and_then(|result| swept.add(result));
            if let Err(error) = ended {
                if !swept.trials().is_empty()
                    && let Err(report) = swept.write_report()
                {
                    // The caller needs the error of the trial more.
                    warn!("The report of the sweep was not written: {report}");
                }
                return Err(error.context(format!("in trial {} of {n}: {}", i + 1, trial.name())));
            }
        }
        swept.write_report()?;
        info!("{swept}");
        Ok(swept)
    }

    fn run_one<R: Into<Outcome>>(
        &self,
        trial: &Trial,
        i: usize,
        n: usize,
        run: &mut impl FnMut(&Trial) -> Result<R>,
    ) -> Result<TrialResult> {
        let (name, number) = (trial.name(), i + 1);
        if let Some(result) = trial.stored()? {
            info!("Trial {number} of {n}: {name}: read from an earlier run");
            return Ok(result);
        }
        info!("Trial {number} of {n}: {name}");
        let start = Instant::now();
        let (metrics, note) = match run(trial) {
            Ok(outcome) => (Some(trial.metrics(outcome.into())?), None),
            Err(error) if matches!(error.kind(), ErrorKind::Diverged) => {
                warn!("Trial {number} of {n}: {name}: {}", error.message());
                (None, Some(error.message().to_string()))
            }
            Err(error) => return Err(error),
        };
        let secs = start.elapsed().as_secs_f64();
        let result = TrialResult { trial: trial.clone(), metrics, note, secs, is_earlier: false };
        result.store()?;
        Ok(result)
    }
}
