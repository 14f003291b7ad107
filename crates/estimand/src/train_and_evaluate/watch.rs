//! The loop of an evaluator process: it watches the model folder for checkpoints of another process
//! and evaluates them.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use estimand_tensor::{Error, ErrorKind, Result, warn};
use serde_json::{Map, Value};
use tracing::info;

use super::Trained;
use super::eval_set::EvalSet;
use crate::estimator::Finished;
use crate::model_folder::best::EVALUATOR_STATE;
use crate::signal::Guard;
use crate::{Estimator, EvalSpec, TrainSpec};

/// The time between two checks of the folder.
const POLL: Duration = Duration::from_millis(200);
/// The time between two warnings that no new checkpoint was found.
const WARN: Duration = Duration::from_secs(600);

/// Evaluates every checkpoint that it finds, up to that of the last step.
pub(super) fn watch<'a>(estimator: &'a Estimator, train: TrainSpec<'a>, specs: Vec<EvalSpec<'a>>) -> Result<Trained> {
    check(estimator, &specs)?;
    let signals = Guard::install()?;
    let mut sets: Vec<EvalSet<'a>> =
        specs.into_iter().map(|spec| EvalSet::new(estimator, spec)).collect::<Result<_>>()?;
    let state_path = estimator.model_dir().join(EVALUATOR_STATE);
    if let Ok(text) = std::fs::read_to_string(&state_path) {
        let state: Value = serde_json::from_str(&text).map_err(|e| {
            Error::data(format!("the state of earlier evaluations cannot be read: {e}")).in_file(&state_path)
        })?;
        sets.iter_mut().try_for_each(|set| set.restore(&state))?;
    }
    let (start, mut news) = (Instant::now(), News { since: Instant::now(), warned: None });
    let mut evaluated: Vec<Option<PathBuf>> = vec![None; sets.len()];
    let mut exports = Vec::new();
    loop {
        if let Some(signal) = signals.requested() {
            let message = format!("evaluation was interrupted by {signal}");
            return Err(Error::new(ErrorKind::Interrupted, message).help("run the program again to continue"));
        }
        let newest = estimator.latest_checkpoint()?;
        let mut is_new = false;
        for (set, evaluated) in sets.iter_mut().zip(&mut evaluated) {
            let Some(checkpoint) = newest.as_ref().filter(|newest| evaluated.as_ref() != Some(newest)) else {
                continue;
            };
            is_new = true;
            if start.elapsed().as_secs_f64() < set.start_delay_secs || !set.is_due_with_checkpoint() {
                continue;
            }
            let is_last = |step| train.max_steps.is_some_and(|max| step >= max);
            match set.evaluate_checkpoint(estimator, checkpoint, is_last) {
                // The trainer has meanwhile written other checkpoints and removed this one.
                Err(_) if !PathBuf::from(format!("{}.index", checkpoint.display())).exists() => continue,
                done => done?,
            }
            set.export(estimator, checkpoint, &mut exports)?;
            *evaluated = Some(checkpoint.clone());
        }
        if is_new {
            let state: Map<String, Value> = sets.iter().map(EvalSet::state).collect();
            estimand_checkpoint::write_text(&state_path, &Value::Object(state).to_string())?;
            news = News { since: Instant::now(), warned: None };
        }
        let last = sets.iter().map(EvalSet::last_step).min().flatten();
        if let (Some(last), Some(max)) = (last, train.max_steps)
            && last >= max
        {
            let reason = format!("step {last} was evaluated, and max_steps is {max}");
            info!("Exiting evaluation: {reason}");
            let finished = Finished { global_step: last, n_steps: 0, loss: None, reason };
            return Ok(Trained { finished, evaluations: sets.into_iter().map(EvalSet::finish).collect(), exports });
        }
        news.warn_if_none(newest.is_some(), estimator);
        thread::sleep(POLL);
    }
}

/// Checks the settings: an evaluator has no access to the training, and there is only one.
fn check(estimator: &Estimator, specs: &[EvalSpec<'_>]) -> Result<()> {
    let index = estimator.config().cluster.as_ref().map_or(0, |cluster| cluster.task_index());
    if index > 0 {
        return Err(Error::new(
            ErrorKind::Cluster,
            format!("TF_CONFIG makes this process evaluator {index}; a cluster can have only one evaluator"),
        )
        .help("give it the index 0"));
    }
    for spec in specs {
        if spec.every.is_some() {
            return Err(Error::config("an EvalSpec sets `every`, but an evaluator sees checkpoints, not steps")
                .help("use throttle_secs"));
        }
        if spec.early_stopping.is_some() {
            return Err(Error::config("an EvalSpec sets early_stopping, but an evaluator cannot end the training")
                .help("give the TrainSpec a stop_if_no_increase_hook, which reads the results of the evaluator"));
        }
    }
    Ok(())
}

/// Tracks how long no new checkpoint was found.
struct News {
    since: Instant,
    warned: Option<Instant>,
}

impl News {
    fn warn_if_none(&mut self, has_checkpoint: bool, estimator: &Estimator) {
        let is_time = self.warned.is_none_or(|warned| warned.elapsed() >= WARN);
        if self.since.elapsed() < POLL * 2 || !is_time {
            return;
        }
        let what = if has_checkpoint { "no new checkpoint" } else { "no checkpoint yet" };
        warn!("Evaluation waits: there is {what} in {}", estimator.model_dir().display());
        self.warned = Some(Instant::now());
    }
}
