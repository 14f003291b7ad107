//! The best checkpoint: it is kept, found, and restored at the end.

use estimand::hook::InMemoryEvaluatorHook;
use estimand::nn::metric;
use estimand::prelude::*;

use crate::hooks::log_lines::logged;
use crate::models::{Folder, line};

/// A weight that grows by 1 at each step, and the metric `score`, which is 1 at `cx.params()`' step
/// `best` and lower the further away a step is.
fn counter(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let w = cx.graph().variable("w", [], Initializer::Zeros);
    let spec = EstimatorSpec::new(cx).prediction("w", &(cx.feature("x") * 0.0 + &w));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = -&w;
    let score = 1.0 - (&w - cx.params().f64("best")? as f32).abs() / 100.0;
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 1.0)).metric("score", metric::mean(&score, None)))
}

fn model(folder: &Folder, best: u64, keep: usize) -> Result<Estimator> {
    let config = RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Steps(5)).keep_checkpoint_max(Some(keep));
    let params = HParams::new().set("best", best as f64);
    Estimator::new(counter).params(params).config(config).model_dir(folder.path()).build()
}

fn rows() -> Dataset {
    line(4).repeat_forever().batch(4)
}

fn test() -> EvalSpec<'static> {
    EvalSpec::new(line(4).batch(4)).name("test").every(Every::Steps(2)).highest_is_best("score")
}

/// The weight of a prediction, which is the step of its checkpoint.
fn weight(model: &Estimator, spec: PredictSpec<'_>) -> Result<f32> {
    Ok(model.predict(spec).next().unwrap()?.f32("w")?[0])
}

#[test]
fn the_best_checkpoint_is_kept_and_found() -> Result<()> {
    let folder = Folder::new();
    let model = model(&folder, 8, 2)?;
    let none = model.predict(PredictSpec::new(line(4).batch(4)).best()).next().unwrap().unwrap_err().to_string();
    assert!(none.contains("there is no best checkpoint in"), "{none}");

    let trained = model.train_and_evaluate(TrainSpec::new(rows()).max_steps(40), test())?;
    assert_eq!(trained.evaluations[0].best.as_ref().map(|best| best.global_step()), Some(8));
    assert_eq!(folder.steps(), [8, 35, 40], "8 is the best; 35 and 40 are the newest");
    assert_eq!(model.best_checkpoint()?, Some(folder.path().join("model.ckpt-8")));

    let data = line(4).batch(4);
    let best = model.evaluate(EvalSpec::new(&data).best())?;
    assert_eq!((best.global_step(), best["score"]), (8, 1.0));
    assert_eq!(model.evaluate(EvalSpec::new(&data).best_of("test"))?.global_step(), 8);
    assert_eq!(model.evaluate(&data)?.global_step(), 40);
    // One after the other, so that the model in memory is of the wrong checkpoint.
    assert_eq!(weight(&model, PredictSpec::new(&data).best())?, 8.0);
    assert_eq!(weight(&model, PredictSpec::new(&data))?, 40.0);
    assert_eq!(weight(&model, PredictSpec::new(&data).best_of("test"))?, 8.0);
    let error = model.evaluate(EvalSpec::new(&data).best_of("tset")).unwrap_err().to_string();
    assert!(error.contains("did you mean `test`?"), "{error}");

    // A training without evaluations keeps it too.
    model.train(TrainSpec::new(rows()).max_steps(60))?;
    assert_eq!(folder.steps(), [8, 55, 60]);
    assert_eq!(weight(&model, PredictSpec::new(&data).best())?, 8.0);
    // TensorFlow's format of the list has comments.
    let state = estimand::graph::checkpoint::read_state(folder.path())?.unwrap();
    assert_eq!(state.model_checkpoint_path, "model.ckpt-60");
    assert_eq!(state.all_model_checkpoint_paths, ["model.ckpt-8", "model.ckpt-55", "model.ckpt-60"]);
    Ok(())
}

