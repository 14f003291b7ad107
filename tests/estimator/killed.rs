//! A training that is killed at any moment and started again ends with the bits of an undisturbed
//! run.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use estimand::hook::CsvLogHook;
use estimand::prelude::*;

use crate::models::{Folder, network, points};

const STEPS: u64 = 600;
const FOLDER: &str = "ESTIMAND_TEST_KILLED";

pub fn train(folder: &Path) -> Result<()> {
    let config = RunConfig::new().tf_random_seed(11).threads(2).save_checkpoints(Every::Steps(7));
    let config = config.running_metrics(["accuracy"]);
    let model = Estimator::new(network).config(config).model_dir(folder).build()?;
    let log = CsvLogHook::new("training.csv", Every::Steps(5));
    model.train(TrainSpec::new(points(70).repeat_forever().batch(8)).max_steps(STEPS).hook(log))?;
    Ok(())
}

/// What the killed process runs.
#[test]
#[ignore = "other tests start it as a process"]
fn child() -> Result<()> {
    train(Path::new(&std::env::var_os(FOLDER).expect("the folder of the training")))
}

pub fn start(folder: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::child", "--ignored", "--test-threads=1"]).env(FOLDER, folder);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

pub fn newest_step(folder: &Path) -> Option<u64> {
    let state = std::fs::read_to_string(folder.join("checkpoint")).ok()?;
    state.lines().next()?.split("ckpt-").nth(1)?.trim_end_matches('"').parse().ok()
}

/// SIGTERM saves, says how to go on, and loses nothing.
#[cfg(unix)]
#[test]
fn a_terminated_training_saves_and_goes_on() -> Result<()> {
    let (undisturbed, disturbed) = (Folder::new(), Folder::new());
    train(undisturbed.path())?;
    let mut child = start(disturbed.path());
    while newest_step(disturbed.path()).is_none_or(|step| step == 0) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended_well = child.wait().unwrap().success();
    let step = newest_step(disturbed.path()).unwrap();
    // A process that was done before the signal came shows nothing.
    assert!(!ended_well || step == STEPS, "the training went on to {step}");
    train(disturbed.path())?;
    let name = format!("model.ckpt-{STEPS}.data-00000-of-00001");
    let read = |folder: &Folder| std::fs::read(folder.path().join(&name)).unwrap();
    assert!(read(&disturbed) == read(&undisturbed), "stopped at {step}");
    Ok(())
}

#[test]
fn a_killed_training_ends_as_if_nothing_had_happened() -> Result<()> {
    let undisturbed = Folder::new();
    train(undisturbed.path())?;

    let disturbed = Folder::new();
    let mut steps = Vec::new();
    let mut delay = 7_u64;
    for _ in 0..20 {
        let mut child = start(disturbed.path());
        // Any moment: before the first step, between steps, within a save.
        delay = delay.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(15 + (delay >> 33) % 120));
        child.kill().unwrap();
        child.wait().unwrap();
        steps.push(newest_step(disturbed.path()));
    }
    assert!(steps.windows(2).all(|pair| pair[0] <= pair[1]), "never backwards: {steps:?}");
    assert!(start(disturbed.path()).wait().unwrap().success());
    for name in ["model.ckpt-STEPS.index", "model.ckpt-STEPS.data-00000-of-00001", "training.csv", "training_rows.json"]
    {
        let name = name.replace("STEPS", &STEPS.to_string());
        let read = |folder: &Folder| std::fs::read(folder.path().join(&name)).unwrap();
        assert!(read(&disturbed) == read(&undisturbed), "{name} differs; killed at {steps:?}");
    }
    Ok(())
}
