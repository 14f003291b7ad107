//! Training that ends because of metrics in event files.

use std::path::Path;

use estimand::events::EventWriter;
use estimand::hook::StopIfHook;
use estimand::prelude::*;

use super::log_lines::logged;
use super::{endless, estimator};
use crate::models::Folder;

/// The evaluations of cases 111 and 112.
const LOSSES: [(u64, f32); 5] = [(10, 1.0), (20, 0.9), (30, 0.95), (40, 0.92), (50, 0.91)];

fn write(folder: &Path, values: &[(u64, f32)]) -> Result<()> {
    let mut writer = EventWriter::create(folder)?;
    values.iter().try_for_each(|&(step, value)| writer.scalar(step, "loss", value))
}

/// Evaluations up to this step have had their step trained.
const TRAINED: u64 = 60;

/// Whether a training that goes on for three steps is stopped after the first.
fn stops(eval: &Path, hook: StopIfHook) -> Result<bool> {
    let folder = Folder::new();
    let model = estimator(&folder, 100);
    model.train(TrainSpec::new(endless()).max_steps(TRAINED))?;
    let finished = model.train(TrainSpec::new(endless()).steps(3).hook(hook.eval_dir(eval)))?;
    let stopped = finished.global_step == TRAINED + 1;
    assert_eq!(stopped, finished.reason.starts_with("early stopping: `loss`"), "{}", finished.reason);
    Ok(stopped)
}

#[test]
fn case_111_no_decrease() -> Result<()> {
    let eval = Folder::new();
    write(eval.path(), &LOSSES)?;
    for (max_steps, min_steps, expected) in [(20, 0, true), (30, 0, true), (31, 0, false), (20, 30, false)] {
        let hook = StopIfHook::no_decrease("loss", max_steps).min_steps(min_steps);
        assert_eq!(stops(eval.path(), hook)?, expected, "{max_steps} from {min_steps}");
    }
    Ok(())
}

/// 0.9 is stored as 0.89999998, which is lower.
#[test]
fn case_112_no_increase_higher_and_lower() -> Result<()> {
    let eval = Folder::new();
    write(eval.path(), &LOSSES)?;
    for (hook, expected) in [
        (StopIfHook::no_increase("loss", 40), true),
        (StopIfHook::no_increase("loss", 41), false),
        (StopIfHook::higher("loss", 0.99), true),
        (StopIfHook::higher("loss", 1.0), false),
        (StopIfHook::lower("loss", 0.9001), true),
        (StopIfHook::lower("loss", 0.9), true),
    ] {
        assert_eq!(stops(eval.path(), hook)?, expected);
    }
    Ok(())
}

/// What the estimator's own evaluations write is what the hook reads by default.
#[test]
fn evaluations_of_the_estimator_are_found() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, 100);
    let data = endless().take(3);
    model.evaluate(&data)?;
    let hook = || StopIfHook::higher("mae", 0.0).every(Every::Steps(1));
    let finished = model.train(TrainSpec::new(endless()).max_steps(5).hook(hook()))?;
    assert_eq!(finished.global_step, 1);
    assert!(finished.reason.contains("`mae` is") && finished.reason.contains("at step 0"), "{}", finished.reason);

    // Going on: what was found does not count again, what comes after it does.
    let finished = model.train(TrainSpec::new(endless()).max_steps(5).hook(hook()))?;
    assert_eq!((finished.global_step, finished.reason.as_str()), (5, "step 5 is reached"));
    model.evaluate(&data)?;
    let finished = model.train(TrainSpec::new(endless()).max_steps(9).hook(hook()))?;
    assert_eq!(finished.global_step, 6);
    assert!(finished.reason.contains("at step 5"), "{}", finished.reason);
    Ok(())
}

