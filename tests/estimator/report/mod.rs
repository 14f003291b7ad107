//! The report of a training: the values read from a model folder, the findings in columns, and the
//! page.

mod columns;
mod page;

use std::fs;
use std::path::PathBuf;

use estimand::Report;
use estimand::events::{EventWriter, SessionStatus};
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;

use crate::models::{Folder, line, linear};

fn estimator(folder: &Folder) -> Estimator {
    let config = RunConfig::new().save_checkpoints(Every::Steps(4)).save_summary_steps(1).tf_random_seed(1);
    Estimator::new(linear).model_dir(folder.path()).config(config).build().unwrap()
}

fn endless() -> Dataset {
    line(10).repeat_forever().batch(4)
}

fn rows() -> Dataset {
    line(10).batch(4)
}

/// Fails at a step.
struct Failing(u64);

impl Hook for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if cx.global_step() == self.0 { Err(Error::config("no more")) } else { Ok(()) }
    }
}

/// Whatever ends a training is in its report, of every run.
#[test]
fn why_each_run_ended() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder);
    model.train(TrainSpec::new(endless()).max_steps(6))?;
    model.train(line(8).batch(4))?;
    let stopping = EarlyStopping::lower_is_better("loss").min_delta(1e9);
    let evaluate = || EvalSpec::new(rows()).every(Every::Steps(1));
    let stopped = model.train_and_evaluate(endless(), evaluate().early_stopping(stopping))?;
    model.train(TrainSpec::new(endless()).hook(Failing(12))).unwrap_err();
    // Nothing is trained, so nothing is recorded.
    model.train(TrainSpec::new(endless()).max_steps(6))?;

    let report = model.report()?;
    let runs = report.runs();
    assert_eq!(runs.iter().map(|run| run.first_step).collect::<Vec<_>>(), [Some(1), Some(7), Some(9), Some(11)]);
    assert_eq!(runs.iter().map(|run| run.last_step).collect::<Vec<_>>(), [6, 8, 10, 12]);
    assert_eq!(runs.iter().map(|run| run.n_steps()).collect::<Vec<_>>(), [6, 2, 2, 2]);
    let reasons: Vec<&str> = runs.iter().filter_map(|run| run.reason.as_deref()).collect();
    assert!(reasons[0].contains("6"), "{}", reasons[0]);
    assert_eq!(reasons[1..3], ["the input ended", &stopped.finished.reason]);
    assert_eq!(reasons[3], "no more");
    assert!(report.to_string().contains("training ended at step 12, after 2 steps"), "{report}");
    assert!(report.to_string().contains(": no more"), "{report}");
    // The loss of every step, once.
    assert_eq!(report.curve("loss")?.iter().map(|(step, _)| *step).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    Ok(())
}

/// The evaluations and which was the best are those that the training itself returned; values went
/// through `f32`.
#[test]
fn evaluations_of_several_inputs() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder);
    let far = line(20).batch(5);
    let specs = || {
        [
            EvalSpec::new(rows()).every(Every::Steps(2)),
            EvalSpec::new(&far).name("far").every(Every::Steps(3)).highest_is_best("mae"),
        ]
    };
    model.train_and_evaluate(TrainSpec::new(endless()).max_steps(5), specs())?;
    let trained = model.train_and_evaluate(TrainSpec::new(endless()).max_steps(9), specs())?;
    let report = model.report()?;
    for (name, steps, best) in [(None, vec![2, 4, 5, 6, 8, 9], 9), (Some("far"), vec![3, 5, 6, 9], 3)] {
        let set = report.evaluation(name)?;
        assert_eq!(set.history.iter().map(|metrics| metrics.global_step()).collect::<Vec<_>>(), steps);
        assert_eq!(set.best.as_ref().map(|best| best.global_step()), Some(best));
        let of_training = trained.evaluations.iter().find(|set| set.name.as_deref() == name).unwrap();
        assert_eq!((&set.by, &set.best), (&of_training.by, &of_training.best));
        for (ours, theirs) in set.history.iter().rev().zip(of_training.history.iter().rev()) {
            assert!(ours.iter().eq(theirs.iter().map(|(name, value)| (name, f64::from(value as f32)))), "{ours}");
        }
    }
    let error = report.evaluation(Some("fra")).unwrap_err().to_string();
    assert!(error.contains("did you mean `far`?"), "{error}");
    let error = report.curve("los").unwrap_err().to_string();
    assert!(error.contains("did you mean `loss`?"), "{error}");
    assert!(
        report.to_string().contains("far: evaluated 4 times, the last at step 9; the best (highest mae) at step 3:")
    );

    // Without checkpoints, and so without what they say: the lowest loss.
    fs::remove_file(folder.path().join("checkpoint")).unwrap();
    for step in folder.steps() {
        fs::remove_file(folder.path().join(format!("model.ckpt-{step}.index"))).unwrap();
    }
    let report = Report::read(folder.path())?;
    assert_eq!(report.evaluation(Some("far"))?.by, "lowest loss");
    assert_eq!(report.evaluation(Some("far"))?.best.as_ref().map(|best| best.global_step()), Some(9));
    Ok(())
}

