//! Runs the contract on every hook of the list, and on hooks that break it.

use std::path::Path;

use estimand::graph::checkpoint;
use estimand::hook::testing::check_hook;
use estimand::hook::{ALL_HOOKS, CheckpointListener, CheckpointSaverHook, Hook, HookContext};
use estimand::prelude::*;

use super::{endless, estimator};
use crate::models::Folder;
use crate::recorder::{Log, Recorder};

#[test]
fn every_hook_keeps_the_contract() -> Result<()> {
    ALL_HOOKS.iter().try_for_each(|make| check_hook(make))
}

/// A hook that breaks one law, by its name.
struct Bad(&'static str, u8);

impl Hook for Bad {
    fn name(&self) -> &str {
        match self.0 {
            "names" => "a bad/name",
            _ => "bad",
        }
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.1 = self.1.saturating_add(1);
        if self.0 == "bits" && cx.global_step() == 7 {
            let w = cx.session().value("w")?.item::<f32>()?;
            cx.session().set_value("w", &Array::from(w + 1e-6))?;
        }
        Ok(())
    }

    fn state(&self) -> Option<Vec<u8>> {
        (self.0 == "state").then(|| vec![self.1, 1])
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match self.0 == "modes" && cx.loss().is_none() {
            true => Err(Error::config("only for training")),
            false => Ok(()),
        }
    }
}

#[test]
fn a_hook_that_breaks_the_contract_is_found_out() {
    for law in ["names", "bits", "state", "modes"] {
        let error = check_hook(|_| Box::new(Bad(law, 0))).unwrap_err().to_string();
        assert!(error.contains(&format!("in the hook contract, {law}, for")), "{error}");
    }
}

fn newest(folder: &Path) -> u64 {
    let prefix = checkpoint::latest_checkpoint(folder).unwrap().unwrap();
    prefix.to_str().unwrap().rsplit('-').next().unwrap().parse().unwrap()
}

/// A hook that fails in a phase: hook and phase are named, nothing is saved any more, and what was
/// saved is whole.
#[test]
fn a_failing_hook_leaves_the_last_checkpoint() -> Result<()> {
    struct Failing(&'static str);
    impl Failing {
        fn at(&self, phase: &str, step: u64, wanted: u64) -> Result<()> {
            match self.0 == phase && step == wanted {
                true => Err(Error::config("out of luck")),
                false => Ok(()),
            }
        }
    }
    impl Hook for Failing {
        fn name(&self) -> &str {
            "failing"
        }
        fn begin(&mut self, _cx: &mut estimand::hook::BeginContext<'_>) -> Result<()> {
            self.at("begin", 0, 0)
        }
        fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
            self.at("after_create_session", cx.global_step(), 2)
        }
        fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
            self.at("before_run", cx.global_step(), 5)
        }
        fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
            self.at("after_run", cx.global_step(), 5)
        }
        fn before_save(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
            self.at("before_save", cx.global_step(), 6)
        }
        fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
            self.at("end", cx.global_step(), 7)
        }
    }
    for (phase, left) in
        [("begin", 2), ("after_create_session", 2), ("before_run", 4), ("after_run", 4), ("before_save", 6), ("end", 6)]
    {
        let folder = Folder::new();
        let model = estimator(&folder, 2);
        model.train(TrainSpec::new(endless()).max_steps(2))?;
        let log = Log::default();
        let spec = TrainSpec::new(endless()).max_steps(7).hook(Failing(phase)).hook(Recorder::new(&log));
        let error = model.train(spec).unwrap_err().to_string();
        assert!(error.contains("out of luck") && error.contains(&format!("in {phase} of hook `failing`")), "{error}");
        assert!(!log.0.borrow().contains(&"end".to_string()), "{phase}: {:?}", log.0.borrow());
        assert_eq!(newest(folder.path()), left, "{phase}");
        // And training goes on as if nothing had happened.
        assert_eq!(model.train(TrainSpec::new(endless()).max_steps(7))?.global_step, 7);
    }
    Ok(())
}

