//! Sweeps: all combinations, the best of them, the stored results, and the comparing report.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;

use estimand::prelude::*;
use estimand::report::Report;
use estimand::sweep::{Swept, Trial};
use estimand::tensor::ErrorKind;
use estimand::{Sweep, Trained};

use crate::models::{Folder, line};

/// The line through the origin with the slope 3, fitted with the learning rate of a trial.
fn train(trial: &Trial) -> Result<Trained> {
    let rate = trial.params().f64("learning_rate")?;
    let model = LinearRegressor::new([numeric_column("x").into()])
        .optimizer(Optimizer::new(Sgd::default(), rate))
        .params(trial.params().clone())
        .config(RunConfig::new().tf_random_seed(1).threads(1))
        .model_dir(trial.model_dir())
        .build()?;
    let data = line(8);
    let steps = TrainSpec::new(data.repeat_forever().batch(8)).max_steps(20);
    model.train_and_evaluate(steps, EvalSpec::new(data.batch(8)).every(Every::Steps(5)))
}

fn sweep(folder: &Path) -> Sweep {
    Sweep::new(folder).over("learning_rate", [0.001, 0.1, 0.01])
}

fn losses(swept: &Swept) -> Vec<(String, f64)> {
    let loss = |trial: &estimand::sweep::TrialResult| trial.metrics().unwrap()["average_loss"];
    swept.ranked().into_iter().map(|trial| (trial.name().to_string(), loss(trial))).collect()
}

/// The loss falls faster with a higher rate, so the ranks are known. Each number is what a training
/// without a sweep finds.
#[test]
fn the_best_trial_is_first() -> Result<()> {
    let folder = Folder::new();
    let swept = sweep(folder.path()).lowest("average_loss").run(train)?;
    let names = |all: Vec<(String, f64)>| all.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(losses(&swept)), ["learning_rate=0.1", "learning_rate=0.01", "learning_rate=0.001"]);
    let in_order: Vec<&str> = swept.trials().iter().map(|trial| trial.name()).collect();
    assert_eq!(in_order, ["learning_rate=0.001", "learning_rate=0.1", "learning_rate=0.01"]);
    let best = swept.best()?;
    assert_eq!((best.name(), best.params().f64("learning_rate")?), ("learning_rate=0.1", 0.1));
    let report = Report::read(best.model_dir())?;
    let history = &report.evaluations()[0].history;
    assert_eq!(history.last().unwrap()["average_loss"] as f32, best.metrics().unwrap()["average_loss"] as f32);
    assert_eq!((history.len(), best.metrics().unwrap().global_step()), (4, 20));

    let text = swept.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "3 trials, the best by lowest average_loss first");
    assert!(lines[1].starts_with("trial") && lines[1].contains("average_loss") && lines[1].ends_with("step"), "{text}");
    assert!(lines[2].starts_with("learning_rate=0.1 ") && lines[2].ends_with("20"), "{text}");

    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert_eq!(page, swept.html());
    for part in ["Comparison of trials", "lowest average_loss", "1: learning_rate=0.1", "by learning_rate"] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    assert!(!page.contains("<script") && !page.contains("http"), "the page needs something from outside");
    // The highest loss is that of the lowest rate.
    let worst = sweep(folder.path()).highest("average_loss").run(train)?;
    assert_eq!(worst.best()?.name(), "learning_rate=0.001");
    Ok(())
}

/// A sweep that an error ended continues: complete trials are read, and the unfinished one resumes.
/// The results are those of a sweep without an interruption, bit for bit.
#[test]
fn a_sweep_continues() -> Result<()> {
    let (folder, whole) = (Folder::new(), Folder::new());
    let n_runs = Cell::new(0);
    let error = sweep(folder.path())
        .run(|trial| {
            n_runs.set(n_runs.get() + 1);
            let trained = train(trial)?;
            // As if the process were killed after the training, and before the result was stored.
            if n_runs.get() == 2 { Err(Error::data("a disk is gone")) } else { Ok(trained) }
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "a disk is gone\n  in trial 2 of 3: learning_rate=0.1");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("learning_rate=0.001") && !page.contains("learning_rate=0.1<"), "one trial is complete");

    let names = RefCell::new(Vec::new());
    let swept = sweep(folder.path()).run(|trial| {
        names.borrow_mut().push(trial.name().to_string());
        train(trial)
    })?;
    assert_eq!(*names.borrow(), ["learning_rate=0.1", "learning_rate=0.01"]);
    let earlier: Vec<bool> = swept.trials().iter().map(|trial| trial.is_earlier()).collect();
    assert_eq!(earlier, [true, false, false]);
    assert!(swept.to_string().starts_with("3 trials, the best by lowest loss first; 1 were read"), "{swept}");
    let bits = |swept: &Swept| -> Vec<(String, u32)> {
        losses(swept).into_iter().map(|(name, loss)| (name, (loss as f32).to_bits())).collect()
    };
    assert_eq!(bits(&swept), bits(&sweep(whole.path()).run(train)?));
    Ok(())
}

