//! Callbacks, against recordings of tf.keras (`oracles/gen/keras_callbacks.py`).

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use estimand::keras::{
    BackupAndRestore, Callback, Compile, CsvLogger, Evaluate, Fit, History, LambdaCallback, LearningRateScheduler,
    Logs, Model, ModelCheckpoint, Predict, ReduceLrOnPlateau, Sequential, TensorBoard, TerminateOnNan,
};
use estimand::nn::config::CustomObjects;
use estimand::nn::optimizer;
use estimand::prelude::*;
use estimand_fixture::{Case, cases_of};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("estimand-keras-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The data of the fixture: x, y, and those of the validation.
fn data() -> [Array; 4] {
    let case = &cases_of("keras_callbacks", "data")[0];
    ["x", "y", "val_x", "val_y"].map(|name| {
        let values = case.numbers::<f32>(name);
        Array::from_vec([values.len(), 1], values).unwrap()
    })
}

fn made(optimizer: Optimizer) -> Model {
    let mut model = Sequential::new().input([1]).add(Dense::new(1).use_bias(false)).build().unwrap();
    model.set_weights(&[Array::from_vec([1, 1], vec![1f32]).unwrap()]).unwrap();
    model.compile(Compile::new(optimizer, "mse").metric("mae")).unwrap();
    model
}

fn sgd() -> Model {
    made(Optimizer::keras(Sgd::default(), 0.1))
}

fn weight(model: &Model) -> f32 {
    model.get_weights().unwrap()[0].item::<f32>().unwrap()
}

type Calls = Rc<RefCell<Vec<(String, Option<usize>, Logs)>>>;

/// Notes all calls.
#[derive(Default)]
struct Recorder {
    calls: Calls,
    stop_at: Option<(usize, usize)>,
    epoch: usize,
}

impl Recorder {
    fn note(&self, event: &str, number: Option<usize>, logs: &Logs) -> Result<()> {
        self.calls.borrow_mut().push((event.to_string(), number, logs.clone()));
        Ok(())
    }
}

macro_rules! plain {
    ($($event:ident),*) => {$(
        fn $event(&mut self, _: &mut Model) -> Result<()> { self.note(stringify!($event), None, &Logs::new()) }
    )*};
}
macro_rules! numbered {
    ($($event:ident),*) => {$(
        fn $event(&mut self, _: &mut Model, n: usize) -> Result<()> { self.note(stringify!($event), Some(n), &Logs::new()) }
    )*};
}

impl Callback for Recorder {
    plain!(on_train_begin, on_test_begin, on_predict_begin, on_predict_end);
    numbered!(on_train_batch_begin, on_test_batch_begin, on_predict_batch_begin, on_predict_batch_end);

    fn on_train_end(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.note("on_train_end", None, logs)
    }

    fn on_test_end(&mut self, _: &mut Model, logs: &Logs) -> Result<()> {
        self.note("on_test_end", None, logs)
    }

    fn on_epoch_begin(&mut self, _: &mut Model, epoch: usize) -> Result<()> {
        self.epoch = epoch;
        self.note("on_epoch_begin", Some(epoch), &Logs::new())
    }

    fn on_epoch_end(&mut self, _: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        self.note("on_epoch_end", Some(epoch), logs)
    }

    fn on_train_batch_end(&mut self, model: &mut Model, batch: usize, logs: &Logs) -> Result<()> {
        if self.stop_at == Some((self.epoch, batch)) {
            model.stop_training();
        }
        self.note("on_train_batch_end", Some(batch), logs)
    }

    fn on_test_batch_end(&mut self, _: &mut Model, batch: usize, logs: &Logs) -> Result<()> {
        self.note("on_test_batch_end", Some(batch), logs)
    }

    fn wants_batch_logs(&self) -> bool {
        true
    }
}

/// Compares logs with those of Keras: the same names in the same order, the same numbers.
fn same_logs(ours: &Logs, theirs: &Value, place: &str) {
    let theirs = theirs.as_object().unwrap();
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{place}");
    for (name, value) in ours {
        let wanted = theirs[name].as_f64().unwrap();
        assert!((value - wanted).abs() < 1e-5, "{place}, {name}: {value}, expected {wanted}");
    }
}

#[test]
fn calls_have_the_order_and_the_logs_of_keras() {
    let [x, y, val_x, val_y] = data();
    let mut n_runs = 0;
    for case in cases_of("keras_callbacks", "calls") {
        let run: String = case.setting("run");
        let calls = Calls::default();
        let recorder = Recorder { calls: calls.clone(), stop_at: (run == "stopped").then_some((1, 0)), epoch: 0 };
        let fit = |recorder| Fit::new((&x, &y)).batch_size(2).shuffle(false).verbose(0).callback(recorder);
        let validated = |fit: Fit<'static>| fit.validation_data((&val_x, &val_y));
        let mut model = sgd();
        match run.as_str() {
            "fit" => drop(model.fit(validated(fit(recorder)).epochs(2)).unwrap()),
            "stopped" => drop(model.fit(validated(fit(recorder)).epochs(4)).unwrap()),
            "later" => drop(model.fit(validated(fit(recorder)).epochs(4).initial_epoch(1).validation_freq(2)).unwrap()),
            "evaluate" => {
                drop(model.evaluate(Evaluate::new((&val_x, &val_y)).batch_size(2).callback(recorder)).unwrap());
            }
            "predict" => drop(model.predict(Predict::new(&val_x).batch_size(2).callback(recorder)).unwrap()),
            other => panic!("run {other}"),
        }
        let theirs: Vec<Value> = serde_json::from_str(&case.setting::<String>("calls")).unwrap();
        let calls = calls.borrow();
        let names = |calls: &[(String, Option<usize>, Logs)]| -> Vec<(String, Option<usize>)> {
            calls.iter().map(|(event, number, _)| (event.clone(), *number)).collect()
        };
        let wanted: Vec<(String, Option<usize>)> = theirs
            .iter()
            .map(|call| (call[0].as_str().unwrap().to_string(), call[1].as_u64().map(|n| n as usize)))
            .collect();
        assert_eq!(names(&calls), wanted, "{run}");
        for ((event, number, logs), wanted) in calls.iter().zip(&theirs) {
            same_logs(logs, &wanted[2], &format!("{run}, {event} {number:?}"));
        }
        n_runs += 1;
    }
    assert_eq!(n_runs, 5);
}

fn settings(case: &Case) -> Value {
    serde_json::from_str(&case.setting::<String>("settings")).unwrap()
}

fn same_history(ours: &History, theirs: &str, place: &str) {
    let theirs: serde_json::Map<String, Value> = serde_json::from_str(theirs).unwrap();
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{place}");
    for (name, values) in &theirs {
        let values: Vec<f64> = values.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert_eq!(ours[name].len(), values.len(), "{place}, {name}");
        for (value, wanted) in ours[name].iter().zip(&values) {
            assert!((value - wanted).abs() < 1e-5, "{place}, {name}: {value}, expected {wanted}");
        }
    }
}

/// The same cells: names as they are, numbers as numbers.
fn same_csv(ours: &str, theirs: &str) {
    let cells = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(',').map(str::to_string).collect()).collect()
    };
    let (ours, theirs) = (cells(ours), cells(theirs));
    assert_eq!(ours.len(), theirs.len(), "{ours:?}\n{theirs:?}");
    for (ours, theirs) in ours.iter().flatten().zip(theirs.iter().flatten()) {
        match (ours.parse::<f64>(), theirs.parse::<f64>()) {
            (Ok(a), Ok(b)) => assert!((a - b).abs() < 1e-5, "{ours} {theirs}"),
            _ => assert_eq!(ours, theirs),
        }
    }
}