/// Notes what it is told; may fail, or ask for the end.
struct Listener {
    log: Log,
    fail: &'static str,
    stop: bool,
}

impl Listener {
    fn note(&self, phase: &str, step: Option<u64>) -> Result<()> {
        self.log.0.borrow_mut().push(step.map_or(phase.to_string(), |step| format!("{phase} {step}")));
        match self.fail == phase {
            true => Err(Error::config("no room")),
            false => Ok(()),
        }
    }
}

impl CheckpointListener for Listener {
    fn begin(&mut self) -> Result<()> {
        self.note("begin", None)
    }

    fn before_save(&mut self, _session: &estimand::TrainSession, step: u64) -> Result<()> {
        self.note("before_save", Some(step))
    }

    fn after_save(&mut self, _session: &estimand::TrainSession, step: u64) -> Result<bool> {
        self.note("after_save", Some(step))?;
        Ok(self.stop)
    }

    fn end(&mut self, _session: &estimand::TrainSession, step: u64) -> Result<()> {
        self.note("end", Some(step))
    }
}

/// Their wish to stop counts at checkpoints between steps: not at the first, and not at the last.
#[test]
fn listeners_hear_of_every_checkpoint() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, 2);
    let listener = |log: &Log, stop| Listener { log: log.clone(), fail: "", stop };
    let log = Log::default();
    model.train(TrainSpec::new(endless()).max_steps(3).listener(listener(&log, false)))?;
    let phases = [
        "begin",
        "before_save 0",
        "after_save 0",
        "before_save 2",
        "after_save 2",
        "before_save 3",
        "after_save 3",
        "end 3",
    ];
    assert_eq!(*log.0.borrow(), phases);

    // From a hook of one's own. TF: a run tells of a save at its first step, also where it was
    // restored from the checkpoint of that step. (TensorFlow 2.15, `train(steps=4)` twice: begin,
    // 0, 3, 4, end 4; begin, 4, 7, 8, end 8)
    let files = || std::fs::read(folder.path().join("model.ckpt-3.index")).unwrap();
    let (before, log) = (files(), Log::default());
    let saver = CheckpointSaverHook::new(Every::Steps(2)).listener(listener(&log, true));
    let finished = model.train(TrainSpec::new(endless()).max_steps(20).hook(saver))?;
    assert_eq!((finished.global_step, finished.reason.as_str()), (4, "a listener of checkpoints asked for it"));
    let phases = ["begin", "before_save 3", "after_save 3", "before_save 4", "after_save 4", "end 4"];
    assert_eq!(*log.0.borrow(), phases, "steps are counted from 0");
    assert_eq!(files(), before);
    Ok(())
}

/// An input without a batch is refused before a listener is told of anything.
#[test]
fn a_run_without_batches_tells_of_nothing() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, 2);
    model.train(TrainSpec::new(endless()).max_steps(5))?;
    let log = Log::default();
    let listener = Listener { log: log.clone(), fail: "", stop: false };
    let empty = endless().take(0);
    let error = model.train(TrainSpec::new(empty).listener(listener)).unwrap_err().to_string();
    assert!(error.contains("nothing to train on: the input has no batch"), "{error}");
    assert!(log.0.borrow().is_empty());
    Ok(())
}

#[test]
fn a_listener_that_fails_is_named_by_its_phase() {
    for (phase, left) in [("begin", None), ("before_save", None), ("after_save", Some(0)), ("end", Some(3))] {
        let folder = Folder::new();
        let listener = Listener { log: Log::default(), fail: phase, stop: false };
        let spec = TrainSpec::new(endless()).max_steps(3).listener(listener);
        let error = estimator(&folder, 2).train(spec).unwrap_err().to_string();
        let place = format!("in {phase} of a listener of checkpoints");
        assert!(error.contains("no room") && error.contains(&place), "{error}");
        assert_eq!(checkpoint::latest_checkpoint(folder.path()).unwrap().is_some(), left.is_some(), "{phase}");
        left.inspect(|&step| assert_eq!(newest(folder.path()), step));
    }
}
