//! The law of kills for a training with evaluations, in ordinary processes.
//!
//! A training is killed at chosen moments (in hooks, evaluations, exporters and while a cache is
//! filled) and at random ones; then it is started again. It must end at the same step, for the same
//! reason, with the same best evaluations, and leave the files of an undisturbed training:
//! checkpoints, exports, the CSV log and the cache byte for byte, evaluations number by number.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use estimand::events::read_eval_metrics;
use estimand::hook::{
    BeginContext, CheckpointListener, CsvLogHook, EarlyStoppingHook, Hook, HookContext, InMemoryEvaluatorHook,
    StopIfHook,
};
use estimand::nn::metric;
use estimand::prelude::*;
use estimand::{Export, Exporter, Finished, TrainSession};

use crate::models::{Folder, points};

/// The form of the training, its folder, and the moment at which it dies.
const FORM: &str = "ESTIMAND_TEST_KILLED_FORM";
const FOLDER: &str = "ESTIMAND_TEST_KILLED_FOLDER";
const MOMENT: &str = "ESTIMAND_TEST_KILLED_MOMENT";

/// The moments of a training, counted; at a chosen one the process dies.
#[derive(Clone, Default)]
struct Moments {
    n: Arc<AtomicUsize>,
    fatal: Option<usize>,
    names: Arc<Mutex<Vec<String>>>,
}

impl Moments {
    fn pass(&self, what: &str) {
        self.names.lock().unwrap().push(what.to_string());
        if Some(self.n.fetch_add(1, Ordering::Relaxed)) == self.fatal {
            // No destructor runs, nothing is flushed: what a kill leaves.
            std::process::abort();
        }
    }
}

impl Hook for Moments {
    fn name(&self) -> &str {
        "moments"
    }
    fn begin(&mut self, _cx: &mut BeginContext<'_>) -> Result<()> {
        self.pass("begin");
        Ok(())
    }
    fn after_create_session(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.pass("after_create_session");
        Ok(())
    }
    fn before_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.pass("before_run");
        Ok(())
    }
    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.pass("after_run");
        Ok(())
    }
    fn before_save(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.pass("before_save");
        Ok(())
    }
    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.pass("end");
        Ok(())
    }
}

impl CheckpointListener for Moments {
    fn before_save(&mut self, _session: &TrainSession, _step: u64) -> Result<()> {
        self.pass("before a checkpoint");
        Ok(())
    }
    fn after_save(&mut self, _session: &TrainSession, _step: u64) -> Result<bool> {
        self.pass("after a checkpoint");
        Ok(false)
    }
    fn end(&mut self, _session: &TrainSession, _step: u64) -> Result<()> {
        self.pass("the end of listeners");
        Ok(())
    }
}

/// Keeps a line for each evaluation, or only that of the best one; a file is whole or not there.
struct Keep {
    name: &'static str,
    only_best: bool,
    moments: Moments,
}

impl Exporter for Keep {
    fn name(&self) -> &str {
        self.name
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        let (step, is_best, is_final) = (export.metrics.global_step(), export.is_best, export.is_final);
        self.moments.pass("an exporter begins");
        assert!(export.checkpoint.ends_with(format!("model.ckpt-{step}")), "{}", export.checkpoint.display());
        if self.only_best && !is_best {
            return Ok(None);
        }
        let bits: Vec<String> = export.metrics.iter().map(|(k, v)| format!("{k} {:x}", v.to_bits())).collect();
        let text = format!("{step} {is_best} {is_final} {}\n", bits.join(" "));
        fs::create_dir_all(&export.path).unwrap();
        let path = export.path.join(if self.only_best { "best".to_string() } else { step.to_string() });
        let beside = export.path.join("tmp-export");
        fs::write(&beside, &text[..text.len() / 2]).unwrap();
        self.moments.pass("an exporter has written half");
        fs::write(&beside, &text).unwrap();
        fs::rename(beside, &path).unwrap();
        self.moments.pass("an exporter has written all");
        Ok(Some(path))
    }
}

/// The score of each step: evaluated every 3 steps it gets better until step 12. At all other steps
/// it is far better, so that an evaluation that is out of turn decides otherwise.
fn scores() -> Vec<f32> {
    let score = |step: usize| match step {
        0 => 0.0,
        step if !step.is_multiple_of(3) => 5.0 + step as f32,
        step if step <= 12 => step as f32 / 12.0,
        _ => 0.5,
    };
    (0..200).map(score).collect()
}

