//! The model folder: one trainer, any number of readers, and no damage by a kill, a copy or a
//! divergence.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use estimand::graph::Minimize;
use estimand::graph::checkpoint::{self, CheckpointState};
use estimand::hook::{CheckpointListener, CheckpointSaverHook, Hook, HookContext};
use estimand::prelude::*;
use estimand::report::Report;
use estimand::tensor::ErrorKind;
use estimand::{FolderLock, MissingState, TrainSession};

use crate::killed;
use crate::models::{Folder, line, linear};

fn rows() -> Dataset {
    line(40).repeat_forever().batch(4)
}

fn config() -> RunConfig {
    RunConfig::new().tf_random_seed(3).save_checkpoints(Every::Steps(1)).threads(1)
}

fn model(folder: &Path, config: RunConfig) -> Estimator {
    Estimator::new(linear).config(config).model_dir(folder).build().unwrap()
}

fn event_files(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("tfevents")).count()
}

/// In a container every process has the id 1, so that a second run used the names of the first.
#[test]
fn files_of_a_killed_run_do_not_stop_the_next_and_are_removed() -> Result<()> {
    let folder = Folder::new();
    let process = std::process::id();
    for target in ["checkpoint", "graph.pbtxt", "model.ckpt-0.index", "model.ckpt-0.data-00000-of-00001"] {
        for count in 0..200 {
            fs::write(folder.path().join(format!("{target}.tmp-{process}-{count}")), b"half").unwrap();
        }
        fs::write(folder.path().join(format!("{target}.tmp-00112233445566ff")), b"half").unwrap();
    }
    model(folder.path(), config()).train(TrainSpec::new(rows()).max_steps(3))?;
    let left: Vec<String> = folder.files().into_iter().filter(|name| name.contains(".tmp-")).collect();
    assert_eq!(left, Vec::<String>::new());
    Ok(())
}

/// Runs a function once, after the first step.
struct Once<F: FnMut(&mut HookContext<'_>) -> Result<()>>(Option<F>);

impl<F: FnMut(&mut HookContext<'_>) -> Result<()>> Hook for Once<F> {
    fn name(&self) -> &str {
        "once"
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.0.take().map_or(Ok(()), |mut call| call(cx))
    }
}

fn once<F: FnMut(&mut HookContext<'_>) -> Result<()>>(call: F) -> Once<F> {
    Once(Some(call))
}

#[test]
fn a_second_training_in_one_folder_is_refused() -> Result<()> {
    let folder = Folder::new();
    let path = folder.path().to_path_buf();
    let hook = once(|_| {
        let second = model(&path, config());
        let error = second.train(TrainSpec::new(rows()).steps(1)).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Busy { path: path.clone() });
        let text = error.to_string();
        for part in [&format!("process {}", std::process::id()), "trains in", "FolderLock::Ignore"] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        // Readers are welcome.
        second.evaluate(EvalSpec::new(line(8).batch(4)))?;
        Ok(())
    });
    model(folder.path(), config()).train(TrainSpec::new(rows()).max_steps(3).hook(hook))?;
    // The folder is free again, and whoever says so is not asked.
    model(folder.path(), config().folder_lock(FolderLock::Ignore)).train(TrainSpec::new(rows()).max_steps(5))?;
    assert_eq!(folder.steps().last(), Some(&5));
    Ok(())
}

