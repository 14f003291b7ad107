//! The behaviour that users of TensorFlow's Estimator rely on, case by case. The numbers are those
//! of the inventory of TensorFlow's behaviour.

use std::cell::RefCell;
use std::rc::Rc;

use estimand::hook::{CheckpointListener, CheckpointSaverHook};
use estimand::prelude::*;
use estimand::{ExportOutput, TrainSession};

use crate::models::{Folder, line, linear, network, points};
use crate::recorder::{Log, Recorder};

fn estimator(folder: &Folder, config: RunConfig) -> Estimator {
    Estimator::new(linear).model_dir(folder.path()).config(config).build().unwrap()
}

fn every(n: u64) -> RunConfig {
    RunConfig::new().save_checkpoints(Every::Steps(n)).tf_random_seed(1)
}

/// Cases 85 and 86.
#[test]
fn steps_are_counted_over_calls() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, RunConfig::new());
    let data = line(10).batch(4);
    assert_eq!(model.train(&data)?.global_step, 3);
    let second = model.train(TrainSpec::new(&data).steps(10))?;
    assert_eq!((second.global_step, second.reason.as_str()), (6, "the input ended"));
    let third = model.train(TrainSpec::new(&data).steps(2))?;
    assert_eq!((third.global_step, third.reason.as_str()), (8, "step 8 is reached"));
    assert_eq!(model.train(TrainSpec::new(&data).max_steps(9))?.global_step, 9);
    let skipped = model.train(TrainSpec::new(&data).max_steps(9))?;
    assert_eq!((skipped.global_step, skipped.n_steps, skipped.loss), (9, 0, None));
    assert!(skipped.reason.contains("was reached before"), "{}", skipped.reason);

    for (spec, text) in [
        (TrainSpec::new(&data).steps(1).max_steps(1), "both steps and max_steps"),
        (TrainSpec::new(&data).steps(0), "steps is 0"),
        (TrainSpec::new(&data).max_steps(0), "max_steps is 0"),
    ] {
        let error = model.train(spec).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert!(model.evaluate(EvalSpec::new(&data).steps(0)).unwrap_err().to_string().contains("0 steps"));
    Ok(())
}

/// Cases 87 and 88.
#[test]
fn a_model_that_was_never_trained_has_its_initial_values() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, RunConfig::new());
    let data = line(4).batch(2);
    let metrics = model.evaluate(&data)?;
    // y is 0, 0.75, 1.5, 2.25 and the prediction 0: batches of (0 + 0.5625) / 2 and (2.25 + 5.0625)
    // / 2.
    assert_eq!((metrics["loss"], metrics["mae"], metrics.global_step()), (1.96875, 1.125, 0));
    assert_eq!(*model.predict(PredictSpec::new(&data).untrained()).next().unwrap()?.array("y")?, Array::from(0.0f32));
    assert!(model.variable_names().unwrap_err().to_string().contains("no checkpoint"));
    assert_eq!(model.latest_checkpoint()?, None);
    Ok(())
}

/// With a period that is over at once, every checkpoint that leaves the list stays on the disk.
#[test]
fn checkpoints_stay_for_ever_at_a_period() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, every(1).keep_checkpoint_max(2).keep_checkpoint_every_n_hours(1e-9));
    model.train(TrainSpec::new(line(10).repeat_forever().batch(4)).steps(4))?;
    // The first was saved before the period was over.
    assert!(folder.steps().ends_with(&[2, 3, 4]) && folder.steps().len() >= 4, "{:?}", folder.steps());
    let state = std::fs::read_to_string(folder.path().join("checkpoint")).unwrap();
    assert_eq!(state.matches("all_model").count(), 2, "{state}");
    Ok(())
}

