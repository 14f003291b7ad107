//! The schedules of an experiment that end by themselves.

use std::path::{Path, PathBuf};

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Error, Result, warn};
use tracing::info;

use super::continuous::LastEvaluation;
use super::validation::{EvaluateSaved, validation};
use super::{Experiment, ExperimentResult, Lent, wait};
use crate::estimator::Finished;
use crate::hook::{GlobalStepWaiterHook, Hook, SharedHook};
use crate::signal::Guard;
use crate::{EvalSpec, Metrics, TrainSpec, own_entries};

/// The steps between two evaluations of `continuous_train_and_eval` if nothing else tells.
const STEPS_PER_ITERATION: u64 = 1000;

impl Experiment<'_> {
    /// Trains up to `train_steps`, after a delay in seconds.
    ///
    /// `None` delays a worker so that the chief starts first: 5 seconds for each worker before it,
    /// at most 60, or by global step
    /// ([`delay_workers_by_global_step`](Experiment::delay_workers_by_global_step)).
    pub fn train(&mut self, delay_secs: impl Into<Option<f64>>) -> Result<ExperimentResult> {
        self.check()?;
        let finished = self.train_after(delay_secs.into(), |spec| spec)?;
        Ok(ExperimentResult { finished: Some(finished), ..ExperimentResult::default() })
    }

    /// Evaluates once, after a delay in seconds; `None` waits for `eval_delay_secs`. The results
    /// are named `one_pass` unless they have another name.
    pub fn evaluate(&mut self, delay_secs: impl Into<Option<f64>>, name: Option<&str>) -> Result<ExperimentResult> {
        self.check()?;
        let delay = delay_secs.into().unwrap_or(self.eval_delay_secs);
        wait::check("delay_secs", delay)?;
        if delay > 0.0 {
            info!("Waiting {delay} secs before starting eval.");
            self.wait.wait(delay)?;
        }
        let metrics = self.evaluate_checkpoint(Some(name.unwrap_or("one_pass")), None)?;
        Ok(ExperimentResult { metrics: Some(metrics), ..ExperimentResult::default() })
    }

    /// Trains, with evaluations in between, then evaluates and exports.
    ///
    /// Every `min_eval_frequency` steps the newest checkpoint is evaluated, unless it was before or
    /// a check for it was less than `check_interval_secs` ago. As in TensorFlow, the first of them
    /// may be that of the initial weights. With
    /// [`checkpoint_and_export`](Experiment::checkpoint_and_export) every checkpoint is evaluated
    /// and exported instead.
    pub fn train_and_evaluate(&mut self) -> Result<ExperimentResult> {
        self.interleave(self.min_eval_frequency)
    }

    /// The same as [`train_and_evaluate`](Experiment::train_and_evaluate) with
    /// `local_eval_frequency` in place of `min_eval_frequency`: its older form.
    pub fn local_run(&mut self) -> Result<ExperimentResult> {
        self.interleave(self.local_eval_frequency.unwrap_or(0))
    }

    fn interleave(&self, every: u64) -> Result<ExperimentResult> {
        self.check()?;
        let is_configured = !self.estimator.config().save_checkpoints.is_never();
        // TF: it looks at the configuration, so a saver among the hooks does not count here.
        // (fixture `experiment`)
        if self.checkpoint_and_export && is_configured {
            // TF: it is notified before the listeners of the experiment.
            let (listener, last) = EvaluateSaved::new(self);
            let finished = self.train_after(Some(0.0), |spec| spec.first_listener(listener))?;
            return Ok(ExperimentResult { finished: Some(finished), ..last.take() });
        }
        let saves = is_configured || self.train_hooks.iter().any(SharedHook::saves_checkpoints);
        if every > 0 && !saves {
            warn!("There are no evaluations during training: no checkpoints are saved");
        }
        let finished = match every > 0 && saves {
            true => {
                let (hook, listener) = validation(self, every);
                self.train_after(Some(0.0), |spec| spec.hook(hook).listener(listener))?
            }
            false => self.train_after(Some(0.0), |spec| spec)?,
        };
        let metrics = self.evaluate_checkpoint(None, None)?;
        let exports = self.export(&metrics, None)?;
        Ok(ExperimentResult { finished: Some(finished), metrics: Some(metrics), exports })
    }

    /// Trains some steps, evaluates and exports, again and again, until `train_steps` are done.
    ///
    /// It also ends when the predicate returns false. The predicate is called before each round
    /// with the last evaluation, which is `None` before the first. Without `train_steps`, and with
    /// a predicate that is always true, only a signal ends it.
    ///
    /// Each round is a training of its own, with
    /// [`train_steps_per_iteration`](Experiment::train_steps_per_iteration) steps. The input goes
    /// on where the last round stopped; in TensorFlow each round begins it anew. A program that is
    /// started again when all steps are done only evaluates and exports; in TensorFlow it trains
    /// another round. A round whose last step is in no checkpoint is an error, because the next one
    /// would do the same steps; in TensorFlow it does, for ever.
    pub fn continuous_train_and_eval(
        &mut self,
        mut predicate: impl FnMut(Option<&LastEvaluation>) -> bool,
    ) -> Result<ExperimentResult> {
        self.check()?;
        let steps = self.steps_per_iteration()?;
        // For all rounds: one may end before it sees a signal, which the next one must not miss.
        let signals = Guard::install()?;
        let (mut result, mut last) = (ExperimentResult::default(), None);
        while predicate(last.as_ref()) {
            wait::interrupted(&signals)?;
            if result.metrics.as_ref().is_some_and(|metrics| self.is_trained(metrics)) {
                info!("Stop training model as max steps reached");
                break;
            }
            let finished = if result.finished.is_none() && self.has_trained()? {
                info!("Stop training model as max steps reached");
                None
            } else {
                info!("Training model for {steps} steps");
                Some(self.call_train(|spec| spec.steps(steps))?)
            };
            info!("Evaluating model now.");
            let checkpoint = self.estimator.latest_checkpoint()?;
            if let Some(finished) = &finished {
                check_saved(finished, checkpoint.as_deref())?;
            }
            let metrics = self.evaluate_checkpoint(Some("one_pass"), checkpoint.as_deref())?;
            let exports = self.export(&metrics, None)?;
            last = Some(LastEvaluation { metrics: metrics.clone(), checkpoint });
            result = ExperimentResult { finished, metrics: Some(metrics), exports };
        }
        Ok(result)
    }

    /// Whether the last checkpoint is of the last step.
    fn has_trained(&self) -> Result<bool> {
        let (Some(checkpoint), Some(all)) = (self.estimator.latest_checkpoint()?, self.train_steps) else {
            return Ok(false);
        };
        Ok(own_entries::global_step(&BundleReader::open(&checkpoint)?)? >= all)
    }

    fn steps_per_iteration(&self) -> Result<u64> {
        let steps = match (self.train_steps_per_iteration, self.train_steps) {
            (Some(steps), _) => steps,
            (None, Some(all)) => all / 10,
            (None, None) => STEPS_PER_ITERATION,
        };
        if steps == 0 {
            let all = self.train_steps.unwrap_or_default();
            return Err(Error::config(format!(
                "train_steps is {all}, and a tenth of it is no whole step; expected at least 10"
            ))
            .help("set train_steps_per_iteration"));
        }
        Ok(steps)
    }

    /// Trains for one step, evaluates one batch without the hooks, and exports: shows that all
    /// parts work.
    pub fn test(&mut self) -> Result<ExperimentResult> {
        self.check()?;
        let finished = self.call_train(|spec| spec.steps(1))?;
        let spec = EvalSpec::new(Lent(&*self.eval_input)).steps(1).name("one_pass");
        let metrics = self.estimator.evaluate(spec)?;
        let exports = self.export(&metrics, None)?;
        Ok(ExperimentResult { finished: Some(finished), metrics: Some(metrics), exports })
    }

    /// Refused: this version has no parameter servers.
    ///
    /// In TensorFlow it starts a server of the cluster, and never returns.
    pub fn run_std_server(&mut self) -> Result<ExperimentResult> {
        Err(Error::unsupported(
            "run_std_server starts a parameter server, and this version has none: it trains in one process",
        )
        .help("run the schedule train_and_evaluate in one process, without ps tasks in TF_CONFIG"))
    }

    /// Waits, then trains up to `train_steps`.
    fn train_after<'b>(
        &'b self,
        delay_secs: Option<f64>,
        change: impl FnOnce(TrainSpec<'b>) -> TrainSpec<'b>,
    ) -> Result<Finished> {
        // An error that is known now must not come after the delay.
        self.estimator.check_may_train()?;
        let config = self.estimator.config();
        let task = config.cluster.as_ref().map_or(0, |cluster| cluster.task_index());
        let by_step = delay_secs.is_none() && self.delay_workers_by_global_step;
        let delay = match delay_secs {
            Some(secs) => secs,
            None if by_step => 0.0,
            None => worker_delay(task),
        };
        wait::check("delay_secs", delay)?;
        if delay > 0.0 {
            info!("Waiting {delay} secs before starting training.");
            self.wait.wait(delay)?;
        }
        self.call_train(|spec| {
            let spec = match by_step {
                true => spec.hook(GlobalStepWaiterHook::new(worker_step(task))),
                false => spec,
            };
            change(match self.train_steps {
                Some(step) => spec.max_steps(step),
                None => spec,
            })
        })
    }

    /// Calls `train` of the estimator with the hooks and listeners of the experiment first.
    fn call_train<'b>(&'b self, change: impl FnOnce(TrainSpec<'b>) -> TrainSpec<'b>) -> Result<Finished> {
        let mut spec = TrainSpec::new(Lent(&*self.train_input));
        for hook in &self.train_hooks {
            spec = spec.hook(hook.clone());
        }
        for listener in &self.listeners {
            spec = spec.listener(listener.clone());
        }
        self.estimator.train(change(spec))
    }

    /// Evaluates a checkpoint, or the newest, on the evaluation input.
    pub(super) fn evaluate_checkpoint(&self, name: Option<&str>, checkpoint: Option<&Path>) -> Result<Metrics> {
        self.evaluate_input(Lent(&*self.eval_input), name, checkpoint)
    }

    /// The same for any input.
    pub(super) fn evaluate_input(
        &self,
        input: Lent<'_>,
        name: Option<&str>,
        checkpoint: Option<&Path>,
    ) -> Result<Metrics> {
        let mut spec = EvalSpec::new(input);
        spec.steps = self.eval_steps;
        spec.name = name.map(str::to_string);
        if let Some(path) = checkpoint {
            spec = spec.checkpoint(path);
        }
        for hook in &self.eval_hooks {
            spec = spec.hook(hook.clone());
        }
        self.estimator.evaluate(spec)
    }

    /// Calls the export strategies for a checkpoint, or the newest.
    pub(super) fn export(&self, metrics: &Metrics, checkpoint: Option<&Path>) -> Result<Vec<PathBuf>> {
        let checkpoint = match checkpoint {
            Some(path) => Some(path.to_path_buf()),
            None => self.estimator.latest_checkpoint()?,
        };
        let Some(checkpoint) = checkpoint else { return Ok(Vec::new()) };
        self.strategies.borrow_mut().export(&self.estimator, &checkpoint, metrics, self.is_trained(metrics))
    }

    /// Whether an evaluation is that of the last step.
    pub(super) fn is_trained(&self, metrics: &Metrics) -> bool {
        self.train_steps.is_some_and(|last| metrics.global_step() >= last)
    }
}

