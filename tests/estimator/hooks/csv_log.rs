//! The progress of a training as a CSV file.

use std::path::Path;

use estimand::hook::CsvLogHook;
use estimand::prelude::*;

use super::log_lines::logged;
use super::{endless, estimator};
use crate::models::Folder;
use crate::recorder::{Log, Recorder};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Rows (0, 0) and (0.5, 1.5), w = 0, rate 0.5: the loss is mean(x^2) (w - 3)^2 = (w - 3)^2 / 8,
/// and w += 0.5 * (3 - w) / 4, so that 3 - w shrinks by 7/8 in a step: losses of 9/8 and 9/8 *
/// 49/64, and w is 0 and 3/8 before the update.
#[test]
fn rows_are_step_loss_and_chosen_numbers() -> Result<()> {
    let folder = Folder::new();
    let data = crate::models::line(2).repeat(4).batch(2);
    let model = Estimator::new(crate::models::linear)
        .params(HParams::new().set("rate", 0.5))
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder.path())
        .build()?;
    model.train(TrainSpec::new(&data).steps(2).hook(CsvLogHook::new("logs/a.csv", Every::Steps(1)).named("w")))?;
    assert_eq!(read(&folder.path().join("logs/a.csv")), "step,loss,w\n1,1.125,0\n2,0.8613281,0.375\n");
    Ok(())
}

/// Steps that were done again after an error are there once, and the rows are those of a run that
/// was not disturbed.
#[test]
fn a_run_that_goes_on_leaves_the_file_of_one_that_never_stopped() -> Result<()> {
    let hook = || CsvLogHook::new("training.csv", Every::Steps(3)).named("w");
    let (whole, parts) = (Folder::new(), Folder::new());
    estimator(&whole, 5).train(TrainSpec::new(endless()).max_steps(30).hook(hook()))?;
    let model = estimator(&parts, 5);
    let path = parts.path().join("training.csv");
    for fail_at in [14, 22] {
        let failing = Recorder { fail_at: Some(fail_at), ..Recorder::new(&Log::default()) };
        model.train(TrainSpec::new(endless()).hook(hook()).hook(failing)).unwrap_err();
        // As a process leaves it that is killed while it writes.
        let text = read(&path);
        std::fs::write(&path, format!("{text}{fail_at},0.1")).unwrap();
    }
    let (finished, lines) = logged(|| model.train(TrainSpec::new(endless()).max_steps(30).hook(hook())));
    finished?;
    assert!(lines.iter().any(|line| line.starts_with("WARN: Rows of") && line.contains("after step 20")), "{lines:?}");
    assert_eq!(read(&path), read(&whole.path().join("training.csv")));
    assert_eq!(read(&path).lines().count(), 1 + 10);
    Ok(())
}

/// A file system may make a file longer before the bytes of its end are on the disk: after a power
/// failure zeros are there, in the header of a new file too.
#[test]
fn zeros_that_a_power_failure_left_are_cut_off() -> Result<()> {
    let hook = || CsvLogHook::new("training.csv", Every::Steps(3));
    let (whole, cut) = (Folder::new(), Folder::new());
    estimator(&whole, 5).train(TrainSpec::new(endless()).max_steps(9).hook(hook()))?;
    let path = cut.path().join("training.csv");
    std::fs::write(&path, "step,\0\0\0\0\0").unwrap();
    estimator(&cut, 5).train(TrainSpec::new(endless()).max_steps(5).hook(hook()))?;
    std::fs::write(&path, read(&path) + "6,0.\0\0\0\0\0").unwrap();
    estimator(&cut, 5).train(TrainSpec::new(endless()).max_steps(9).hook(hook()))?;
    assert_eq!(read(&path), read(&whole.path().join("training.csv")));
    Ok(())
}

#[test]
fn files_and_columns_that_do_not_fit() {
    let folder = Folder::new();
    let model = estimator(&folder, 100);
    let train = |hook: CsvLogHook| model.train(TrainSpec::new(endless()).steps(2).hook(hook)).unwrap_err().to_string();
    let log = || CsvLogHook::new("a.csv", Every::Steps(1));
    let path = folder.path().join("a.csv");
    for (text, part) in
        [("epoch,loss\n1,2\n", "begins with the header `epoch,loss`"), ("step,loss\nx,1\n", "line 2 does not begin")]
    {
        std::fs::write(&path, text).unwrap();
        let error = train(log());
        assert!(error.contains(part) && error.contains("a.csv"), "{error}");
        assert_eq!(read(&path), text, "it is left alone");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(train(log().named("loss")).contains("two columns `loss`"));
    assert!(train(log().named("wight")).contains("there is no tensor `wight`"));
    let error = train(log().named("Mul"));
    for part in ["a value of the CSV log is f32[4]", "column `Mul`", "after_run of hook `csv_log`"] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert!(train(CsvLogHook::new("a.csv", Every::Secs(-1.0))).contains("a period of -1 seconds"));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(train(log()).contains("a.csv"));
}

/// Half a header is what a killed process left before its first row.
#[test]
fn half_a_header_is_begun_anew() -> Result<()> {
    let folder = Folder::new();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "step,lo").unwrap();
    estimator(&folder, 100)
        .train(TrainSpec::new(endless()).steps(1).hook(CsvLogHook::new("a.csv", Every::Steps(1))))?;
    assert!(read(&path).starts_with("step,loss\n1,"), "{}", read(&path));
    Ok(())
}
