//! The evaluations of a training, implemented as a hook. A checkpoint listener calls the exporters,
//! which wait for the checkpoint.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use estimand_tensor::{Error, Result, warn};
use serde_json::{Map, Value};

use super::eval_set::{EvalSet, is_signal};
use super::{Evaluated, Trained};
use crate::hook::{CheckpointListener, Hook, HookContext};
use crate::session::TrainSession;
use crate::unfinished::Unfinished;
use crate::{EarlyStopping, Estimator, EvalSpec, TrainSpec};

/// The hook's name, under which checkpoints store its state.
pub(crate) const EVALUATIONS: &str = "evaluations";

/// Trains, with a hook for the evaluations.
pub(super) fn train<'a>(
    estimator: &'a Estimator,
    mut train: TrainSpec<'a>,
    specs: Vec<EvalSpec<'a>>,
) -> Result<Trained> {
    let n_exporters: usize = specs.iter().map(|spec| spec.exporters.len()).sum();
    let names: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
    let saves = train.saves_checkpoints(estimator.config());
    let restores = |spec: &EvalSpec<'_>| spec.early_stopping.as_ref().is_some_and(EarlyStopping::restores_best);
    if !saves && specs.iter().any(restores) {
        return Err(Error::config("early stopping asks for restore_best, but no checkpoints are saved")
            .help("set RunConfig::save_checkpoints, or remove restore_best()"));
    }
    let shared = Rc::new(RefCell::new(Evaluations {
        estimator,
        specs,
        saves,
        sets: Vec::new(),
        first_step: 0,
        state: None,
        exports: Vec::new(),
    }));
    if n_exporters > 0 {
        train = train.listener(Exports(shared.clone()));
    }
    let finished = estimator.train(train.hook(Evaluate(shared.clone())))?;
    let mut all = shared.borrow_mut();
    for text in all.sets.iter().filter(|_| finished.n_steps > 1).filter_map(EvalSet::too_rarely) {
        warn!("{text}");
    }
    let mut evaluations: Vec<Evaluated> = std::mem::take(&mut all.sets).into_iter().map(EvalSet::finish).collect();
    if evaluations.is_empty() {
        // Nothing was trained, so nothing was evaluated.
        evaluations = names.into_iter().map(Evaluated::none).collect();
    }
    Ok(Trained { finished, evaluations, exports: std::mem::take(&mut all.exports) })
}

/// All evaluations of a training.
struct Evaluations<'a> {
    estimator: &'a Estimator,
    /// `specs` is used until the training begins; `sets` afterwards.
    specs: Vec<EvalSpec<'a>>,
    /// Whether the training saves checkpoints.
    saves: bool,
    sets: Vec<EvalSet<'a>>,
    first_step: u64,
    /// The state from the checkpoint, until the sets are built.
    state: Option<Value>,
    exports: Vec<PathBuf>,
}

impl Evaluations<'_> {
    /// Evaluates the sets that are due. Returns whether this step needs a checkpoint: exporters
    /// wait for it, or an evaluation is the best so far.
    fn evaluate(
        &mut self,
        cx: &mut HookContext<'_>,
        has_checkpoint: bool,
        is_due: impl Fn(&EvalSet<'_>) -> bool,
    ) -> Result<bool> {
        let step = cx.global_step();
        let path = self.estimator.model_dir().join(format!("model.ckpt-{step}"));
        let checkpoint = has_checkpoint.then_some(&*path);
        let is_last_step = cx.requests.last_step.is_some_and(|last| step >= last);
        let (mut waits, mut recorded) = (false, Ok(()));
        for set in self.sets.iter_mut().filter(|set| is_due(set)) {
            let stop = set.evaluate(self.estimator, cx.session(), is_last_step);
            if is_signal(&stop) {
                cx.requests.is_interrupted = true;
                continue;
            }
            if let Some(reason) = stop? {
                cx.request_stop(reason);
            }
            waits |= set.has_pending() || (self.saves && set.is_best());
            recorded = recorded.and(set.record(checkpoint));
        }
        recorded?;
        let notes: Vec<String> = self.sets.iter().filter_map(EvalSet::summary).collect();
        cx.show(notes.join(", "));
        Ok(waits)
    }

    /// Completes the work of a run that was killed or failed: exporters that were not called,
    /// results missing in event files, and the results of its last step.
    fn go_on(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let (step, is_last) = (cx.global_step(), cx.is_last());
        let unfinished = Unfinished::of(self.estimator.model_dir(), Some(step));
        let is_told = unfinished.as_ref().is_none_or(|run| run.is_told(step));
        for set in &mut self.sets {
            if is_told {
                set.forget_pending();
            }
            let is_lost = unfinished.is_some()
                && set.is_evaluated(step)
                && (is_last || !set.is_recorded(self.estimator, step)?);
            if set.has_pending() || is_lost {
                set.evaluate_again(self.estimator, cx.session())?;
            }
        }
        // The run before this one was interrupted during these evaluations, and saved its progress.
        if self.sets.iter().any(|set| set.is_interrupted(step))
            && self.evaluate(cx, true, |set| set.is_interrupted(step))?
        {
            self.export()?;
        }
        Ok(())
    }

    fn export(&mut self) -> Result<()> {
        if !self.sets.iter().any(EvalSet::has_pending) {
            return Ok(());
        }
        let Some(checkpoint) = self.estimator.latest_checkpoint()? else { return Ok(()) };
        for set in &mut self.sets {
            set.export(self.estimator, &checkpoint, &mut self.exports)?;
        }
        Ok(())
    }
}

