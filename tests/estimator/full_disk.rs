//! A full disk: the training ends, names the last complete checkpoint, and resumes from it once
//! there is room.
//!
//! The disk is full for a child process: from some step on its files may not grow beyond a size,
//! and the kernel refuses the write.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand::export::ExportSpec;
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;

use crate::models::{Folder, points};

const FOLDER: &str = "ESTIMAND_TEST_FULL_DISK";
const STEPS: &str = "ESTIMAND_TEST_FULL_DISK_STEPS";
/// More than the graph and the events need, less than a checkpoint.
const LIMIT: u64 = 1 << 18;

/// 70,000 weights, with two slots each.
fn broad(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Dropout::new(0.3).apply(&Dense::new(10_000).relu().apply(&cx.feature("x")));
    let loss = Dense::new(3).apply(&net).sparse_softmax_cross_entropy(&cx.label()).mean();
    Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.001)))
}

/// Saves at steps 10 and 20; if it fills the disk, then between the two.
struct SaveTwice {
    fills: bool,
    step: Arc<AtomicU64>,
}

impl Hook for SaveTwice {
    fn name(&self) -> &str {
        "save_twice"
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.step.store(cx.global_step(), Ordering::Relaxed);
        match cx.global_step() {
            10 | 20 => cx.request_save(),
            15 if self.fills => {
                wait_for_checkpoint(cx.model_dir());
                fill_disk();
            }
            _ => {}
        }
        Ok(())
    }

    fn saves_checkpoints(&self) -> bool {
        true
    }
}

/// The checkpoint of step 10 is written in the background; it is to be whole before the disk is
/// full.
fn wait_for_checkpoint(folder: &Path) {
    let is_listed =
        || std::fs::read_to_string(folder.join("checkpoint")).is_ok_and(|list| list.contains("model.ckpt-10"));
    for _ in 0..30_000 {
        if is_listed() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the checkpoint of step 10 was not written");
}

fn fill_disk() {
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: both only change what the kernel does for this process: without the signal, a write
    // beyond the limit is an error.
    let done = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
    };
    assert_eq!(done, 0);
}

fn estimator(folder: &Path) -> Result<Estimator> {
    Estimator::new(broad).config(RunConfig::new().tf_random_seed(11).threads(2)).model_dir(folder).build()
}

/// Trains; also returns the last step that was done.
fn train(folder: &Path, steps: u64, fills: bool) -> (u64, Result<()>) {
    let step = Arc::new(AtomicU64::new(0));
    let hook = SaveTwice { fills, step: step.clone() };
    let spec = TrainSpec::new(points(70).repeat_forever().batch(8)).max_steps(steps).hook(hook);
    let trained = estimator(folder).and_then(|model| model.train(spec)).map(|_| ());
    (step.load(Ordering::Relaxed), trained)
}

/// What the child process runs.
#[test]
#[ignore = "other tests start it as a process"]
fn child() {
    let folder = std::env::var_os(FOLDER).expect("the folder of the training");
    let steps = std::env::var(STEPS).expect("the number of steps");
    let (step, trained) = train(Path::new(&folder), steps.parse().unwrap(), true);
    // Where the parent reads it: the limit holds for files alone.
    println!("ended at {step}: {}", trained.map_or_else(|error| error.to_string(), |()| "well".to_string()));
}

/// What a training on a disk that is full after step 15 says, and the last step that it did.
fn on_full_disk(folder: &Path, steps: u64) -> (u64, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "full_disk::child", "--ignored", "--test-threads=1", "--nocapture"]);
    let output = command.env(FOLDER, folder).env(STEPS, steps.to_string()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.split_once("ended at ").unwrap_or_else(|| panic!("{text}")).1;
    let (step, message) = said.split_once(": ").unwrap();
    (step.parse().unwrap(), message.to_string())
}

fn check_folder_and_message(folder: &Folder, message: &str) {
    for part in ["step 20", "model.ckpt-20.data-00000-of-00001", "last whole checkpoint is", "model.ckpt-10;"] {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert_eq!(folder.steps(), [10]);
    assert!(folder.files().iter().all(|name| !name.contains("tmp")), "{:?}", folder.files());
}

#[test]
fn training_ends_soon_and_goes_on_from_the_checkpoint_before() -> Result<()> {
    let (undisturbed, disturbed) = (Folder::new(), Folder::new());
    train(undisturbed.path(), 20, false).1?;
    let (step, message) = on_full_disk(disturbed.path(), 5_000);
    check_folder_and_message(&disturbed, &message);
    // Nobody asks for another checkpoint after step 20; the training ends all the same.
    assert!(step < 4_000, "it went on to step {step}");

    let metrics = estimator(disturbed.path())?.evaluate(points(16).batch(8))?;
    assert_eq!(metrics.global_step(), 10);
    train(disturbed.path(), 20, false).1?;
    let read = |folder: &Folder| std::fs::read(folder.path().join("model.ckpt-20.data-00000-of-00001")).unwrap();
    assert!(read(&disturbed) == read(&undisturbed), "other bits than without the full disk");
    Ok(())
}

#[test]
fn the_last_save_of_a_training_is_waited_for() {
    let folder = Folder::new();
    let (step, message) = on_full_disk(folder.path(), 20);
    assert_eq!(step, 20);
    check_folder_and_message(&folder, &message);
}

/// What the child process of the next test runs: an export that does not fit on the disk.
#[test]
#[ignore = "other tests start it as a process"]
fn exporting_child() -> Result<()> {
    let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).expect("the folder of the model"));
    let ids = categorical_column_with_hash_bucket("id", 5_000);
    let model = DnnRegressor::new([4], columns![embedding_column(ids, 64)]).model_dir(folder.join("model")).build()?;
    let rows = [("id", Array::from_strings([2], ["a", "b"])?), ("y", Array::from([1f32, 2.0]))];
    model.train(TrainSpec::new(Dataset::from_arrays(rows).label("y").batch(2)).max_steps(1))?;
    fill_disk();
    let export = model.export_saved_model(folder.join("exports"), ExportSpec::default());
    println!("ended at 1: {}", export.map_or_else(|error| error.to_string(), |path| path.display().to_string()));
    Ok(())
}

/// An export on a full disk names the file, and leaves nothing.
#[test]
fn an_export_that_does_not_fit_leaves_nothing() {
    let folder = Folder::new();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "full_disk::exporting_child", "--ignored", "--test-threads=1", "--nocapture"]);
    let output = command.env(FOLDER, folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("variables.data-00000-of-00001"), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(folder.path().join("exports")).unwrap().count(), 0);
}