/// A small network whose metric `score` is known for every step.
fn scored(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = Dropout::new(0.3).apply(&Dense::new(8).relu().apply(&cx.feature("x")));
    let logits = Dense::new(3).apply(&x);
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
    let at = cx.global_step().cast(DType::I64).reshape([1]);
    let score = metric::mean(&cx.graph().constant(scores()).gather(&at), None);
    Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.01)).metric("score", score))
}

/// What came of a training, and what early stopping and exports go by.
#[derive(Debug, PartialEq)]
struct Outcome {
    step: u64,
    reason: String,
    best: Vec<Option<(u64, u64)>>,
}

/// All forms of the law: how the training ends.
const FORMS: [&str; 9] = [
    "early stopping",
    "function",
    "stop if",
    "in memory",
    "max steps",
    "steps",
    "input",
    "input and checkpoint",
    "restore best",
];

fn train(form: &str, folder: &Path, moments: &Moments) -> Result<Outcome> {
    let every = if form == "input and checkpoint" { 6 } else { 7 };
    let config = RunConfig::new().tf_random_seed(11).threads(1).input_threads(1).save_summary_steps(4);
    // The best checkpoint stays although it is old.
    let keep = if form == "restore best" { Some(1) } else { None };
    let config = config.save_checkpoints(Every::Steps(every)).keep_checkpoint_max(keep);
    let model = Estimator::new(scored).config(config).model_dir(folder).build()?;

    let of_cache = moments.clone();
    let rows = points(70).map(move |rows| {
        of_cache.pass("rows of the cache");
        Ok(rows)
    });
    let rows = rows.cache_to(folder.join("rows.cache"));
    let rows = if form.starts_with("input") { rows.repeat(2) } else { rows.repeat_forever() };
    let mut spec = TrainSpec::new(rows.batch(8)).hook(CsvLogHook::new("training.csv", Every::Steps(5)));
    spec = spec.hook(moments.clone()).listener(moments.clone());
    let stopping = || EarlyStopping::higher_is_better("score").patience(3).min_delta(0.01);
    spec = match form {
        "function" => spec.hook(
            EarlyStoppingHook::new(|cx| Ok((cx.global_step() >= 16).then(|| "it is enough".to_string())))
                .every(Every::Steps(4)),
        ),
        "stop if" => {
            spec.hook(StopIfHook::no_increase("score", 6).eval_dir(folder.join("eval_near")).every(Every::Steps(1)))
        }
        "max steps" => spec.max_steps(21),
        "steps" => spec.steps(20),
        _ => spec,
    };
    let near = || EvalSpec::new(points(30).batch(7)).name("near").highest_is_best("score").hook(moments.clone());
    if form == "in memory" {
        let hook = InMemoryEvaluatorHook::new(&model, near().early_stopping(stopping())).every_n_iter(3);
        let finished = model.train(spec.hook(hook))?;
        return Ok(outcome(finished, Vec::new()));
    }
    let near = near().every(Every::Steps(3));
    let near = match form {
        "early stopping" => near.early_stopping(stopping()),
        "restore best" => near.early_stopping(stopping().restore_best()),
        _ => near,
    };
    let keep = |name, only_best| Keep { name, only_best, moments: moments.clone() };
    let far = EvalSpec::new(points(20).batch(7)).name("far").throttle_secs(0.0);
    let far = far.exporter(keep("all", false)).exporter(keep("best", true));
    let trained = model.train_and_evaluate(spec, [near, far])?;
    let best = trained.evaluations.iter().map(|set| {
        let best = set.best.as_ref()?;
        Some((best.global_step(), best["score"].to_bits()))
    });
    Ok(outcome(trained.finished, best.collect()))
}

fn outcome(finished: Finished, best: Vec<Option<(u64, u64)>>) -> Outcome {
    Outcome { step: finished.global_step, reason: finished.reason, best }
}

/// What the killed process runs.
#[test]
#[ignore = "other tests start it as a process"]
fn child() -> Result<()> {
    let folder = std::env::var_os(FOLDER).expect("the folder of the training");
    let fatal = std::env::var(MOMENT).ok().and_then(|moment| moment.parse().ok());
    let moments = Moments { fatal, ..Moments::default() };
    let form = std::env::var(FORM).unwrap();
    let folder = Path::new(&folder);
    if form == "writers" {
        return write(folder, &moments);
    }
    let outcome = train(&form, folder, &moments)?;
    fs::write(folder.join("outcome"), format!("{outcome:?}")).unwrap();
    Ok(())
}