/// The evaluations as a hook.
struct Evaluate<'a>(Rc<RefCell<Evaluations<'a>>>);

impl Hook for Evaluate<'_> {
    fn name(&self) -> &str {
        EVALUATIONS
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let mut all = self.0.borrow_mut();
        let estimator = all.estimator;
        all.first_step = cx.global_step();
        for spec in std::mem::take(&mut all.specs) {
            let mut set = EvalSet::new(estimator, spec)?;
            set.begin(all.first_step);
            if let Some(state) = &all.state {
                set.restore(state)?;
            }
            all.sets.push(set);
        }
        all.go_on(cx)
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let (mut all, step) = (self.0.borrow_mut(), cx.global_step());
        if all.sets.iter().any(|set| set.is_due(step)) && all.evaluate(cx, false, |set| set.is_due(step))? {
            cx.request_save();
        }
        Ok(())
    }

    /// The first checkpoint of a run holds the state that the previous run ended with, or an
    /// untrained model.
    fn before_save(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let (mut all, step) = (self.0.borrow_mut(), cx.global_step());
        let is_last = cx.is_last();
        // The results of the last step belong in the last checkpoint. An interrupted run has no
        // last step.
        let is_due = |set: &EvalSet<'_>| (is_last || set.is_due_with_checkpoint()) && !set.is_evaluated(step);
        let mut evaluated = Ok(false);
        if step > all.first_step && !cx.requests.is_interrupted {
            all.sets
                .iter_mut()
                .filter(|set| !is_due(set) && !set.is_evaluated(step))
                .for_each(EvalSet::skip_checkpoint);
            if all.sets.iter().any(is_due) {
                evaluated = all.evaluate(cx, true, is_due);
            }
        }
        // Also if an evaluation has failed: the checkpoint is saved.
        cx.requests.best = Some(all.sets.iter().filter_map(EvalSet::best_checkpoint).collect());
        evaluated.map(drop)
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let (mut all, step) = (self.0.borrow_mut(), cx.global_step());
        if cx.requests.is_interrupted {
            return Ok(());
        }
        let is_saved = !all.estimator.config().save_checkpoints.is_never();
        if all.evaluate(cx, is_saved, |set| !set.is_evaluated(step))? {
            cx.request_save();
        }
        cx.requests.restore = all.sets.iter().find_map(EvalSet::step_to_restore);
        Ok(())
    }

    fn state(&self) -> Option<Vec<u8>> {
        let all: Map<String, Value> = self.0.borrow().sets.iter().map(EvalSet::state).collect();
        Some(Value::Object(all).to_string().into_bytes())
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        let state = serde_json::from_slice(state)
            .map_err(|e| Error::data(format!("the state of the evaluations in the checkpoint cannot be read: {e}")))?;
        self.0.borrow_mut().state = Some(state);
        Ok(())
    }
}

/// The evaluations as a listener: calls exporters once the checkpoint is written.
struct Exports<'a>(Rc<RefCell<Evaluations<'a>>>);

impl CheckpointListener for Exports<'_> {
    fn after_save(&mut self, _session: &TrainSession, _step: u64) -> Result<bool> {
        self.0.borrow_mut().export()?;
        Ok(false)
    }

    /// The last evaluation may belong to a checkpoint that was saved earlier.
    fn end(&mut self, _session: &TrainSession, _step: u64) -> Result<()> {
        self.0.borrow_mut().export()
    }
}
