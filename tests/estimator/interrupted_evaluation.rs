//! A signal during an evaluation ends it at once, and the next run evaluates that step first.
//!
//! Signals affect the whole process, so the training runs in a child: this test binary again,
//! running the ignored test below.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;

use crate::models::{Folder, line, linear};

const FOLDER: &str = "ESTIMAND_INTERRUPTED_EVALUATION";
const EXPORTS: &str = "ESTIMAND_INTERRUPTED_EXPORTS";

/// Evaluates at steps 2, 4 and 6. An evaluation reads 200 batches.
fn train(folder: &Path, pause: Duration) -> Result<estimand::Trained> {
    let rows = line(10).repeat_forever().batch(5).map(move |batch| {
        if !pause.is_zero() {
            std::io::stdout().write_all(b"\nevaluating\n").unwrap();
            std::thread::sleep(pause);
        }
        Ok(batch)
    });
    let config = RunConfig::new().tf_random_seed(7).save_checkpoints(Every::Steps(100));
    let estimator = Estimator::new(linear).config(config).model_dir(folder).build()?;
    let train = TrainSpec::new(line(10).repeat_forever().batch(4)).max_steps(6);
    estimator.train_and_evaluate(train, EvalSpec::new(rows).steps(200).every(Every::Steps(2)))
}

#[test]
#[ignore = "other tests start it as a process"]
fn child() {
    let error = train(Path::new(&std::env::var(FOLDER).unwrap()), Duration::from_millis(100)).unwrap_err();
    std::io::stdout().write_all(format!("\n{error}\n").as_bytes()).unwrap();
}

/// An experiment that evaluates at each checkpoint: by its validation, or `checkpoint_and_export`.
fn experiment(folder: &Path, exports: bool) -> Result<()> {
    let rows = line(10).repeat_forever().batch(5).map(|batch| {
        std::io::stdout().write_all(b"\nevaluating\n").unwrap();
        std::thread::sleep(Duration::from_millis(100));
        Ok(batch)
    });
    let config = RunConfig::new().model_dir(folder).tf_random_seed(7).save_checkpoints(Every::Steps(2)).threads(1);
    let estimator = Estimator::new(linear).config(config).build()?;
    let experiment = estimand::Experiment::new(estimator, line(10).repeat_forever().batch(4), rows)
        .train_steps(6)
        .eval_steps(200)
        .check_interval_secs(0.0);
    let mut experiment = if exports { experiment.checkpoint_and_export() } else { experiment };
    experiment.train_and_evaluate().map(drop)
}

#[test]
#[ignore = "other tests start it as a process"]
fn child_with_an_experiment() {
    let exports = std::env::var(EXPORTS).is_ok();
    let error = experiment(Path::new(&std::env::var(FOLDER).unwrap()), exports).unwrap_err();
    std::io::stdout().write_all(format!("\n{error}\n").as_bytes()).unwrap();
}

/// Sends SIGTERM to this process when a training ends, which no longer looks for signals then.
struct TerminateAtEnd;

impl Hook for TerminateAtEnd {
    fn name(&self) -> &str {
        "terminate_at_end"
    }

    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }
}

#[test]
#[ignore = "other tests start it as a process"]
fn child_with_rounds() {
    let config = RunConfig::new().model_dir(std::env::var(FOLDER).unwrap()).tf_random_seed(7).threads(1);
    let estimator = Estimator::new(linear).config(config).build().unwrap();
    let mut experiment = estimand::Experiment::new(estimator, line(10).repeat_forever().batch(4), line(4).batch(4))
        .train_steps_per_iteration(2)
        .train_hook(TerminateAtEnd);
    let mut n_rounds = 0;
    let ended = experiment.continuous_train_and_eval(|_| {
        n_rounds += 1;
        n_rounds <= 3
    });
    let said = ended.map_or_else(|error| error.to_string(), |_| "the signal was missed".to_string());
    std::io::stdout().write_all(format!("\n{said}\n").as_bytes()).unwrap();
}

/// A signal that comes when a round has ended is not lost with the round.
#[test]
fn rounds_of_an_experiment_end_with_a_signal() {
    let folder = Folder::new();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "interrupted_evaluation::child_with_rounds", "--ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("interrupted by SIGTERM"), "{said}");
    assert_eq!(folder.steps().last(), Some(&2));
}

/// The training of an experiment ends in order, with its own error, wherever it evaluates.
#[test]
fn an_experiment_ends_with_a_signal() {
    for exports in [false, true] {
        let folder = Folder::new();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "interrupted_evaluation::child_with_an_experiment", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if exports {
            command.env(EXPORTS, "yes");
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        assert!(lines.by_ref().filter(|line| line == "evaluating").nth(5).is_some(), "it never evaluated");
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        let rest: Vec<String> = lines.collect();
        assert!(child.wait().unwrap().success());
        let said = |text: &str| rest.iter().any(|line| line.contains(text));
        assert!(said("training was interrupted by SIGTERM at step"), "exports {exports}: {rest:?}");
        assert!(said("run the program again to resume from there"), "exports {exports}: {rest:?}");
    }
}

#[test]
fn an_evaluation_ends_with_a_signal_and_is_made_up_for() -> Result<()> {
    let folder = Folder::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "interrupted_evaluation::child", "--ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    // The first batches are read when the evaluation is set up and its threads start.
    assert!(lines.by_ref().filter(|line| line == "evaluating").nth(20).is_some(), "it never evaluated");
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success());
    assert!(asked.elapsed() < Duration::from_secs(10), "200 batches of 0.1 s were evaluated");
    let said = rest.iter().any(|line| line.contains("training was interrupted by SIGTERM at step 2"));
    assert!(said, "{rest:?}");

    let (whole, resumed) = (Folder::new(), train(folder.path(), Duration::ZERO)?);
    let expected = train(whole.path(), Duration::ZERO)?;
    assert_eq!(resumed.evaluations, expected.evaluations, "steps 2, 4 and 6");
    Ok(())
}