fn start(form: &str, folder: &Path, moment: Option<usize>) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed_evaluation::child", "--ignored", "--test-threads=1"]);
    command.env(FORM, form).env(FOLDER, folder);
    if let Some(moment) = moment {
        command.env(MOMENT, moment.to_string());
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// All files of a folder by their names, but those that a clock or the number of starts decides.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !["tfevents", "tmp-", "outcome", "estimand.lock"].iter().any(|part| name.contains(part)) {
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// A training that nobody disturbed.
struct Undisturbed {
    form: &'static str,
    folder: Folder,
    outcome: Outcome,
    moments: Vec<String>,
}

impl Undisturbed {
    fn new(form: &'static str) -> Result<Undisturbed> {
        let (folder, moments) = (Folder::new(), Moments::default());
        let outcome = train(form, folder.path(), &moments)?;
        let moments = std::mem::take(&mut *moments.names.lock().unwrap());
        Ok(Undisturbed { form, folder, outcome, moments })
    }

    /// What is different in a folder; nothing, if the law holds.
    fn differences(&self, folder: &Path, outcome: &str) -> Vec<String> {
        let mut found = Vec::new();
        let expected = format!("{:?}", self.outcome);
        if outcome != expected {
            found.push(format!("{outcome}, not {expected}"));
        }
        let (ours, theirs) = (files(self.folder.path()), files(folder));
        for name in ours.keys().chain(theirs.keys()) {
            if ours.get(name) != theirs.get(name) {
                let size = |files: &BTreeMap<String, Vec<u8>>| files.get(name).map(Vec::len);
                found.push(format!("{name}: {:?} bytes, not {:?}", size(&theirs), size(&ours)));
            }
        }
        for set in ["eval_near", "eval_far"] {
            let read = |folder: &Path| format!("{:?}", read_eval_metrics(folder.join(set)).unwrap());
            if read(folder) != read(self.folder.path()) {
                found.push(format!("the evaluations in {set}: {}", read(folder)));
            }
        }
        // Each start writes a summary at its first step beside those of the period.
        let losses = read_eval_metrics(folder).unwrap();
        for (step, values) in read_eval_metrics(self.folder.path()).unwrap() {
            if losses.get(&step).and_then(|v| v.get("loss")) != values.get("loss") {
                found.push(format!("the loss of step {step} in the event files"));
            }
        }
        found.dedup();
        found
    }

    /// Kills at these moments, one after the other, in the same folder, and lets the training end;
    /// returns what is different.
    fn killed_at(&self, moments: &[usize]) -> Option<String> {
        let folder = Folder::new();
        for &moment in moments {
            let status = start(self.form, folder.path(), Some(moment)).wait().unwrap();
            if status.success() {
                // The rest had fewer moments: the process has ended before this one.
                let outcome = fs::read_to_string(folder.path().join("outcome")).unwrap();
                return self.report(moments, self.differences(folder.path(), &outcome));
            }
        }
        let found = match train(self.form, folder.path(), &Moments::default()) {
            Ok(outcome) => self.differences(folder.path(), &format!("{outcome:?}")),
            Err(error) => vec![error.to_string()],
        };
        self.report(moments, found)
    }

    fn report(&self, moments: &[usize], found: Vec<String>) -> Option<String> {
        let names: Vec<_> =
            moments.iter().map(|&m| format!("{m} ({})", self.moments.get(m).map_or("", String::as_str))).collect();
        (!found.is_empty()).then(|| format!("{}, killed at {}: {}", self.form, names.join(", "), found.join("; ")))
    }
}

/// The moments whose names show that much is at stake, and every `stride`-th of the others.
fn chosen(moments: &[String], stride: usize) -> Vec<usize> {
    let is_rare = |name: &str| !["before_run", "after_run"].contains(&name);
    let n_before = |i: usize| moments[..i].iter().filter(|name| *name == &moments[i]).count();
    (0..moments.len()).filter(|&i| i % stride == 0 || (is_rare(&moments[i]) && n_before(i) % 3 == 2)).collect()
}

fn law(form: &'static str, stride: usize) -> Result<()> {
    let undisturbed = Undisturbed::new(form)?;
    let mut moments = chosen(&undisturbed.moments, stride);
    // The last moments are those of the end.
    moments.extend(undisturbed.moments.len().saturating_sub(6)..undisturbed.moments.len());
    moments.sort_unstable();
    moments.dedup();
    let broken: Vec<_> = moments.iter().filter_map(|&moment| undisturbed.killed_at(&[moment])).collect();
    assert!(broken.is_empty(), "{} of {} kills:\n{}", broken.len(), moments.len(), broken.join("\n"));
    // Twice and three times: what the second start leaves is killed too.
    let n = undisturbed.moments.len();
    let broken: Vec<_> =
        [vec![n / 3, n / 4], vec![n / 2, n / 2, n / 3]].iter().filter_map(|m| undisturbed.killed_at(m)).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

#[test]
fn a_killed_training_stops_early_where_it_would_have() -> Result<()> {
    law(FORMS[0], 5)
}

#[test]
fn a_killed_training_stops_by_a_function_where_it_would_have() -> Result<()> {
    law(FORMS[1], 23)
}

#[test]
fn a_killed_training_stops_by_metrics_in_files_where_it_would_have() -> Result<()> {
    law(FORMS[2], 23)
}

#[test]
fn a_killed_training_with_evaluations_in_memory_stops_where_it_would_have() -> Result<()> {
    law(FORMS[3], 23)
}

#[test]
fn a_killed_training_reaches_its_last_step_and_ends_there() -> Result<()> {
    law(FORMS[4], 31)
}

#[test]
fn a_killed_training_of_n_steps_does_n_steps() -> Result<()> {
    law(FORMS[5], 31)
}

#[test]
fn a_killed_training_ends_with_its_input() -> Result<()> {
    law(FORMS[6], 31)?;
    law(FORMS[7], 31)
}

/// The folder ends with the best checkpoint as the one to use, and with the same files.
#[test]
fn a_killed_training_keeps_and_restores_its_best_checkpoint() -> Result<()> {
    law(FORMS[8], 5)
}

/// Whether a training in this folder has begun and returned.
fn is_over(folder: &Path) -> bool {
    folder.join("checkpoint").exists() && !folder.join("unfinished.json").exists()
}

/// Kills from outside, at any moment, also within a save in the background.
#[test]
fn kills_at_random_moments_change_nothing() -> Result<()> {
    let undisturbed = Undisturbed::new(FORMS[0])?;
    let mut random = 7_u64;
    for round in 0..3 {
        let folder = Folder::new();
        let outcome = folder.path().join("outcome");
        for _ in 0..6 {
            let mut child = start(FORMS[0], folder.path(), None);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_millis(5 + (random >> 33) % 60));
            child.kill().unwrap();
            child.wait().unwrap();
            if outcome.exists() || is_over(folder.path()) {
                break;
            }
        }
        let is_written = fs::read(&outcome).is_ok_and(|text| !text.is_empty());
        if is_over(folder.path()) && !is_written {
            // The kill came after the training had returned: to start again is another training.
            continue;
        }
        if !outcome.exists() {
            assert!(start(FORMS[0], folder.path(), None).wait().unwrap().success());
        }
        let found = undisturbed.differences(folder.path(), &fs::read_to_string(&outcome).unwrap());
        assert!(found.is_empty(), "round {round}: {}", found.join("; "));
    }
    Ok(())
}

/// Rows to files of both kinds.
fn write(folder: &Path, moments: &Moments) -> Result<()> {
    let moments = moments.clone();
    let rows = points(3000).map(move |rows| {
        moments.pass("rows of a file");
        Ok(rows)
    });
    rows.write_csv(folder.join("rows.csv"))?;
    rows.write_tfrecord(folder.join("rows.tfrecord"))?;
    Ok(())
}

/// A writer that is killed leaves no file or a whole one, and the next run writes what it would
/// have.
#[test]
fn a_killed_writer_leaves_a_whole_file_or_none() -> Result<()> {
    let (whole, moments) = (Folder::new(), Moments::default());
    write(whole.path(), &moments)?;
    let expected = files(whole.path());
    assert_eq!(expected.len(), 2);
    for moment in 0..moments.n.load(Ordering::Relaxed) {
        let folder = Folder::new();
        assert!(!start("writers", folder.path(), Some(moment)).wait().unwrap().success());
        for (name, bytes) in files(folder.path()) {
            assert!(expected.get(&name) == Some(&bytes), "{name} after a kill at moment {moment}");
        }
        write(folder.path(), &Moments::default())?;
        assert!(files(folder.path()) == expected, "killed at moment {moment}");
    }
    Ok(())
}