#[test]
fn callbacks_do_what_those_of_keras_do() {
    let [x, y, val_x, val_y] = data();
    let folder = folder("csv");
    let mut n_cases = 0;
    for case in cases_of("keras_callbacks", "callback") {
        let (name, settings) = (case.setting::<String>("callback"), settings(&case));
        let number = |key: &str| settings[key].as_f64().unwrap();
        let mut model = sgd();
        let fit = Fit::new((&x, &y)).batch_size(2).shuffle(false).verbose(0).epochs(case.setting("epochs"));
        let csv = folder.join("log.csv");
        let history = match name.as_str() {
            "EarlyStopping" => {
                let stopping = EarlyStopping::lower_is_better("val_loss").patience(number("patience") as u64);
                let stopping = stopping.min_delta(number("min_delta"));
                let stopping = if settings["restore"] == true { stopping.restore_best() } else { stopping };
                let fit = fit.validation_data((&val_x, &val_y)).callback(stopping).callback(CsvLogger::new(&csv));
                model.fit(fit)
            }
            "ReduceLROnPlateau" => {
                let reduce = ReduceLrOnPlateau::lower_is_better("val_loss")
                    .factor(number("factor"))
                    .patience(number("patience") as usize)
                    .cooldown(number("cooldown") as usize)
                    .min_lr(number("min_lr"))
                    .min_delta(number("min_delta"));
                model.fit(fit.validation_data((&val_x, &val_y)).callback(reduce))
            }
            "LearningRateScheduler" => {
                model.fit(fit.callback(LearningRateScheduler::new(|epoch, r| if epoch > 0 { r * 0.5 } else { r })))
            }
            other => panic!("callback {other}"),
        };
        same_history(&history.unwrap(), &case.setting::<String>("history"), &format!("{name} {settings}"));
        let (w, wanted) = (weight(&model), case.numbers::<f32>("w")[0]);
        assert!((w - wanted).abs() < 1e-5, "{name} {settings}: {w}, expected {wanted}");
        let theirs: String = case.setting("csv");
        if !theirs.is_empty() {
            same_csv(&std::fs::read_to_string(&csv).unwrap(), &theirs);
        }
        n_cases += 1;
    }
    assert_eq!(n_cases, 7);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn optimizers_train_as_those_of_keras() {
    let [x, y, ..] = data();
    let mut n_cases = 0;
    for case in cases_of("keras_callbacks", "optimizer") {
        let document: String = case.setting("json");
        let mut model = made(optimizer::from_json(&document, &CustomObjects::new()).unwrap());
        model.fit(Fit::new((&x, &y)).batch_size(2).shuffle(false).verbose(0).epochs(3)).unwrap();
        let (w, wanted) = (weight(&model), case.numbers::<f32>("w")[0]);
        assert!((w - wanted).abs() < 1e-5, "{document}: {w}, expected {wanted}");
        n_cases += 1;
    }
    assert_eq!(n_cases, 15);
}

#[test]
fn a_learning_rate_is_set_between_steps() {
    let [x, y, ..] = data();
    let mut model = sgd();
    let before = weight(&model);
    model.set_learning_rate(0.0).unwrap();
    model.train_on_batch((&x, &y)).unwrap();
    assert_eq!(weight(&model), before);
    model.set_learning_rate(0.5).unwrap();
    assert_eq!(model.learning_rate().unwrap(), 0.5);
    model.train_on_batch((&x, &y)).unwrap();
    assert_ne!(weight(&model), before);
    let error = model.set_learning_rate(-1.0).unwrap_err().to_string();
    assert!(error.contains("must be zero or positive, got -1.0"), "{error}");

    let mut scheduled = made(Optimizer::keras(Sgd::default(), Schedule::from(0.1).warm_up(4)));
    assert_eq!(scheduled.learning_rate().unwrap(), 0.0);
    let error = scheduled.set_learning_rate(0.1).unwrap_err().to_string();
    assert!(error.contains("is a schedule, which cannot be set"), "{error}");
}

/// As in Keras, another `compile` has an optimizer that has made no step.
#[test]
fn a_schedule_begins_anew_with_another_compile() {
    let [x, y, ..] = data();
    let warm_up = || Optimizer::keras(Sgd::default(), Schedule::from(0.4).warm_up(4));
    let mut model = made(warm_up());
    for step in 0..3 {
        // Of four steps of warming up, so many are done.
        assert_eq!(model.learning_rate().unwrap() as f32, 0.1 * step as f32);
        model.train_on_batch((&x, &y)).unwrap();
    }
    model.compile(Compile::new(warm_up(), "mse")).unwrap();
    assert_eq!(model.learning_rate().unwrap(), 0.0);
    let before = weight(&model);
    model.train_on_batch((&x, &y)).unwrap();
    assert_eq!(weight(&model), before, "the first step's rate is 0");
    assert_eq!(model.learning_rate().unwrap() as f32, 0.1);
    assert_eq!(model.n_steps(), 4);
}

#[test]
fn a_loss_that_is_not_a_number_ends_the_training() {
    let (x, y) = (Array::from_vec([4, 1], vec![1f32, 1.0, f32::INFINITY, 1.0]).unwrap(), Array::from([1f32; 4]));
    let mut model = sgd();
    let fit = Fit::new((&x, &y)).batch_size(1).shuffle(false).epochs(5).verbose(0).callback(TerminateOnNan);
    let history = model.fit(fit).unwrap();
    assert_eq!(history.epoch, [0]);
    assert_eq!(model.n_steps(), 3);
}

#[test]
fn checkpoints_are_those_of_the_best_epochs() {
    let [x, y, val_x, val_y] = data();
    let folder = folder("checkpoint");
    let path = folder.join("w-{epoch:02d}");
    let mut model = sgd();
    let mut best: Vec<f32> = Vec::new();
    let note = LambdaCallback::new().on_epoch_end(|model, _, _| {
        best.push(weight(model));
        Ok(())
    });
    let save = ModelCheckpoint::new(path.to_str().unwrap()).lowest("val_loss");
    let fit = Fit::new((&x, &y)).batch_size(2).shuffle(false).verbose(0).epochs(6).validation_data((&val_x, &val_y));
    let history = model.fit(fit.callback(note).callback(save)).unwrap();
    let mut lowest = f64::INFINITY;
    for (epoch, loss) in history["val_loss"].iter().enumerate() {
        let prefix = folder.join(format!("w-{:02}", epoch + 1));
        let is_saved = prefix.with_extension("index").exists();
        assert_eq!(is_saved, *loss < lowest, "epoch {epoch}");
        if is_saved {
            lowest = *loss;
            let mut other = sgd();
            other.load_weights(&prefix).unwrap();
            assert_eq!(weight(&other), best[epoch]);
        }
    }
    assert!(lowest < history["val_loss"][5], "the last epoch is the best one: the test shows nothing");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tensor_board_gets_keras_tags() {
    let [x, y, val_x, val_y] = data();
    let folder = folder("board");
    let mut model = sgd();
    let board = TensorBoard::new(&folder).histogram_freq(1).update_freq(1);
    let fit = Fit::new((&x, &y)).batch_size(3).verbose(0).epochs(2).validation_data((&val_x, &val_y)).callback(board);
    let history = model.fit(fit).unwrap();
    let train = estimand::events::read_eval_metrics(folder.join("train")).unwrap();
    assert_eq!(train[&1]["epoch_loss"], history["loss"][1] as f32);
    assert!(train[&3].contains_key("batch_mae"));
    let validation = estimand::events::read_eval_metrics(folder.join("validation")).unwrap();
    assert_eq!(validation[&0]["epoch_mae"], history["val_mae"][0] as f32);
    assert_eq!(validation[&4]["evaluation_loss_vs_iterations"], history["val_loss"][1] as f32);
    std::fs::remove_dir_all(folder).unwrap();
}

/// A model with dropout and Adam, whose steps depend on the seed, the step and the slots.
fn dropped(path: &std::path::Path, options: &str, slow: bool) -> Vec<f32> {
    let x = Array::from_vec([40, 3], (0..120).map(|i| ((i * 37) % 101) as f32 / 101.0).collect()).unwrap();
    let y = Array::from_vec([40], (0..40).map(|i| i64::from(i % 3 == 0)).collect()).unwrap();
    let mut model = Sequential::new()
        .input([3])
        .add(Dense::new(8).relu())
        .add(Dropout::new(0.3))
        .add(Dense::new(2).softmax())
        .build()
        .unwrap();
    model.compile(Compile::new("adam", "sparse_categorical_crossentropy").metric("accuracy")).unwrap();
    let backup = BackupAndRestore::new(path.join("backup"));
    let backup = if options == "batches" { backup.every_batches(3) } else { backup };
    let progress = path.join("progress");
    let wait = LambdaCallback::new().on_train_batch_begin(|model, _| {
        std::fs::write(&progress, model.n_steps().to_string()).unwrap();
        if slow {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    });
    let rates = LearningRateScheduler::new(|_, rate| rate * 0.9);
    let fit = match options {
        "steps" => {
            let rows = Dataset::from_arrays([("x", x.clone()), ("y", y.clone())]).label("y").shuffle(40, 3);
            Fit::new(rows.repeat_forever().batch(4)).steps_per_epoch(7)
        }
        _ => Fit::new((&x, &y)).batch_size(4),
    };
    let fit = fit.epochs(8).verbose(0).callback(backup).callback(wait);
    let fit = if options == "batches" { fit } else { fit.callback(rates) };
    model.fit(fit).unwrap();
    model.get_weights().unwrap().iter().flat_map(|w| w.as_slice::<f32>().unwrap().to_vec()).collect()
}

/// The process that `a_killed_training_goes_on_with_the_same_bits` kills.
#[test]
#[ignore = "run by another test"]
fn killed_child() {
    let Ok(path) = std::env::var("ESTIMAND_KERAS_KILLED") else { return };
    let options = std::env::var("ESTIMAND_KERAS_OPTIONS").unwrap();
    dropped(&PathBuf::from(path), &options, true);
}

#[test]
fn a_killed_training_goes_on_with_the_same_bits() {
    for options in ["epochs", "batches", "steps"] {
        let (whole, killed) = (folder(&format!("whole-{options}")), folder(&format!("killed-{options}")));
        std::fs::create_dir_all(&whole).unwrap();
        std::fs::create_dir_all(&killed).unwrap();
        let expected = dropped(&whole, options, false);
        assert!(!whole.join("backup/chief").exists(), "the backup stays after the end");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "callbacks::killed_child", "--ignored"])
            .env("ESTIMAND_KERAS_KILLED", &killed)
            .env("ESTIMAND_KERAS_OPTIONS", options)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let steps = || std::fs::read_to_string(killed.join("progress")).ok().and_then(|text| text.parse::<u64>().ok());
        let started = Instant::now();
        // In the middle of the third or fourth epoch.
        while steps().is_none_or(|n| n < 25) {
            assert!(started.elapsed() < Duration::from_secs(60), "the child does not train");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(killed.join("backup/chief").exists());
        std::fs::remove_file(killed.join("progress")).unwrap();
        let resumed = dropped(&killed, options, false);
        assert_eq!(resumed, expected, "{options}");
        for folder in [whole, killed] {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}

#[test]
fn a_backup_of_another_model_is_refused() {
    let [x, y, ..] = data();
    let folder = folder("other");
    let stop = LambdaCallback::new().on_epoch_end(|_, _, _| Err(Error::config("a crash")));
    let mut model = sgd();
    let fit = Fit::new((&x, &y)).verbose(0).epochs(2);
    model.fit(fit.callback(BackupAndRestore::new(&folder)).callback(stop)).unwrap_err();
    let mut other = made(Optimizer::keras(Adam::default(), 0.1));
    let fit = Fit::new((&x, &y)).verbose(0).epochs(2).callback(BackupAndRestore::new(&folder));
    let error = other.fit(fit).unwrap_err().to_string();
    assert!(error.contains("values that the model does not have: SGD/"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A crash right after the last batch of an epoch, with a backup of that batch.
#[test]
fn a_backup_of_the_last_batch_goes_on_with_the_next_epoch() {
    let [x, y, ..] = data();
    let rows = Dataset::from_arrays([("x", x.clone()), ("y", y.clone())]).label("y").batch(2);
    for steps in [None, Some(3)] {
        let run = |backup: Option<&PathBuf>, crashes: bool| -> Option<Vec<Array>> {
            let mut model = made(Optimizer::keras(Adam::default(), 0.1));
            let fit = match steps {
                Some(n) => Fit::new(rows.repeat_forever()).steps_per_epoch(n),
                None => Fit::new(&rows),
            };
            let crash = LambdaCallback::new().on_epoch_end(move |_, epoch, _| match crashes && epoch == 1 {
                true => Err(Error::config("a crash")),
                false => Ok(()),
            });
            let fit = fit.epochs(4).verbose(0).callback(crash);
            let fit = match backup {
                Some(folder) => fit.callback(BackupAndRestore::new(folder).every_batches(3)),
                None => fit,
            };
            model.fit(fit).is_ok().then(|| model.get_weights().unwrap())
        };
        let folder = folder("last-batch");
        assert_eq!(run(Some(&folder), true), None);
        assert_eq!(run(Some(&folder), false), run(None, false), "{steps:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