#[test]
fn a_better_checkpoint_takes_its_place() -> Result<()> {
    let folder = Folder::new();
    let train = |n| TrainSpec::new(rows()).max_steps(n);
    model(&folder, 4, 1)?.train_and_evaluate(train(20), test())?;
    assert_eq!(folder.steps(), [4, 20]);
    // Another run, in which later steps are better.
    let later = model(&folder, 30, 1)?;
    later.train_and_evaluate(train(25), test().lowest_is_best("loss"))?;
    assert_eq!(folder.steps(), [25]);
    assert_eq!(weight(&later, PredictSpec::new(line(4).batch(4)).best())?, 25.0);

    std::fs::remove_file(folder.path().join("model.ckpt-25.index")).unwrap();
    let error = later.best_checkpoint().unwrap_err().to_string();
    assert!(error.contains("the checkpoint of the best evaluation, but it does not exist"), "{error}");
    Ok(())
}

/// Each evaluation has its own best; without a name, the first counts.
#[test]
fn several_evaluations_have_their_own_best() -> Result<()> {
    let folder = Folder::new();
    let model = model(&folder, 6, 1)?;
    let last = EvalSpec::new(line(4).batch(4)).name("last").every(Every::Steps(3));
    model.train_and_evaluate(TrainSpec::new(rows()).max_steps(17), [test(), last])?;
    assert_eq!(folder.steps(), [6, 17]);
    let data = line(4).batch(4);
    assert_eq!(weight(&model, PredictSpec::new(&data).best())?, 6.0);
    assert_eq!(weight(&model, PredictSpec::new(&data).best_of("last"))?, 17.0);
    Ok(())
}

#[test]
fn early_stopping_restores_the_best() -> Result<()> {
    let folder = Folder::new();
    let model = model(&folder, 8, 2)?;
    let stopping = || EarlyStopping::higher_is_better("score").patience(3).restore_best();
    let spec = || test().early_stopping(stopping());
    let train = || TrainSpec::new(rows()).max_steps(100);
    let trained = model.train_and_evaluate(train(), spec())?;
    assert_eq!(trained.finished.global_step, 14);
    assert!(trained.finished.reason.starts_with("early stopping: "), "{}", trained.finished.reason);
    assert!(trained.finished.reason.ends_with("; the best checkpoint, of step 8, is restored"));
    assert_eq!(model.latest_checkpoint()?, Some(folder.path().join("model.ckpt-8")));
    let data = line(4).batch(4);
    assert_eq!(model.evaluate(&data)?.global_step(), 8);
    assert_eq!(weight(&model, PredictSpec::new(&data))?, 8.0);
    let files = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let before = ["checkpoint", "model.ckpt-8.data-00000-of-00001", "model.ckpt-14.data-00000-of-00001"].map(files);

    // A second run continues from there, and ends in the same way.
    let again = model.train_and_evaluate(train(), spec())?;
    assert_eq!((again.finished.global_step, again.finished.n_steps), (14, 6));
    assert_eq!(again.finished.reason, trained.finished.reason);
    let after = ["checkpoint", "model.ckpt-8.data-00000-of-00001", "model.ckpt-14.data-00000-of-00001"].map(files);
    assert!(before == after);

    // Also if the steps end before early stopping does, and not if the last is the best.
    let ended = model.train_and_evaluate(TrainSpec::new(rows()).max_steps(11), spec())?;
    assert!(ended.finished.reason.ends_with("of step 8, is restored"), "{}", ended.finished.reason);
    let other = Folder::new();
    let ended = self::model(&other, 50, 2)?.train_and_evaluate(TrainSpec::new(rows()).max_steps(10), spec())?;
    assert!(!ended.finished.reason.contains("restored"), "{}", ended.finished.reason);
    Ok(())
}