/// A rate that is far too high: the loss is NaN, the trial is noted, and the others count.
#[test]
fn a_trial_that_diverges_is_noted() -> Result<()> {
    let folder = Folder::new();
    let run = || Sweep::new(folder.path()).over("learning_rate", [1e30, 0.1]).run(train);
    for swept in [run()?, run()?] {
        assert_eq!(swept.best()?.name(), "learning_rate=0.1");
        let diverged = &swept.trials()[0];
        assert!(diverged.metrics().is_none() && diverged.note().unwrap().contains("is NaN"), "{diverged:?}");
        assert!(swept.to_string().contains("learning_rate=1e30: the loss of step"), "{swept}");
        assert!(swept.html().contains("is NaN"));
    }
    let all = Sweep::new(folder.path().join("all")).over("learning_rate", [1e30]).run(train)?;
    let error = all.best().unwrap_err().to_string();
    assert!(error.starts_with("no trial of the sweep has a loss: all 1 diverged"), "{error}");
    Ok(())
}

/// With `restore_best`, the folder has the checkpoint of the best evaluation, and so has the sweep.
#[test]
fn the_metrics_are_those_of_the_restored_checkpoint() -> Result<()> {
    let folder = Folder::new();
    // Rows of noise: training on one half makes the other half worse at some step.
    let rows = |odd: i64| {
        let x: Vec<f32> = (0..20).map(|i| ((i * 37 + odd * 11) % 20) as f32 / 20.0).collect();
        let y: Vec<f32> = (0..20).map(|i| ((i * 53 + odd * 7) % 19) as f32 / 19.0 + odd as f32 * 0.3).collect();
        Dataset::from_arrays([("x", Array::from(x)), ("y", Array::from(y))]).label("y")
    };
    let swept = Sweep::new(folder.path()).over("learning_rate", [0.05]).run(|trial| {
        let columns = [numeric_column("x").into()];
        let rule = Optimizer::new(Sgd::default(), trial.params().f64("learning_rate")?);
        let config = RunConfig::new().tf_random_seed(1);
        let model =
            LinearRegressor::new(columns).optimizer(rule).config(config).model_dir(trial.model_dir()).build()?;
        let spec = EvalSpec::new(rows(1).batch(20))
            .every(Every::Steps(1))
            .early_stopping(EarlyStopping::higher_is_better("average_loss").patience(3).restore_best());
        model.train_and_evaluate(TrainSpec::new(rows(0).repeat_forever().batch(20)).max_steps(50), spec)
    })?;
    // "Higher is better" finds the first step best, because the loss falls.
    assert_eq!(swept.best()?.metrics().unwrap().global_step(), 1);
    Ok(())
}

#[test]
fn samples_share_parameters_and_extend_each_other() -> Result<()> {
    let folder = Folder::new();
    let run = |n: usize| {
        let shared = HParams::new().set("batch", 8).set("learning_rate", 0.5);
        let sweep = Sweep::new(folder.path()).params(shared).log_uniform("learning_rate", 1e-3, 1e-1);
        sweep.integers("depth", 1, 4).uniform("dropout", 0.0, 0.5).samples(n, 5).run(train)
    };
    let (two, three) = (run(2)?, run(3)?);
    let names = |swept: &Swept| swept.trials().iter().map(|trial| trial.name().to_string()).collect::<Vec<_>>();
    assert_eq!(names(&two), names(&three)[..2]);
    assert_eq!(three.trials().iter().filter(|trial| trial.is_earlier()).count(), 2);
    let params = three.trials()[2].params();
    assert_eq!(params.i64("batch")?, 8);
    let rate = params.f64("learning_rate")?;
    assert!((1e-3..=1e-1).contains(&rate) && names(&three)[2].starts_with(&format!("learning_rate={rate},depth=")));
    Ok(())
}

#[test]
fn mistakes_are_refused() -> Result<()> {
    let folder = Folder::new();
    let fails = |sweep: Sweep, expected: &str| {
        let error = sweep.run(train).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    fails(Sweep::new(folder.path()), "the sweep has no parameters");
    fails(Sweep::new(folder.path()).uniform("learning_rate", 0.0, 1.0), "is a range, but a grid needs values");
    fails(sweep(folder.path()).params(HParams::new().set("learning_rate", "high")), "expected a string");
    fails(sweep(folder.path()).over("rate", [f64::NAN]), "cannot be written as JSON");
    fails(Sweep::new(folder.path()).over("lerning_rate", [0.1]), "did you mean `lerning_rate`");
    fails(
        sweep(&folder.path().join("metric")).lowest("average_los"),
        "there is no metric `average_los`\n  in the criterion of the sweep",
    );
    // The name of the folder holds the parameters of the sweep; the others are compared.
    let shared = |batch: i32| sweep(&folder.path().join("a")).params(HParams::new().set("batch", batch));
    shared(8).run(train)?;
    fails(shared(16), "is the result of other parameters: {\"batch\":8,\"learning_rate\":0.001}; this trial has");
    // Files that something else has written.
    let stored = folder.path().join("a/learning_rate=0.001/trial.json");
    for (text, expected) in [
        ("", "is not JSON"),
        ("{}", "has the version None; expected 1"),
        ("{\"version\": 2}", "has the version Some(2); expected 1"),
        ("{\"version\": 1, \"params\": {\"batch\":8,\"learning_rate\":0.001}}", "is not the result of a trial"),
    ] {
        fs::write(&stored, text).unwrap();
        fails(shared(8), expected);
    }
    // A function that evaluates nothing.
    let nothing = Sweep::new(folder.path().join("b")).over("learning_rate", [0.1]).run(|trial| {
        let trained = train(trial)?;
        fs::remove_dir_all(trial.model_dir()).unwrap();
        Ok(Trained { evaluations: Vec::new(), ..trained })
    });
    let error = nothing.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Config), "{error}");
    assert!(error.to_string().contains("has evaluated nothing"), "{error}");
    Ok(())
}
