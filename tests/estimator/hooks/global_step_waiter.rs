//! A training that waits for another one.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use estimand::hook::{GlobalStepWaiterHook, Hook, HookContext};
use estimand::prelude::*;

use super::log_lines::logged;
use super::{endless, estimator};
use crate::models::Folder;

const FOLDER: &str = "ESTIMAND_TEST_WAITER";

#[test]
fn the_training_begins_when_the_other_is_far_enough() -> Result<()> {
    let (teacher, student) = (Folder::new(), Folder::new());
    let hook = GlobalStepWaiterHook::new(5).folder(teacher.path()).timeout(Duration::from_secs(60));
    let started = Instant::now();
    let (finished, lines) = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            estimator(&teacher, 100).train(TrainSpec::new(endless()).steps(5)).unwrap();
        });
        logged(|| estimator(&student, 100).train(TrainSpec::new(endless()).steps(2).hook(hook)))
    });
    assert_eq!(finished?.global_step, 2, "its own step");
    assert!(started.elapsed() >= Duration::from_millis(500));
    assert!(lines.iter().any(|line| line.contains("Waiting for global step 5 of")), "{lines:?}");
    Ok(())
}

/// In its own folder the training begins with what others have learnt meanwhile.
#[test]
fn variables_are_those_of_the_newest_checkpoint() -> Result<()> {
    struct TrainElsewhere<'a>(&'a Folder);
    impl Hook for TrainElsewhere<'_> {
        fn name(&self) -> &str {
            "train_elsewhere"
        }
        fn after_create_session(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
            estimator(self.0, 100).train(TrainSpec::new(endless()).steps(5)).map(|_| ())
        }
    }
    let folder = Folder::new();
    let model = Estimator::new(crate::models::linear)
        .config(RunConfig::new().save_checkpoints(Every::Never).tf_random_seed(1))
        .params(HParams::new().set("rate", 0.0))
        .model_dir(folder.path())
        .build()?;
    let values = estimand::hook::FinalOpsHook::new().named("w");
    let w = values.values();
    let hooks = TrainSpec::new(endless()).steps(2).hook(TrainElsewhere(&folder)).hook(GlobalStepWaiterHook::new(5));
    let finished = model.train(hooks.hook(values))?;
    assert_eq!(finished.global_step, 7);
    assert_eq!(w.get()["w"], model.variable_value("w")?);

    // Far enough already, and no wait at all.
    let (finished, lines) =
        logged(|| model.train(TrainSpec::new(endless()).steps(1).hook(GlobalStepWaiterHook::new(5))));
    finished?;
    assert!(!lines.iter().any(|line| line.contains("Waiting")), "{lines:?}");
    Ok(())
}

#[test]
fn a_wait_for_nothing_fails_in_time() {
    let (nobody, folder) = (Folder::new(), Folder::new());
    let hook = GlobalStepWaiterHook::new(7).folder(nobody.path()).timeout(Duration::from_millis(1));
    let error = estimator(&folder, 100).train(TrainSpec::new(endless()).hook(hook)).unwrap_err();
    assert_eq!(*error.kind(), estimand::tensor::ErrorKind::Cluster);
    let text = error.to_string();
    for part in ["global step 7 of", "There is no checkpoint yet", "after_create_session of hook `global_step_waiter`"]
    {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// What the process below runs.
#[test]
#[ignore = "other tests start it as a process"]
fn child() -> Result<()> {
    let folder = std::env::var_os(FOLDER).expect("the folder of the training");
    let folder = Path::new(&folder);
    struct Ready<'a>(&'a Path);
    impl Hook for Ready<'_> {
        fn name(&self) -> &str {
            "ready"
        }
        fn after_create_session(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
            std::fs::write(self.0.join("ready"), "").map_err(|e| Error::io(self.0, "write", &e))
        }
    }
    let model = Estimator::new(crate::models::linear).model_dir(folder).build()?;
    let error = model
        .train(TrainSpec::new(endless()).hook(Ready(folder)).hook(GlobalStepWaiterHook::new(1_000_000)))
        .unwrap_err();
    std::fs::write(folder.join("error"), error.to_string()).unwrap();
    Ok(())
}

#[cfg(unix)]
#[test]
fn sigterm_ends_the_wait() {
    let folder = Folder::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hooks::global_step_waiter::child", "--ignored", "--test-threads=1"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !folder.path().join("ready").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    let error = std::fs::read_to_string(folder.path().join("error")).unwrap();
    assert!(error.contains("interrupted by SIGTERM at step 0"), "{error}");
}