#[test]
fn restoring_needs_checkpoints_and_one_best() -> Result<()> {
    let folder = Folder::new();
    let stopping = || EarlyStopping::higher_is_better("score").restore_best();
    let spec = |name: &str| test().name(name).early_stopping(stopping());
    let train = || TrainSpec::new(rows()).max_steps(4);
    let with = model(&folder, 8, 2)?;
    let two = with.train_and_evaluate(train(), [spec("a"), spec("b")]).unwrap_err().to_string();
    assert!(two.contains("two evaluations ask for restore_best"), "{two}");
    let in_memory = EvalSpec::new(line(4).batch(4)).early_stopping(stopping());
    let error = with.train(train().hook(InMemoryEvaluatorHook::new(&with, in_memory))).unwrap_err().to_string();
    assert!(error.contains("in-memory evaluation asks for restore_best"), "{error}");

    let config = RunConfig::new().save_checkpoints(Every::Never);
    let params = HParams::new().set("best", 8.0);
    let without = Estimator::new(counter).params(params).config(config).model_dir(folder.path().join("b")).build()?;
    let error = without.train_and_evaluate(train(), spec("a")).unwrap_err().to_string();
    assert!(error.contains("restore_best, but no checkpoints are saved"), "{error}");
    // Without restore_best nothing is saved, although an evaluation is the best.
    without.train_and_evaluate(train(), test())?;
    assert_eq!((without.latest_checkpoint()?, without.best_checkpoint()?), (None, None));
    let error = with.train_and_evaluate(train(), test().best()).unwrap_err().to_string();
    assert!(error.contains("an EvalSpec with a checkpoint"), "{error}");
    Ok(())
}

/// An evaluator process keeps its results in a file, which the trainer reads before it removes
/// checkpoints.
#[test]
fn the_best_of_an_evaluator_process_is_kept() -> Result<()> {
    let folder = Folder::new();
    let model = model(&folder, 8, 1)?;
    model.train(TrainSpec::new(rows()).max_steps(5))?;
    let state = r#"{"": {"best": {"by": "lowest loss", "metrics": {"step": 5, "bits": {"loss": 0}}}}}"#;
    std::fs::write(folder.path().join("evaluations.json"), state).unwrap();
    model.train(TrainSpec::new(rows()).max_steps(20))?;
    assert_eq!(folder.steps(), [5, 20]);
    assert_eq!(weight(&model, PredictSpec::new(line(4).batch(4)).best())?, 5.0);
    Ok(())
}

/// 600 seconds between two evaluations are longer than a short training.
#[test]
fn evaluations_that_are_too_rare_are_told() -> Result<()> {
    let warned = |spec: EvalSpec<'static>, every: u64, steps: u64| -> Result<Vec<String>> {
        let folder = Folder::new();
        let config = RunConfig::new().save_checkpoints(Every::Steps(every));
        let params = HParams::new().set("best", 8.0);
        let model = Estimator::new(counter).params(params).config(config).model_dir(folder.path()).build()?;
        let (trained, lines) = logged(|| model.train_and_evaluate(TrainSpec::new(rows()).max_steps(steps), spec));
        trained?;
        Ok(lines.into_iter().filter(|line| line.starts_with("WARN")).collect())
    };
    let spec = || EvalSpec::new(line(4).batch(4));
    let once = warned(spec(), 100, 20)?;
    assert_eq!(once.len(), 1, "{once:?}");
    for part in ["ran only once", "saved no checkpoint before its last step", "EvalSpec::every(Every::Steps(n))"] {
        assert!(once[0].contains(part), "{once:?}");
    }
    let twice = warned(spec().name("test"), 5, 20)?;
    assert_eq!(twice.len(), 1, "{twice:?}");
    for part in ["Evaluation `test` ran only twice", "2 checkpoints were not evaluated", "throttle_secs is 600"] {
        assert!(twice[0].contains(part), "{twice:?}");
    }
    assert_eq!(warned(spec().throttle_secs(0.0), 5, 20)?, [""; 0]);
    assert_eq!(warned(spec().every(Every::Steps(10)), 100, 20)?, [""; 0]);
    Ok(())
}
