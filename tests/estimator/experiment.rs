//! `Experiment` and `learn_runner`, compared with TensorFlow 1.15 (`oracles/gen/experiment.py`).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use estimand::events::read_eval_metrics;
use estimand::hook::{CheckpointListener, CheckpointSaverHook, Hook, HookContext};
use estimand::learn_runner::{self, Options, Schedule};
use estimand::prelude::*;
use estimand::{Cluster, ContinuousEval, Experiment, ExperimentResult, ExportStrategy, TrainSession};
use estimand_fixture::{Case, cases_of};

use crate::hooks::log_lines::logged;
use crate::log_forms::form;
use crate::models::{Folder, line, linear};

/// What happened, in order.
type Events = Rc<RefCell<Vec<String>>>;

/// How long an experiment waited, in seconds.
type Delays = Rc<RefCell<Vec<f64>>>;

/// Writes down the steps of a training, or the batches of an evaluation.
struct Watch {
    events: Events,
    training: bool,
    n_batches: u64,
}

impl Hook for Watch {
    fn name(&self) -> &str {
        "watch"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.n_batches = 0;
        if self.training {
            self.events.borrow_mut().push(format!("train from {}", cx.global_step()));
        }
        Ok(())
    }

    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.n_batches += 1;
        Ok(())
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if !self.training {
            let event = format!("evaluate at {}: {} batches", cx.global_step(), self.n_batches);
            self.events.borrow_mut().push(event);
        }
        Ok(())
    }
}

/// Writes down the end of a training: hooks may still evaluate when their `end` is called.
struct WatchEnd(Events);

impl CheckpointListener for WatchEnd {
    fn end(&mut self, _session: &TrainSession, step: u64) -> Result<()> {
        self.0.borrow_mut().push(format!("trained to {step}"));
        Ok(())
    }
}

fn watch(events: &Events, training: bool) -> Watch {
    Watch { events: events.clone(), training, n_batches: 0 }
}

/// Two rows of y = 3 x in one batch, as in the fixture.
fn rows(n: Option<u64>) -> Dataset {
    let rows = Dataset::from_arrays([("x", Array::from([1f32, 2.0])), ("y", Array::from([3f32, 6.0]))]).label("y");
    let batches = rows.batch(2);
    n.map_or_else(|| batches.repeat_forever(), |n| batches.repeat(n))
}

fn config(folder: &Folder, save: Option<u64>) -> RunConfig {
    let every = save.map_or(Every::Never, Every::Steps);
    RunConfig::new()
        .model_dir(folder.path())
        .save_checkpoints(every)
        .keep_checkpoint_max(None)
        .tf_random_seed(1)
        .threads(1)
}

fn estimator(config: RunConfig) -> Estimator {
    Estimator::new(linear).config(config).build().unwrap()
}

/// An experiment with the settings of a case. It writes down its delays and does not wait.
fn experiment<'a>(case: &Case, folder: &Folder, events: &Events, delays: &Delays) -> Experiment<'a> {
    let (settings, delays) = (case.object("settings"), delays.clone());
    let mut made = Experiment::new(estimator(config(folder, case.option("save"))), rows(None), rows(Some(5)))
        .train_hook(watch(events, true))
        .eval_hook(watch(events, false))
        .told_to_wait(move |secs| delays.borrow_mut().push(secs));
    if let Some(steps) = case.option("saver") {
        made = made.train_hook(CheckpointSaverHook::new(Every::Steps(steps)));
    }
    if saves(case) {
        made = made.listener(WatchEnd(events.clone()));
    }
    for i in 0..case.setting::<usize>("exports") {
        let events = events.clone();
        let name = format!("strategy_{i}");
        made = made.export_strategy(ExportStrategy::new(name.clone(), move |export| {
            let path = export.path.strip_prefix(export.estimator.model_dir()).unwrap().to_path_buf();
            let step = export.metrics.global_step();
            assert!(export.checkpoint.ends_with(format!("model.ckpt-{step}")), "{}", export.checkpoint.display());
            events.borrow_mut().push(format!("export {name} to {} at {step}", path.display()));
            Ok(Some(path))
        }));
    }
    for key in settings.keys() {
        made = match key {
            "train_steps" => made.train_steps(settings.option::<u64>(key)),
            "eval_steps" => made.eval_steps(settings.option::<u64>(key)),
            "min_eval_frequency" => made.min_eval_frequency(settings.setting(key)),
            "local_eval_frequency" => made.local_eval_frequency(settings.option::<u64>(key)),
            "check_interval_secs" => made.check_interval_secs(settings.setting(key)),
            "train_steps_per_iteration" => made.train_steps_per_iteration(settings.option::<u64>(key)),
            "checkpoint_and_export" if settings.setting(key) => made.checkpoint_and_export(),
            "checkpoint_and_export" => made,
            "eval_delay_secs" => made.eval_delay_secs(settings.setting(key)),
            other => panic!("{case}: {other}"),
        };
    }
    made
}