/// Two runs by hand: the second begins again at step 4, after the first was killed at step 6.
fn interrupted(folder: &Folder) -> Result<PathBuf> {
    let mut first = EventWriter::create(folder.path())?;
    (1..=6).try_for_each(|step| first.scalar(step, "loss", step as f32))?;
    let mut evaluated = EventWriter::create(folder.path().join("eval"))?;
    [3, 5, 6].into_iter().try_for_each(|step| evaluated.scalar(step, "loss", step as f32))?;
    let mut second = EventWriter::create(folder.path())?;
    second.session_log(4, SessionStatus::Start, "")?;
    (4..=5).try_for_each(|step| second.scalar(step, "loss", 100.0 + step as f32))?;
    EventWriter::create(folder.path().join("eval"))?.scalar(5, "loss", 105.0)?;
    Ok(second.path().to_path_buf())
}

#[test]
fn steps_that_were_done_again_count_once() -> Result<()> {
    let folder = Folder::new();
    interrupted(&folder)?;
    let report = Report::read(folder.path())?;
    assert_eq!(report.curve("loss")?, [(1, 1.0), (2, 2.0), (3, 3.0), (4, 104.0), (5, 105.0)]);
    let history = &report.evaluation(None)?.history;
    assert_eq!(history.iter().map(|m| (m.global_step(), m["loss"])).collect::<Vec<_>>(), [(3, 3.0), (5, 105.0)]);
    assert_eq!(report.end().map(|run| (run.first_step, run.reason.clone())), Some((Some(4), None)));
    assert!(report.to_string().contains("not recorded: it was killed, or still runs"), "{report}");
    Ok(())
}

#[test]
fn a_damaged_end_is_told_and_the_rest_shown() -> Result<()> {
    let folder = Folder::new();
    let newest = interrupted(&folder)?;
    let bytes = fs::read(&newest).unwrap();
    fs::write(&newest, &bytes[..bytes.len() - 3]).unwrap();
    let report = Report::read(folder.path())?;
    assert_eq!(report.curve("loss")?.last(), Some(&(4, 104.0)));
    assert!(report.notes()[0].contains("is left out") && report.html().contains("is left out"), "{:?}", report.notes());
    Ok(())
}

#[test]
fn nothing_to_report_is_an_error() {
    let folder = Folder::new();
    for path in [folder.path().to_path_buf(), folder.path().join("not/there")] {
        let error = Report::read(&path).unwrap_err().to_string();
        assert!(error.contains("nothing to report") && error.contains("train first"), "{error}");
    }
    let error = estimator(&folder).report().unwrap_err().to_string();
    assert!(error.contains(&folder.path().display().to_string()), "{error}");
}

/// The same run in two folders has the same fingerprints; another seed has others.
#[test]
fn fingerprints_are_of_what_was_learnt() -> Result<()> {
    let run = |steps: u64, rows: usize| -> Result<Vec<(String, String)>> {
        let folder = Folder::new();
        let model = estimator(&folder);
        model.train(TrainSpec::new(endless()).max_steps(steps))?;
        Ok(model.report()?.examine(&line(rows))?.fingerprints())
    };
    let first = run(4, 10)?;
    assert_eq!(first, run(4, 10)?);
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["variables", "model", "seed", "model.ckpt-4", "estimand", "threads", "data plan", "data"]);
    let value = |all: &[(String, String)], name: &str| all.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let later = run(5, 11)?;
    assert_eq!(value(&first, "model"), value(&later, "model"));
    assert_eq!(value(&first, "seed").as_deref(), Some("1"));
    assert_ne!(value(&first, "model.ckpt-4"), value(&later, "model.ckpt-5"));
    assert_ne!(value(&first, "data"), value(&later, "data"));
    Ok(())
}