/// Only the built model says that it saves: the training then holds the folder, tells listeners,
/// and keeps what `Estimator::open` and a resumed training need. TensorFlow looks at the hooks of
/// the model, too.
#[test]
fn a_model_that_saves_by_itself_holds_its_folder() -> Result<()> {
    struct Saved(Rc<RefCell<Vec<u64>>>);
    impl CheckpointListener for Saved {
        fn after_save(&mut self, _session: &TrainSession, step: u64) -> Result<bool> {
            self.0.borrow_mut().push(step);
            Ok(false)
        }
    }
    let folder = Folder::new();
    let path = folder.path().to_path_buf();
    let saving = |cx: &ModelFnContext<'_>| Ok(linear(cx)?.training_hook(CheckpointSaverHook::new(Every::Steps(2))));
    let make = || {
        let config = RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Never);
        Estimator::new(saving).config(config).model_dir(&path).build()
    };
    let hook = once(|_| {
        let error = make()?.train(TrainSpec::new(rows()).steps(1)).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Busy { path: path.clone() });
        assert!(path.join("unfinished.json").exists());
        Ok(())
    });
    let steps = Rc::new(RefCell::new(Vec::new()));
    make()?.train(TrainSpec::new(rows()).max_steps(4).hook(hook).listener(Saved(steps.clone())))?;
    assert_eq!(*steps.borrow(), [0, 2, 4]);
    assert_eq!(folder.steps(), [0, 2, 4]);
    assert!(path.join("estimator.json").exists() && !path.join("unfinished.json").exists());
    Ok(())
}