/// Whether a case saves checkpoints.
fn saves(case: &Case) -> bool {
    case.option::<u64>("save").is_some() || case.option::<u64>("saver").is_some()
}

/// Runs a schedule of a case with its arguments.
fn run(experiment: &mut Experiment<'_>, schedule: &Case) -> Result<ExperimentResult> {
    let (method, arguments) = (schedule.setting::<String>("method"), schedule.object("arguments"));
    let given = |key: &str| arguments.has(key);
    let secs = |key: &str| given(key).then(|| arguments.setting::<f64>(key));
    let mut left: u64 = if given("rounds") { arguments.setting("rounds") } else { u64::MAX };
    let mut goes_on = || {
        let more = left > 0;
        left = left.saturating_sub(1);
        more
    };
    match Schedule::named(&method)? {
        Schedule::Train => experiment.train(secs("delay_secs")),
        Schedule::Evaluate => {
            let name: Option<String> = given("name").then(|| arguments.setting("name"));
            experiment.evaluate(secs("delay_secs"), name.as_deref())
        }
        Schedule::ContinuousTrainAndEval => experiment.continuous_train_and_eval(|_| goes_on()),
        schedule @ (Schedule::ContinuousEval | Schedule::ContinuousEvalOnTrainData) => {
            let mut options = ContinuousEval::new().predicate(|_| goes_on());
            if let Some(secs) = secs("delay_secs") {
                options = options.delay_secs(secs);
            }
            if let Some(secs) = secs("throttle_delay_secs") {
                options = options.throttle_delay_secs(secs);
            }
            if given("evaluate_checkpoint_only_once") {
                options = options.evaluate_again();
            }
            if given("name") {
                options = options.name(arguments.setting::<String>("name"));
            }
            match schedule {
                Schedule::ContinuousEval => experiment.continuous_eval(options),
                _ => experiment.continuous_eval_on_train_data(options),
            }
        }
        other => other.run(experiment),
    }
}

/// The events of a case, as [`Watch`] sees them. It does not see a training that has nothing to do,
/// nor evaluations without hooks.
fn expected_events(case: &Case) -> Vec<String> {
    let is_test = |schedule: &Case| schedule.setting::<String>("method") == "test";
    let has_hooks = !case.objects("schedules").iter().all(is_test);
    let mut events: Vec<String> = Vec::new();
    let mut from = 0;
    for event in case.objects("events") {
        match event.setting::<String>("what").as_str() {
            "train" => {
                from = event.setting::<u64>("from");
                events.push(format!("train from {from}"));
            }
            "trained" if event.setting::<u64>("to") == from => drop(events.pop()),
            "trained" => events.push(format!("trained to {}", event.setting::<u64>("to"))),
            "evaluate" if !has_hooks => {}
            "evaluate" => {
                let (at, batches) = (event.setting::<u64>("at"), event.setting::<u64>("batches"));
                events.push(format!("evaluate at {at}: {batches} batches"));
            }
            "export" => {
                let (name, path): (String, String) = (event.setting("name"), event.setting("path"));
                events.push(format!("export {name} to {path} at {}", event.setting::<u64>("at")));
            }
            "sleep" => {}
            other => panic!("{case}: {other}"),
        }
    }
    events
}

/// The delays of a case in seconds.
fn expected_delays(case: &Case) -> Vec<f64> {
    let events = case.objects("events");
    events
        .iter()
        .filter(|event| event.setting::<String>("what") == "sleep")
        .map(|event| event.setting("about"))
        .collect()
}