/// Cases 89, 90 and 91.
#[test]
fn checkpoints_are_kept_as_asked_for() -> Result<()> {
    let data = line(10).repeat_forever().batch(4);
    let folder = Folder::new();
    let model = estimator(&folder, every(2).keep_checkpoint_max(3));
    let saved: Rc<RefCell<Vec<u64>>> = Rc::default();
    struct Saved(Rc<RefCell<Vec<u64>>>);
    impl CheckpointListener for Saved {
        fn before_save(&mut self, session: &TrainSession, step: u64) -> Result<()> {
            assert_eq!(session.global_step(), step);
            self.0.borrow_mut().push(step);
            Ok(())
        }
    }
    model.train(TrainSpec::new(&data).steps(7).listener(Saved(saved.clone())))?;
    assert_eq!(*saved.borrow(), [0, 2, 4, 6, 7]);
    assert_eq!(folder.steps(), [4, 6, 7]);
    let state = std::fs::read_to_string(folder.path().join("checkpoint")).unwrap();
    let all: Vec<_> = state.lines().filter(|line| line.starts_with("all_model")).collect();
    assert_eq!(all.len(), 3, "{state}");
    assert!(state.starts_with("model_checkpoint_path: \"model.ckpt-7\""), "{state}");
    for name in ["checkpoint", "events", "graph.pbtxt", "model.ckpt-7.data-00000-of-00001", "model.ckpt-7.index"] {
        assert!(folder.files().contains(&name.to_string()), "{name} of {:?}", folder.files());
    }

    // All of them, also in the list (unlike the original, decision on case 90).
    let folder = Folder::new();
    estimator(&folder, every(1).keep_checkpoint_max(None)).train(TrainSpec::new(&data).steps(4))?;
    assert_eq!(folder.steps(), [0, 1, 2, 3, 4]);

    let folder = Folder::new();
    let model = estimator(&folder, every(1).keep_checkpoint_max(2));
    model.train(TrainSpec::new(&data).steps(4))?;
    assert_eq!(folder.steps(), [3, 4]);
    estimator(&folder, every(1).keep_checkpoint_max(2)).train(TrainSpec::new(&data).steps(2))?;
    assert_eq!(folder.steps(), [5, 6]);
    Ok(())
}

/// Cases 92 and 93: an enum for the original's pair of numbers.
#[test]
fn no_checkpoints_if_none_are_wanted() -> Result<()> {
    for never in [Every::Never, Every::Steps(0)] {
        let folder = Folder::new();
        let model = estimator(&folder, RunConfig::new().save_checkpoints(never));
        model.train(line(10).batch(4))?;
        assert_eq!(folder.files(), ["events", "graph.pbtxt"]);
        let bare = Folder::new();
        let config = RunConfig::new().save_checkpoints(never).checkpoint_save_graph_def(false);
        estimator(&bare, config).train(line(10).batch(4))?;
        assert_eq!(bare.files(), ["events"]);

        struct Silent;
        impl CheckpointListener for Silent {}
        let error = model.train(TrainSpec::new(line(10).batch(4)).listener(Silent)).unwrap_err().to_string();
        assert!(error.contains("checkpoint listeners"), "{error}");
    }
    Ok(())
}

/// Case 94, as decided: an error that names the files.
#[test]
fn a_state_file_that_names_missing_files_is_an_error() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, every(100));
    let data = line(10).batch(4);
    model.train(&data)?;
    for name in folder.files().iter().filter(|name| name.starts_with("model.ckpt")) {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    for error in [model.train(&data).unwrap_err(), model.evaluate(&data).unwrap_err()] {
        let text = error.to_string();
        assert!(text.contains("model.ckpt-3") && text.contains("to start over"), "{text}");
    }
    Ok(())
}

/// Case 95.
#[test]
fn a_loss_that_is_nan_ends_the_training() {
    let folder = Folder::new();
    let params = HParams::new().set("rate", 1e30);
    let model = Estimator::new(linear).params(params).config(every(2)).model_dir(folder.path()).build().unwrap();
    let error = model.train(TrainSpec::new(line(8).repeat_forever().batch(4)).steps(50)).unwrap_err();
    assert_eq!(*error.kind(), estimand::tensor::ErrorKind::Diverged);
    assert!(error.to_string().contains("lower the learning rate"), "{error}");
    assert!(!folder.steps().is_empty());
}

/// What happened to a hook, in order.
/// Cases 96 and 100.
#[test]
fn hooks_are_called_in_their_phases() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, every(100));
    let data = line(10).batch(4);
    let log = Log::default();
    let finished = model.train(TrainSpec::new(&data).hook(Recorder { stop_at: Some(2), ..Recorder::new(&log) }))?;
    assert_eq!((finished.global_step, finished.reason.as_str()), (2, "enough"));
    let expected = ["begin", "created 0 None", "before", "after 1 Some(4)", "before", "after 2 Some(4)", "end"];
    assert_eq!(*log.0.borrow(), expected);
    assert_eq!(folder.steps(), [0, 2]);

    let log = Log::default();
    let error =
        model.train(TrainSpec::new(&data).hook(Recorder { fail_at: Some(3), ..Recorder::new(&log) })).unwrap_err();
    assert!(
        error.to_string().contains("out of luck") && error.to_string().contains("after_run of hook `recorder`"),
        "{error}"
    );
    assert_ne!(log.0.borrow().last().unwrap(), "end", "no end after an error");
    assert_eq!(folder.steps(), [0, 2], "and no checkpoint");
    Ok(())
}

/// Case 97, as decided: an error, where TensorFlow saves a model that was not trained.
#[test]
fn an_empty_input_is_refused_and_saves_nothing() {
    for empty in [line(10).take(0).batch(4), line(9).batch(100).drop_remainder()] {
        let folder = Folder::new();
        let error = estimator(&folder, every(100)).train(empty).unwrap_err().to_string();
        assert!(error.contains("nothing to train on: the input has no batch"), "{error}");
        assert!(folder.steps().is_empty());
    }
}

