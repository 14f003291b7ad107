//! Training that ends because a function decides so.

use estimand::graph::checkpoint::BundleReader;
use estimand::hook::EarlyStoppingHook;
use estimand::prelude::*;

use super::log_lines::logged;
use super::{endless, estimator};
use crate::models::Folder;

/// Case 113, as decided: the checkpoint says that training was stopped, and when; a run that is
/// started after it goes on.
#[test]
fn case_113_a_decision_is_kept_with_its_step_and_the_next_run_goes_on() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, 100);
    let mut asked = Vec::new();
    let hook = EarlyStoppingHook::new(|cx| {
        asked.push(cx.global_step());
        Ok(Some("I have seen enough".to_string()))
    });
    let (finished, lines) = logged(|| model.train(TrainSpec::new(endless()).max_steps(10).hook(hook)));
    let finished = finished?;
    assert_eq!((finished.global_step, finished.reason.as_str()), (1, "early stopping: I have seen enough"));
    assert!(
        lines.contains(&"INFO: Requesting early stopping at global step 1: I have seen enough".to_string()),
        "{lines:?}"
    );
    assert_eq!(asked, [1], "the first step counts");

    let state = BundleReader::open(folder.path().join("model.ckpt-1"))?.read("_estimand/hook/early_stopping")?;
    assert_eq!(state.as_slice::<u8>()?, 1_u64.to_le_bytes());

    let hook = EarlyStoppingHook::new(|_| Ok(None)).every(Every::Steps(1));
    let (finished, lines) = logged(|| model.train(TrainSpec::new(endless()).max_steps(4).hook(hook)));
    assert_eq!(finished?.global_step, 4);
    assert!(
        lines.contains(&"INFO: Early stopping was decided at step 1. Training continues.".to_string()),
        "{lines:?}"
    );
    let state = BundleReader::open(folder.path().join("model.ckpt-4"))?.read("_estimand/hook/early_stopping")?;
    assert_eq!(state.as_slice::<u8>()?, 1_u64.to_le_bytes(), "it is still known");
    Ok(())
}

#[test]
fn the_function_is_asked_by_its_timer() -> Result<()> {
    for (every, expected) in [(Every::Steps(3), vec![1, 4, 7]), (Every::Secs(1e6), vec![1])] {
        let folder = Folder::new();
        let mut asked = Vec::new();
        let hook = EarlyStoppingHook::new(|cx| {
            asked.push(cx.global_step());
            Ok(None)
        });
        estimator(&folder, 100).train(TrainSpec::new(endless()).steps(8).hook(hook.every(every)))?;
        assert_eq!(asked, expected);
    }
    Ok(())
}

/// Hooks that share a name have states of their own.
#[test]
fn two_decisions_are_told_apart() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, 100);
    let at = |step: u64| EarlyStoppingHook::new(move |cx| Ok((cx.global_step() == step).then(|| "now".to_string())));
    let (first, second) = (at(3).every(Every::Steps(1)), at(2).every(Every::Steps(1)));
    assert_eq!(model.train(TrainSpec::new(endless()).hook(first).hook(second))?.global_step, 2);
    let (first, second) = (at(3).every(Every::Steps(1)), at(2).every(Every::Steps(1)));
    let (finished, lines) = logged(|| model.train(TrainSpec::new(endless()).hook(first).hook(second)));
    assert_eq!(finished?.global_step, 3);
    assert!(lines.iter().any(|line| line.contains("decided at step 2")), "{lines:?}");
    let reader = BundleReader::open(folder.path().join("model.ckpt-3"))?;
    for (key, step) in [("early_stopping", 3_u64), ("early_stopping_1", 2)] {
        let state = reader.read(&format!("_estimand/hook/{key}"))?;
        assert_eq!(state.as_slice::<u8>()?, step.to_le_bytes(), "{key}");
    }
    Ok(())
}

/// A function that fails ends the training as it stands: no `end`, no last checkpoint.
#[test]
fn mistakes() {
    let folder = Folder::new();
    let model = estimator(&folder, 2);
    let failing = EarlyStoppingHook::new(|cx| match cx.global_step() {
        3 => Err(Error::config("no idea")),
        _ => Ok(None),
    });
    let error = model.train(TrainSpec::new(endless()).hook(failing.every(Every::Steps(1)))).unwrap_err().to_string();
    assert!(error.contains("no idea") && error.contains("after_run of hook `early_stopping`"), "{error}");
    assert_eq!(folder.steps(), [0, 2]);

    for every in [Every::Never, Every::Steps(0)] {
        let hook = EarlyStoppingHook::new(|_| Ok(None)).every(every);
        let error = model.train(TrainSpec::new(endless()).hook(hook)).unwrap_err().to_string();
        assert!(error.contains("could never stop the training"), "{error}");
    }
    let hook = EarlyStoppingHook::new(|_| Ok(None)).every(Every::Secs(-1.0));
    let error = model.train(TrainSpec::new(endless()).hook(hook)).unwrap_err().to_string();
    assert!(error.contains("a period of -1 seconds"), "{error}");
}