/// The steps that were evaluated under each name.
fn expected_names(case: &Case) -> BTreeMap<Option<String>, BTreeSet<u64>> {
    let mut names: BTreeMap<Option<String>, BTreeSet<u64>> = BTreeMap::new();
    for event in case.objects("events") {
        if event.setting::<String>("what") == "evaluate" {
            names.entry(event.option("name")).or_default().insert(event.setting("at"));
        }
    }
    names
}

#[test]
fn schedules_call_what_tensorflow_calls() -> Result<()> {
    let mut n_cases = 0;
    for case in cases_of("experiment", "schedule") {
        let (folder, events, delays) = (Folder::new(), Events::default(), Delays::default());
        let mut experiment = experiment(&case, &folder, &events, &delays);
        let mut results = Vec::new();
        for schedule in case.objects("schedules") {
            results.push(run(&mut experiment, &schedule).map_err(|e| e.context(case.to_string()))?);
        }
        let mut found = events.borrow().clone();
        if !saves(&case) {
            // Without checkpoints the fixture does not know that there was a training.
            found.retain(|event| !event.starts_with("train"));
        }
        assert_eq!(found, expected_events(&case), "{case}");
        let (found, expected) = (delays.take(), expected_delays(&case));
        // The throttle counts from the start of an evaluation, which itself takes some time.
        let is_near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 2.5);
        assert!(found.len() == expected.len() && is_near, "{case}: waited {found:?}, expected {expected:?}");
        for (name, steps) in expected_names(&case) {
            let folder = experiment.estimator().eval_dir(name.as_deref());
            let found: BTreeSet<u64> = read_eval_metrics(&folder)?.keys().copied().collect();
            assert_eq!(found, steps, "{case}: {name:?}");
        }
        for (found, expected) in results.iter().zip(case.objects("results")) {
            if let Some(step) = expected.option::<u64>("metrics_step") {
                assert_eq!(found.metrics.as_ref().map(|metrics| metrics.global_step()), Some(step), "{case}");
            }
        }
        n_cases += 1;
    }
    assert!(n_cases >= 39, "{n_cases} cases");
    Ok(())
}

/// Beginnings of the lines that TensorFlow's `Experiment` and its `ValidationMonitor` log, besides
/// those of the Estimator.
const LINES: [&str; 8] = [
    "Validation (step ",
    "Skipping evaluation ",
    "Waiting ",
    "Checking for checkpoint in ",
    "Training model for ",
    "Evaluating model now.",
    "Stop training model ",
    "Exiting continuous eval, ",
];

#[test]
fn schedules_log_the_lines_of_tensorflow() -> Result<()> {
    let mut n_cases = 0;
    for case in cases_of("experiment", "log") {
        let folder = Folder::new();
        let mut experiment = experiment(&case, &folder, &Events::default(), &Delays::default());
        let all = || case.objects("schedules").iter().try_for_each(|schedule| run(&mut experiment, schedule).map(drop));
        let (result, lines) = logged(all);
        result?;
        let is_theirs = |line: &&String| {
            let text = line.split_once(": ").map_or("", |(_, text)| text);
            LINES.iter().any(|beginning| text.starts_with(beginning))
        };
        // Our model has a metric, that of the fixture has none.
        let form = |line: &String| form(line, &folder).replace(" mae = N,", "");
        let found: Vec<String> = lines.iter().filter(is_theirs).map(form).collect();
        assert_eq!(found, case.setting::<Vec<String>>("lines"), "{case}");
        n_cases += 1;
    }
    assert_eq!(n_cases, 6);
    Ok(())
}

#[test]
fn the_role_chooses_the_schedule() -> Result<()> {
    for case in cases_of("experiment", "role") {
        let cluster = Cluster::parse(&case.setting::<String>("tf_config"))?;
        match (Schedule::of(&RunConfig::new().cluster(cluster)), case.has("error")) {
            (Ok(found), false) => assert_eq!(found.name(), case.setting::<String>("schedule"), "{case}"),
            (Err(error), true) => assert_eq!(error.message(), case.setting::<String>("error"), "{case}"),
            (found, _) => panic!("{case}: {found:?}"),
        }
    }
    Ok(())
}