#[test]
fn the_kernel_frees_the_folder_of_a_killed_process() -> Result<()> {
    let folder = Folder::new();
    let mut child = killed::start(folder.path());
    while killed::newest_step(folder.path()).is_none_or(|step| step == 0) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let busy = killed::train(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    // A child that was quick has nothing to refuse.
    if let Err(error) = busy {
        let text = error.to_string();
        assert!(text.contains(&format!("process {} on ", child.id())), "{text}");
    }
    killed::train(folder.path())
}

/// A trainer that keeps one checkpoint removes it a moment after a reader has found it.
#[test]
fn readers_beside_a_trainer_never_fail() -> Result<()> {
    let folder = Folder::new();
    let config = config().keep_checkpoint_max(1);
    let trainer = model(folder.path(), config.clone());
    trainer.train(TrainSpec::new(rows()).max_steps(1))?;
    std::thread::scope(|scope| {
        let training = scope.spawn(|| trainer.train(TrainSpec::new(rows()).max_steps(600)));
        let mut n_read = 0;
        while !training.is_finished() || n_read < 20 {
            let reader = model(folder.path(), config.clone());
            let data = line(8).batch(4);
            reader.evaluate(EvalSpec::new(&data))?;
            reader.evaluate(EvalSpec::new(&data).checkpoint(folder.path()))?;
            assert_eq!(reader.predict(&data).collect::<Result<Vec<_>>>()?.len(), 8);
            reader.variable_value("w")?;
            Report::read(folder.path())?;
            n_read += 1;
        }
        training.join().unwrap()?;
        Ok(())
    })
}

/// Killed after the list was written and before the files that left it were removed.
#[test]
fn files_that_left_the_list_are_removed_by_the_next_run() -> Result<()> {
    let folder = Folder::new();
    model(folder.path(), config().keep_checkpoint_max(9)).train(TrainSpec::new(rows()).max_steps(3))?;
    let listed: Vec<String> = (2..=3).map(|step| format!("model.ckpt-{step}")).collect();
    let state = CheckpointState {
        model_checkpoint_path: listed[1].clone(),
        all_model_checkpoint_paths: listed,
        ..CheckpointState::default()
    };
    let outside = folder.path().with_extension("outside");
    fs::write(outside.with_extension("index"), b"").unwrap();
    let name = format!("../{}", outside.file_stem().unwrap().display());
    let text = format!("{state}# evicted: model.ckpt-0\n# evicted: model.ckpt-3\n# evicted: {name}\n");
    fs::write(folder.path().join("checkpoint"), text).unwrap();
    model(folder.path(), config().keep_checkpoint_max(9)).train(TrainSpec::new(rows()).max_steps(4))?;
    // Step 1 was kept for other reasons; step 3 is on the list.
    assert_eq!(folder.steps(), [1, 2, 3, 4]);
    fs::remove_file(outside.with_extension("index")).unwrap();
    Ok(())
}

/// A copied folder whose list still names the original's files.
#[test]
fn eviction_removes_no_file_of_another_folder() -> Result<()> {
    let (original, copy) = (Folder::new(), Folder::new());
    model(original.path(), config()).train(TrainSpec::new(rows()).max_steps(4))?;
    let before = original.files();
    let relative = PathBuf::from("..").join(original.path().file_name().unwrap());
    let (absolute, relative) = (original.path().join("model.ckpt-2"), relative.join("model.ckpt-3"));
    let newest = original.path().join("model.ckpt-4").display().to_string();
    let state = CheckpointState {
        model_checkpoint_path: newest.clone(),
        all_model_checkpoint_paths: vec![absolute.display().to_string(), relative.display().to_string(), newest],
        ..CheckpointState::default()
    };
    checkpoint::write_state(copy.path(), &state)?;
    let finished = model(copy.path(), config().keep_checkpoint_max(2)).train(TrainSpec::new(rows()).max_steps(12))?;
    assert_eq!(finished.n_steps, 8, "the original's newest is read");
    assert_eq!(original.files(), before);
    assert_eq!(copy.steps(), [11, 12]);
    Ok(())
}

/// The loss is w x: its gradient does not depend on w, and with a rate near the largest number
///
/// - step 1 computes a loss of 0 and w = -3e38 * 0.9 = -2.7e38,
/// - step 2 a loss of -2.7e38 * 0.9, which is finite, and w = -5.4e38, which is not.
fn diverging(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let w = cx.graph().variable("layer/w", [], Initializer::Zeros);
    let unlimited = cx.graph().variable("limit", [], Initializer::Constant(f64::INFINITY));
    let y = (cx.feature("x") * &w).minimum(&unlimited);
    let spec = EstimatorSpec::new(cx).prediction("y", &y);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let rate = cx.params().f64("rate")?;
    let (loss, optimizer) = (y.mean(), Optimizer::new(Sgd::default(), rate));
    let train_op = optimizer.minimize(Minimize::new(&loss).variables([&w]).global_step(cx.global_step()));
    Ok(spec.loss(&loss).train_op(&train_op))
}

fn diverging_model(folder: &Path, rate: f64) -> Result<Estimator> {
    let params = HParams::new().set("rate", rate);
    Estimator::new(diverging).config(config().keep_checkpoint_max(1)).params(params).model_dir(folder).build()
}

fn constant() -> Dataset {
    Dataset::from_arrays([("x", Array::from([0.9f32])), ("y", Array::from([0.0f32]))])
        .label("y")
        .repeat_forever()
        .batch(1)
}

#[test]
fn no_run_goes_on_from_weights_that_are_not_finite() -> Result<()> {
    let folder = Folder::new();
    let error = diverging_model(folder.path(), 3e38)?.train(TrainSpec::new(constant()).max_steps(2)).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Diverged);
    let text = error.to_string();
    for part in ["step 2", "`layer/w` is -inf at element 0", "model.ckpt-1,"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert_eq!(folder.steps(), [1, 2], "the bad one is there to be looked at, the good one is not evicted");
    let model = diverging_model(folder.path(), 0.1)?;
    assert_eq!(model.latest_checkpoint()?, Some(folder.path().join("model.ckpt-1")));
    assert!(model.variable_value("layer/w")?.item::<f32>()?.is_finite());
    // Every run of the same program ends in the same way, and none begins anew.
    assert!(diverging_model(folder.path(), 3e38)?.train(TrainSpec::new(constant()).steps(1)).is_err());
    let finished = model.train(TrainSpec::new(constant()).steps(3))?;
    assert_eq!((finished.global_step, folder.steps()), (4, vec![4]));
    Ok(())
}

#[test]
fn a_lost_list_of_checkpoints_is_told() -> Result<()> {
    let folder = Folder::new();
    let list = folder.path().join("checkpoint");
    model(folder.path(), config()).train(TrainSpec::new(rows()).max_steps(3))?;
    fs::remove_file(&list).unwrap();

    let refusing = model(folder.path(), config());
    let data = line(8).batch(4);
    for text in [
        refusing.train(TrainSpec::new(rows()).max_steps(5)).unwrap_err().to_string(),
        refusing.evaluate(EvalSpec::new(&data)).unwrap_err().to_string(),
        refusing.predict(&data).next().unwrap().unwrap_err().to_string(),
    ] {
        for part in ["checkpoint", "4 of them", "model.ckpt-3", "MissingState::UseNewest"] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }
    let going_on = model(folder.path(), config().missing_state(MissingState::UseNewest));
    assert_eq!(going_on.evaluate(EvalSpec::new(&data))?.global_step(), 3);
    assert_eq!(going_on.train(TrainSpec::new(rows()).max_steps(5))?.n_steps, 2);
    assert!(list.exists());

    fs::remove_file(&list).unwrap();
    let anew = model(folder.path(), config().missing_state(MissingState::StartOver));
    assert_eq!(anew.train(TrainSpec::new(rows()).max_steps(2))?.n_steps, 2);
    Ok(())
}

/// Killed between the files of the first checkpoint and the list that names them.
#[test]
fn a_kill_in_the_first_save_is_no_lost_list() -> Result<()> {
    let folder = Folder::new();
    model(folder.path(), config()).train(TrainSpec::new(rows()).max_steps(1))?;
    checkpoint::write_state(folder.path(), &CheckpointState::default())?;
    assert_eq!(model(folder.path(), config()).train(TrainSpec::new(rows()).max_steps(2))?.n_steps, 2);
    Ok(())
}

#[test]
fn a_removed_model_folder_is_made_again_with_an_event_file() -> Result<()> {
    let folder = Folder::new();
    /// Training waits for a checkpoint if a listener wants to know of it: nothing is being written
    /// when the folder goes.
    struct Waits;
    impl CheckpointListener for Waits {}
    let hook = once(|cx| {
        fs::remove_dir_all(cx.model_dir()).unwrap();
        Ok(())
    });
    let spec = TrainSpec::new(rows()).max_steps(4).listener(Waits).hook(hook);
    model(folder.path(), config()).train(spec)?;
    assert_eq!(event_files(folder.path()), 1);
    assert_eq!(folder.steps().last(), Some(&4));
    assert_eq!(Report::read(folder.path())?.runs()[0].last_step, 4);
    Ok(())
}

#[test]
fn many_calls_leave_one_event_file_for_each_folder() -> Result<()> {
    let folder = Folder::new();
    let estimator = model(folder.path(), config());
    let data = line(8).batch(4);
    for step in 1..=20 {
        estimator.train(TrainSpec::new(rows()).max_steps(step))?;
        estimator.evaluate(EvalSpec::new(&data))?;
        estimator.evaluate(EvalSpec::new(&data).name("other"))?;
    }
    for folder in [folder.path().to_path_buf(), folder.path().join("eval"), folder.path().join("eval_other")] {
        assert_eq!(event_files(&folder), 1, "{}", folder.display());
    }
    let report = Report::read(folder.path())?;
    assert_eq!(report.runs().len(), 20);
    for (run, step) in report.runs().iter().zip(1..) {
        assert_eq!((run.first_step, run.last_step, run.n_steps()), (Some(step), step, 1));
    }
    Ok(())
}

#[test]
fn a_temporary_model_folder_goes_with_its_estimator() -> Result<()> {
    let estimator = Estimator::new(linear).config(config()).build()?;
    estimator.train(TrainSpec::new(rows()).max_steps(2))?;
    let folder = estimator.model_dir().to_path_buf();
    assert!(folder.join("checkpoint").exists());
    drop(estimator);
    assert!(!folder.exists());
    Ok(())
}