/// Case 122, as decided: the program's learning rate wins.
#[test]
fn a_new_learning_rate_counts_on_resume() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(8);
    let with = |rate: f64| {
        let params = HParams::new().set("rate", rate);
        Estimator::new(linear).params(params).config(every(1)).model_dir(folder.path()).build()
    };
    with(0.5)?.train(&data)?;
    let before = with(0.5)?.variable_value("w")?;
    with(0.0)?.train(&data)?;
    assert_eq!(with(0.0)?.variable_value("w")?, before);
    Ok(())
}

/// Case 123, as decided: a readable difference and three choices.
#[test]
fn another_model_in_the_folder_is_told_apart() -> Result<()> {
    let folder = Folder::new();
    estimator(&folder, every(1)).train(line(8).batch(8))?;
    let wide = |cx: &ModelFnContext<'_>| {
        let w = cx.graph().variable("w", [1], Initializer::Zeros);
        let b = cx.graph().variable("b", [], Initializer::Zeros);
        let loss = (cx.feature("x") * w + b - cx.label()).square().mean();
        Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
    };
    let error = Estimator::new(wide).model_dir(folder.path()).build()?.train(line(8).batch(8)).unwrap_err();
    let text = error.to_string();
    for part in [
        "`w` is f32[] in the checkpoint and f32[1] in the model",
        "`b` f32[] is in the model",
        "resume:",
        "restart:",
        "warm-start:",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    Ok(())
}

/// Case 124, the plain form.
#[test]
fn a_warm_start_takes_the_trained_variables() -> Result<()> {
    let (first, second) = (Folder::new(), Folder::new());
    let data = line(8).repeat(20).batch(8);
    estimator(&first, every(100)).train(&data)?;
    let trained = estimator(&first, every(100)).variable_value("w")?;
    let warm = Estimator::new(linear).params(HParams::new().set("rate", 0.0)).warm_start_from(first.path());
    let warm = warm.model_dir(second.path()).build()?;
    let mae = warm.evaluate(line(8).batch(8))?["mae"];
    assert_eq!(mae, estimator(&first, every(100)).evaluate(line(8).batch(8))?["mae"], "before any training too");
    let finished = warm.train(TrainSpec::new(&data).steps(1))?;
    assert_eq!(finished.global_step, 1, "the step is its own");
    assert_eq!(warm.variable_value("w")?, trained);
    Ok(())
}

/// Case 125.
#[test]
fn the_seed_decides_everything() -> Result<()> {
    let train = |seed| -> Result<Array> {
        let folder = Folder::new();
        let config = RunConfig::new().tf_random_seed(seed);
        let model = Estimator::new(network).config(config).model_dir(folder.path()).build()?;
        model.train(TrainSpec::new(points(50).repeat_forever().batch(8)).steps(10))?;
        model.variable_value("dense/kernel")
    };
    assert_eq!(train(42)?, train(42)?);
    assert_ne!(train(42)?, train(43)?);
    Ok(())
}

/// What a spec says of exports, initial values and readiness is heeded.
#[test]
fn the_fields_of_a_spec() -> Result<()> {
    let model = |cx: &ModelFnContext<'_>| {
        let spec = linear(cx)?
            .initial_value("w", Array::from(2.0f32))
            .export_output("y", ExportOutput::Regression { value: cx.feature("x") })
            .ready_check(|session| match session.value("w")?.item::<f32>()? {
                2.0 => Ok(()),
                other => Err(Error::config(format!("w is {other}"))),
            });
        Ok(spec)
    };
    let folder = Folder::new();
    let model = Estimator::new(model).params(HParams::new().set("rate", 0.0)).config(every(1)).model_dir(folder.path());
    let model = model.build()?;
    model.train(line(8).batch(8))?;
    assert_eq!(model.variable_value("w")?, Array::from(2.0f32));
    // With the checkpoint there, the value is the checkpoint's, and the check passes again.
    model.train(line(8).batch(8))?;
    Ok(())
}

/// A hook of the user's that saves replaces the default one.
#[test]
fn a_saver_of_ones_own() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, every(1));
    struct StopAfter(u64);
    impl CheckpointListener for StopAfter {
        fn after_save(&mut self, _session: &TrainSession, step: u64) -> Result<bool> {
            Ok(step >= self.0)
        }
    }
    let saver = CheckpointSaverHook::new(Every::Steps(3)).listener(StopAfter(6));
    let data = line(10).repeat_forever().batch(4);
    let finished = model.train(TrainSpec::new(&data).hook(saver))?;
    assert_eq!((finished.global_step, folder.steps()), (6, vec![0, 3, 6]));
    assert!(finished.reason.contains("listener"), "{}", finished.reason);
    Ok(())
}