/// A mistake is refused with TensorFlow's words, and with a help.
#[test]
fn mistakes_are_refused_as_in_tensorflow() {
    let folder = Folder::new();
    let made =
        |config: RunConfig| Ok(Experiment::new(estimator(config.threads(1)), rows(None), rows(Some(1))).train_steps(1));
    let plain = |config: RunConfig, _params: HParams| made(config);
    let with_config = || Options::new().run_config(RunConfig::new().model_dir(folder.path()));
    let mut n_cases = 0;
    for case in cases_of("experiment", "refused") {
        let name: String = case.setting("name");
        let result = match name.as_str() {
            "both" => learn_runner::run(plain, with_config().output_dir(folder.path())),
            "neither" => learn_runner::run(plain, Options::new()),
            "empty output_dir" => learn_runner::run(plain, Options::new().output_dir("")),
            "hparams with output_dir" => {
                learn_runner::run(plain, Options::new().output_dir(folder.path()).hparams(HParams::new().set("a", 1)))
            }
            "no model_dir" => learn_runner::run(plain, Options::new().run_config(RunConfig::new())),
            "unknown schedule" => learn_runner::run(plain, with_config().schedule("train_and_evaluated")),
            "property as schedule" => learn_runner::run(plain, with_config().schedule("train_steps")),
            "other model_dir" => {
                let other = Folder::new();
                learn_runner::run(|config, _| made(config.model_dir(other.path())), with_config())
            }
            "other checkpoints" => learn_runner::run(
                |config, _| made(config.save_checkpoints(Every::Steps(7))),
                with_config().schedule("train"),
            ),
            // The types refuse these.
            "train_steps_per_iteration" | "export_strategies" | "eval_metrics" => continue,
            other => panic!("{other}"),
        };
        n_cases += 1;
        match (result, case.option::<String>("error")) {
            (Ok(_), None) => {}
            (Err(error), Some(theirs)) => {
                // The texts of two configurations differ.
                let theirs = theirs.split(" expected ").next().unwrap_or_default();
                assert!(error.message().starts_with(theirs), "{case}\n{error}");
                assert!(error.to_string().lines().count() > 1, "no help: {error}");
            }
            (result, _) => panic!("{case}: {result:?}"),
        }
    }
    assert_eq!(n_cases, 9);
}

#[test]
fn settings_are_checked_before_anything_runs() {
    let folder = Folder::new();
    let new = || Experiment::new(estimator(config(&folder, Some(1))), rows(None), rows(Some(1))).train_steps(2);
    let named = |name: &str| ExportStrategy::new(name, |_| Ok(None));
    let secs = "expected a number of seconds from 0 to 31536000";
    let help = "0 does not wait; one second is 1.0";
    let free = "expected a name that is not empty, has no slashes, and that no other has";
    let other = "choose another name: its exports go to the folder export/<name>";
    for (mut experiment, message, help) in [
        (new().train_steps(0), "train_steps is 0; expected at least 1".to_string(), "None trains until the input ends"),
        (new().eval_steps(0), "eval_steps is 0; expected at least 1".to_string(), "None evaluates the whole input"),
        (
            new().train_steps_per_iteration(0),
            "train_steps_per_iteration is 0; expected at least 1".to_string(),
            "None trains a tenth of train_steps",
        ),
        (new().eval_delay_secs(-1.0), format!("eval_delay_secs is -1; {secs}"), help),
        (new().continuous_eval_throttle_secs(f64::NAN), format!("continuous_eval_throttle_secs is NaN; {secs}"), help),
        (new().check_interval_secs(f64::INFINITY), format!("check_interval_secs is inf; {secs}"), help),
        (new().export_strategy(named("")), format!("an export strategy is named ``; {free}"), other),
        (new().export_strategy(named("../up")), format!("an export strategy is named `../up`; {free}"), other),
        (
            new().export_strategy(named("a")).export_strategy(named("a")),
            format!("an export strategy is named `a`; {free}"),
            other,
        ),
    ] {
        for schedule in Schedule::ALL.into_iter().filter(|schedule| *schedule != Schedule::RunStdServer) {
            let error = schedule.run(&mut experiment).unwrap_err().to_string();
            let expected = format!("{message}\n  in the settings of the Experiment\n  help: {help}");
            assert_eq!(error, expected, "{schedule:?}");
        }
    }
    let delay = format!("delay_secs is -3; {secs}\n  help: {help}");
    assert_eq!(new().train(-3.0).unwrap_err().to_string(), delay);
    assert_eq!(new().evaluate(-3.0, None).unwrap_err().to_string(), delay);
    let throttle = new().continuous_eval(ContinuousEval::new().throttle_delay_secs(-3.0)).unwrap_err();
    assert_eq!(throttle.to_string(), format!("throttle_{delay}"));
    // A tenth of 2 is no step.
    let error = new().continuous_train_and_eval(|_| true).unwrap_err().to_string();
    assert!(error.contains("set train_steps_per_iteration"), "{error}");
    assert_eq!(folder.steps(), Vec::<u64>::new());
}