/// As many steps as before are waited for, from the first evaluation after the decision.
#[test]
fn after_a_decision_patience_begins_anew() -> Result<()> {
    let (folder, eval) = (Folder::new(), Folder::new());
    let model = estimator(&folder, 100);
    let train = |max: u64| {
        let hook = StopIfHook::no_decrease("loss", 2).eval_dir(eval.path()).every(Every::Steps(1));
        model.train(TrainSpec::new(endless()).max_steps(max).hook(hook))
    };
    train(4)?;
    write(eval.path(), &[(1, 0.5), (2, 0.6), (3, 0.7)])?;
    assert_eq!(train(10)?.global_step, 5, "nothing better than 0.5 of step 1");
    assert_eq!(train(6)?.reason, "step 6 is reached");
    write(eval.path(), &[(6, 0.6), (7, 0.6)])?;
    assert_eq!(train(8)?.reason, "step 8 is reached", "one step without anything better");
    write(eval.path(), &[(8, 0.6)])?;
    assert_eq!(train(20)?.global_step, 9);
    Ok(())
}

/// TF: a first value of NaN stays the best for ever there; here it is never one.
#[test]
fn nan_is_no_best_value() -> Result<()> {
    let eval = Folder::new();
    write(eval.path(), &[(10, f32::NAN), (20, 0.9), (30, 0.8), (40, 0.7)])?;
    assert!(!stops(eval.path(), StopIfHook::no_decrease("loss", 25))?);
    let eval = Folder::new();
    write(eval.path(), &[(10, f32::NAN), (20, f32::NAN)])?;
    assert!(stops(eval.path(), StopIfHook::no_decrease("loss", 10))?, "but its steps count");
    Ok(())
}

/// What a run that was killed had evaluated counts when its steps are done again: not before.
#[test]
fn evaluations_of_steps_to_come_do_not_count() -> Result<()> {
    let (folder, eval) = (Folder::new(), Folder::new());
    write(eval.path(), &LOSSES)?;
    // Nothing is lower than 0.9 of step 20, which is known after step 40 and asked for after step
    // 41.
    let hook = StopIfHook::no_decrease("loss", 20).eval_dir(eval.path()).every(Every::Steps(1));
    let finished = estimator(&folder, 100).train(TrainSpec::new(endless()).max_steps(90).hook(hook))?;
    assert_eq!(finished.global_step, 41, "{}", finished.reason);
    Ok(())
}

#[test]
fn damage_and_mistakes() -> Result<()> {
    let (folder, eval) = (Folder::new(), Folder::new());
    let model = estimator(&folder, 100);
    model.train(TrainSpec::new(endless()).max_steps(TRAINED))?;
    // Nobody has evaluated yet.
    assert!(!stops(&eval.path().join("nothing"), StopIfHook::lower("loss", 9.0))?);

    write(eval.path(), &LOSSES)?;
    let path = std::fs::read_dir(eval.path()).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let (stopped, lines) = logged(|| stops(eval.path(), StopIfHook::no_decrease("loss", 30)));
    assert!(!stopped?, "the evaluation of step 50 is lost");
    let name = path.file_name().unwrap().to_str().unwrap();
    let warning = |line: &String| line.starts_with("WARN: The rest of") && line.contains(name);
    assert!(lines.iter().any(warning), "{lines:?}");

    let train = |hook: StopIfHook| {
        model.train(TrainSpec::new(endless()).steps(3).hook(hook.eval_dir(eval.path()))).unwrap_err().to_string()
    };
    let error = train(StopIfHook::lower("lost", 0.5));
    for part in ["no metric `lost`", "in the evaluation of step 10", "did you mean `loss`?", "hook `stop_if_lower`"] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert!(train(StopIfHook::lower("accuracy", 0.5)).contains("help: there "));
    assert!(train(StopIfHook::lower("loss", f64::NAN)).contains("threshold for `loss` is NaN"));
    assert!(train(StopIfHook::no_increase("loss", 0)).contains("the patience is 0"));
    assert!(train(StopIfHook::no_increase("loss", 5).every(Every::Never)).contains("could never stop the training"));
    Ok(())
}