/// Returns an error unless the newest checkpoint has the steps of a round.
fn check_saved(finished: &Finished, newest: Option<&Path>) -> Result<()> {
    let saved = newest.map(|path| own_entries::global_step(&BundleReader::open(path)?)).transpose()?;
    if saved.is_some_and(|step| step >= finished.global_step) {
        return Ok(());
    }
    let saved = saved.map_or_else(
        || "there is no checkpoint".to_string(),
        |step| format!("the newest checkpoint is of step {step}"),
    );
    Err(Error::config(format!(
        "a round ended at step {}, but {saved}, so the next round would do the same steps again",
        finished.global_step
    ))
    .help("set RunConfig::save_checkpoints"))
}

/// The delay of a worker in seconds.
fn worker_delay(task: usize) -> f64 {
    (task as f64 * 5.0).min(60.0)
}

/// The global step that a worker waits for.
fn worker_step(task: usize) -> u64 {
    (8000.0 * (task as f64 + 1.0).ln()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimand_fixture::cases_of;

    /// The delays that `oracles/gen/experiment.py` saw.
    #[test]
    fn workers_wait_as_in_tensorflow() {
        for case in cases_of("experiment", "delay") {
            let task: usize = case.setting("task");
            assert_eq!(worker_delay(task), case.setting::<f64>("secs"), "{case}");
            assert_eq!(worker_step(task), case.setting::<u64>("step"), "{case}");
        }
    }
}