#[test]
fn a_parameter_server_is_refused_by_name() {
    let folder = Folder::new();
    let tf_config = r#"{"cluster": {"master": ["m:1"], "ps": ["p:1"]}, "task": {"type": "ps", "index": 0}}"#;
    let config = config(&folder, Some(1)).cluster(Cluster::parse(tf_config).unwrap());
    let fun = |config: RunConfig, _: HParams| Ok(Experiment::new(estimator(config), rows(None), rows(Some(1))));
    let error = learn_runner::run(fun, Options::new().run_config(config)).unwrap_err().to_string();
    assert!(error.starts_with("run_std_server starts a parameter server"), "{error}");
}

/// A worker of several does not wait for its delay before it learns that it cannot train.
#[test]
fn a_worker_of_several_is_refused_at_once() {
    let folder = Folder::new();
    let tf_config =
        r#"{"cluster": {"master": ["m:1"], "worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}"#;
    let config = config(&folder, Some(1)).cluster(Cluster::parse(tf_config).unwrap());
    let fun = |config: RunConfig, _: HParams| Ok(Experiment::new(estimator(config), rows(None), rows(Some(1))));
    let start = std::time::Instant::now();
    let error = learn_runner::run(fun, Options::new().run_config(config)).unwrap_err().to_string();
    assert!(error.starts_with("TF_CONFIG names 3 workers"), "{error}");
    assert!(start.elapsed().as_secs() < 4);
}

/// The weights do not depend on evaluations during the training.
#[test]
fn evaluations_do_not_change_the_training() -> Result<()> {
    let weight = |every: u64| -> Result<Array> {
        let folder = Folder::new();
        let data = line(40).shuffle(40, 3).repeat_forever().batch(4);
        let mut experiment = Experiment::new(estimator(config(&folder, Some(3))), data, line(8).batch(4))
            .train_steps(11)
            .eval_steps(None)
            .min_eval_frequency(every)
            .check_interval_secs(0.0);
        experiment.train_and_evaluate()?;
        experiment.estimator().variable_value("w")
    };
    assert_eq!(weight(0)?, weight(1)?);
    Ok(())
}

/// Hooks, listeners and their own listeners take part in each of several trainings.
#[test]
fn hooks_and_listeners_take_part_in_each_training() -> Result<()> {
    #[derive(Clone, Default)]
    struct Steps(Rc<RefCell<Vec<u64>>>);
    impl CheckpointListener for Steps {
        fn after_save(&mut self, _session: &TrainSession, step: u64) -> Result<bool> {
            self.0.borrow_mut().push(step);
            Ok(false)
        }
    }
    let (folder, ours, of_hook) = (Folder::new(), Steps::default(), Steps::default());
    let saver = CheckpointSaverHook::new(Every::Steps(2)).listener(of_hook.clone());
    let mut experiment = Experiment::new(estimator(config(&folder, None)), rows(None), rows(Some(2)))
        .train_steps(4)
        .train_steps_per_iteration(2)
        .train_hook(saver)
        .listener(ours.clone());
    let result = experiment.continuous_train_and_eval(|_| true)?;
    assert_eq!(result.finished.map(|finished| finished.global_step), Some(4));
    // The second training reports the checkpoint that it begins with.
    assert_eq!(*ours.0.borrow(), [0, 2, 2, 4]);
    assert_eq!(*of_hook.0.borrow(), [0, 2, 2, 4]);
    // Started again, it trains no more.
    let mut again = Experiment::new(estimator(config(&folder, None)), rows(None), rows(Some(2)))
        .train_steps(4)
        .train_steps_per_iteration(2);
    let result = again.continuous_train_and_eval(|_| true)?;
    assert!(result.finished.is_none());
    assert_eq!(result.metrics.map(|metrics| metrics.global_step()), Some(4));
    Ok(())
}

/// Each round goes on from the checkpoint of the one before. Without one, TensorFlow does the same
/// steps for ever.
#[test]
fn rounds_that_are_not_saved_are_refused() {
    let folder = Folder::new();
    let run = |save: Option<u64>| {
        Experiment::new(estimator(config(&folder, save)), rows(None), rows(Some(2)))
            .train_steps(if save.is_some() { 2 } else { 6 })
            .train_steps_per_iteration(2)
            .continuous_train_and_eval(|_| true)
    };
    let error = run(None).unwrap_err().to_string();
    let expected =
        "a round ended at step 2, but there is no checkpoint, so the next round would do the same steps again";
    assert_eq!(error, format!("{expected}\n  help: set RunConfig::save_checkpoints"));
    run(Some(1)).unwrap();
    let error = run(None).unwrap_err().to_string();
    assert!(error.starts_with("a round ended at step 4, but the newest checkpoint is of step 2, so"), "{error}");
}

#[test]
fn strategies_can_be_replaced_and_hooks_added() -> Result<()> {
    let (folder, events) = (Folder::new(), Events::default());
    let named = |name: &str| {
        let (events, name) = (events.clone(), name.to_string());
        ExportStrategy::new(name.clone(), move |export| {
            events.borrow_mut().push(format!("{name} {} {}", export.is_best, export.is_final));
            Ok(Some(export.path.clone()))
        })
    };
    let mut experiment = Experiment::new(estimator(config(&folder, Some(1))), rows(None), rows(Some(1)))
        .train_steps(3)
        .listener(WatchEnd(events.clone()))
        .export_strategy(named("old"));
    let old = experiment.reset_export_strategies([named("new")]);
    assert_eq!(old.iter().map(|strategy| strategy.name().to_string()).collect::<Vec<_>>(), ["old"]);
    // What it returns can be put back.
    let new = experiment.reset_export_strategies(old);
    assert_eq!(experiment.reset_export_strategies(new).len(), 1);
    experiment.extend_train_hooks([watch(&events, true)]);
    let exports = [experiment.test()?.exports, experiment.train_and_evaluate()?.exports];
    assert_eq!(exports, [[folder.path().join("export/new")], [folder.path().join("export/new")]]);
    let expected = ["train from 0", "trained to 1", "new true false", "train from 1", "trained to 3", "new true true"];
    assert_eq!(*events.borrow(), expected);
    Ok(())
}

/// TensorFlow's saver notifies the listener that evaluates and exports before those of the
/// experiment, which may read the newest export.
#[test]
fn listeners_follow_the_export_of_a_checkpoint() -> Result<()> {
    struct AfterSave(Events);
    impl CheckpointListener for AfterSave {
        fn after_save(&mut self, _session: &TrainSession, step: u64) -> Result<bool> {
            self.0.borrow_mut().push(format!("listener at {step}"));
            Ok(false)
        }
    }
    let (folder, events) = (Folder::new(), Events::default());
    let of_export = events.clone();
    Experiment::new(estimator(config(&folder, Some(2))), rows(None), rows(Some(1)))
        .train_steps(2)
        .checkpoint_and_export()
        .listener(AfterSave(events.clone()))
        .export_strategy(ExportStrategy::new("all", move |export| {
            of_export.borrow_mut().push(format!("export at {}", export.metrics.global_step()));
            Ok(Some(export.path.clone()))
        }))
        .train_and_evaluate()?;
    assert_eq!(*events.borrow(), ["export at 0", "listener at 0", "export at 2", "listener at 2"]);
    Ok(())
}

/// With `output_dir` the function decides about the estimator; TensorFlow 1.15 compares its
/// configuration only with a `run_config` that was given.
#[test]
fn an_estimator_may_have_another_folder_than_output_dir() -> Result<()> {
    let folder = Folder::new();
    let model = folder.path().join("model");
    let make = |config: RunConfig, _: HParams| {
        assert_eq!(config.model_dir.as_deref(), Some(folder.path()));
        let estimator = Estimator::new(linear).config(config.model_dir(&model)).build()?;
        Ok(Experiment::new(estimator, rows(None), rows(Some(1))).train_steps(2))
    };
    let result = learn_runner::run(make, Options::new().output_dir(folder.path()))?;
    assert_eq!(result.metrics.map(|metrics| metrics.global_step()), Some(2));
    assert!(model.join("model.ckpt-2.index").exists());
    let config = RunConfig::new().model_dir(folder.path());
    let error = learn_runner::run(make, Options::new().run_config(config)).unwrap_err().to_string();
    assert!(error.contains("`RunConfig` instance is expected to be used"), "{error}");
    Ok(())
}

/// An evaluator process, here a thread, sees the checkpoints of a training as they come, and ends
/// with that of the last step.
#[test]
fn continuous_evaluation_follows_a_training() -> Result<()> {
    struct Slow;
    impl Hook for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
            std::thread::sleep(std::time::Duration::from_millis(15));
            Ok(())
        }
    }
    let folder = Folder::new();
    let tf_config = r#"{"cluster": {"chief": ["c:1"]}, "task": {"type": "evaluator", "index": 0}}"#;
    let evaluator = config(&folder, None).cluster(Cluster::parse(tf_config)?);
    let evaluated = std::thread::scope(|scope| {
        let training = scope.spawn(|| {
            let train = TrainSpec::new(rows(None)).max_steps(40).hook(Slow);
            estimator(config(&folder, Some(4))).train(train).map(drop)
        });
        let exports = Events::default();
        let noted = exports.clone();
        let mut experiment = Experiment::new(estimator(evaluator), rows(None), rows(Some(1)))
            .train_steps(40)
            .eval_delay_secs(0.0)
            .continuous_eval_throttle_secs(0.01)
            .export_strategy(ExportStrategy::new("noted", move |export| {
                noted.borrow_mut().push(format!("{} {}", export.metrics.global_step(), export.is_final));
                Ok(None)
            }));
        let result = experiment.continuous_eval(ContinuousEval::new());
        training.join().unwrap()?;
        let steps = exports.borrow().clone();
        result.map(|result| (result.metrics.map(|metrics| metrics.global_step()), steps))
    });
    let (last, steps) = evaluated?;
    assert_eq!(last, Some(40));
    assert!(steps.len() >= 2, "{steps:?}");
    assert_eq!(steps.last().map(String::as_str), Some("40 true"));
    assert!(steps[..steps.len() - 1].iter().all(|step| step.ends_with("false")), "{steps:?}");
    Ok(())
}

/// An error of an evaluation ends the training, and says where it was.
#[test]
fn an_error_in_an_evaluation_ends_the_training() {
    let folder = Folder::new();
    let fails = |cx: &InputFnContext<'_>| match cx.mode {
        Mode::Eval => Err(Error::data("no rows today")),
        _ => Ok(rows(None)),
    };
    let mut experiment = Experiment::new(estimator(config(&folder, Some(1))), rows(None), fails).train_steps(5);
    let error = experiment.train_and_evaluate().unwrap_err().to_string();
    assert!(
        error.contains("no rows today") && error.contains("in the evaluation at step 1 of the experiment"),
        "{error}"
    );
    // The evaluation of a checkpoint that is exported says the same.
    let folder = Folder::new();
    let mut experiment = Experiment::new(estimator(config(&folder, Some(2))), rows(None), fails).train_steps(5);
    experiment = experiment.checkpoint_and_export();
    let error = experiment.train_and_evaluate().unwrap_err().to_string();
    assert!(
        error.contains("no rows today") && error.contains("in the evaluation at step 0 of the experiment"),
        "{error}"
    );
    // An endless input has no end to evaluate up to.
    let mut endless = Experiment::new(estimator(config(&folder, Some(1))), rows(None), rows(None)).eval_steps(None);
    let error = endless.evaluate(0.0, None).unwrap_err().to_string();
    assert!(error.contains("never ends"), "{error}");
}

#[test]
fn names_of_schedules_are_read_again() {
    for schedule in Schedule::ALL {
        assert_eq!(Schedule::named(schedule.name()).unwrap(), schedule);
    }
    let error = Schedule::named("trian").unwrap_err().to_string();
    assert!(error.contains("did you mean `train`?"), "{error}");
}
