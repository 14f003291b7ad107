//! `IteratorInitializerHook` and `Placeholders`, compared with TensorFlow 1.15
//! (`oracles/gen/iterator_initializer.py`).

use std::cell::RefCell;
use std::rc::Rc;

use estimand::Experiment;
use estimand::data::Placeholders;
use estimand::hook::{BeginContext, Fetch, Hook, HookContext, IteratorInitializerHook};
use estimand::prelude::*;
use estimand_fixture::{Case, cases_of};

use crate::models::Folder;

/// What happened, in order.
type Events = Rc<RefCell<Vec<String>>>;

/// Notes the batches of a mode.
struct Batches {
    events: Events,
    mode: &'static str,
    x: Option<Fetch>,
}

impl Hook for Batches {
    fn name(&self) -> &str {
        "batches"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        self.x = Some(cx.fetch_named("x")?);
        Ok(())
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let x = self.x.and_then(|x| cx.value(x)).unwrap().to_f64_vec()?;
        self.events.borrow_mut().push(format!("batch {} {x:?}", self.mode));
        Ok(())
    }
}

/// The input x = 0 1 2 ... 9 in batches of 3, and the hook that feeds it.
fn get_inputs<'a>(
    events: &Events,
    mode: &'static str,
    endless: bool,
) -> (impl Fn(&InputFnContext<'_>) -> Result<Dataset> + 'a, IteratorInitializerHook<'a>) {
    let hook = IteratorInitializerHook::new();
    let (initializer, events) = (hook.clone(), events.clone());
    let x = Array::from((0..10).map(|i| i as f32).collect::<Vec<_>>());
    let y = Array::from((0..10).map(|i| 3.0 * i as f32).collect::<Vec<_>>());
    let inputs = move |_: &InputFnContext<'_>| {
        events.borrow_mut().push(format!("input {mode}"));
        let placeholders = Placeholders::like([("x", &x), ("y", &y)]);
        let rows = placeholders.dataset().label("y");
        let rows = if endless { rows.repeat_forever() } else { rows };
        let (x, y, events) = (x.clone(), y.clone(), events.clone());
        initializer.iterator_initializer_func(move |cx| {
            let step = cx.session().value("global_step")?.item::<i64>()?;
            events.borrow_mut().push(format!("initialize {mode} at {step}"));
            placeholders.feed([("x", x.clone()), ("y", y.clone())])
        });
        Ok(rows.batch(3))
    };
    (inputs, hook)
}

fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let w = cx.graph().variable("w", [], Initializer::Zeros);
    let x = cx.feature("x");
    let spec = EstimatorSpec::new(cx).prediction("y", &(&x * &w));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = (&x * &w - cx.label()).square().mean();
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.001)))
}

fn estimator(folder: &Folder) -> Estimator {
    let config = RunConfig::new().model_dir(folder.path()).save_checkpoints(Every::Steps(2)).tf_random_seed(1);
    Estimator::new(model).config(config).build().unwrap()
}

/// Makes a call of a case. Returns what happened.
fn call(folder: &Folder, method: &str, steps: Option<u64>, ends: bool, passed: bool) -> (Vec<String>, Result<()>) {
    let events = Events::default();
    let estimator = estimator(folder);
    let watch = |mode| Batches { events: events.clone(), mode, x: None };
    let (train, of_train) = get_inputs(&events, "train", !ends);
    let (eval, of_eval) = get_inputs(&events, "eval", false);
    let (infer, of_infer) = get_inputs(&events, "infer", false);
    let mut train = TrainSpec::new(train).hook(watch("train"));
    let mut eval = EvalSpec::new(eval).hook(watch("eval"));
    let mut infer = PredictSpec::new(infer).untrained().hook(watch("infer"));
    if passed {
        train = train.hook(of_train.clone());
        eval = eval.hook(of_eval.clone());
        infer = infer.hook(of_infer);
    }
    let done = match method {
        "train" => estimator
            .train(match steps {
                Some(n) => train.steps(n),
                None => train,
            })
            .map(drop),
        "evaluate" => estimator.evaluate(eval).map(drop),
        "predict" => estimator.predict(infer).try_for_each(|row| row.map(drop)),
        "train_and_evaluate" => {
            estimator.train_and_evaluate(train.max_steps(steps.unwrap()), eval.every(Every::Steps(2))).map(drop)
        }
        "experiment" => {
            let (train, of_train) = get_inputs(&events, "train", !ends);
            let (eval, of_eval) = get_inputs(&events, "eval", false);
            let mut experiment = Experiment::new(estimator, train, eval)
                .train_steps(steps)
                .min_eval_frequency(2)
                .check_interval_secs(0.0)
                .eval_steps(None)
                .train_hook(watch("train"))
                .eval_hook(watch("eval"));
            if passed {
                experiment = experiment.train_hook(of_train).eval_hook(of_eval);
            }
            experiment.train_and_evaluate().map(drop)
        }
        other => panic!("{other}"),
    };
    let events = events.take();
    (events, done)
}

/// The events of a call in one mode, as ours are written.
fn expected(call: &Case, mode: &str) -> Vec<String> {
    let mut all = Vec::new();
    for event in call.objects("events").iter().filter(|event| event.setting::<String>("mode") == mode) {
        all.push(match event.setting::<String>("what").as_str() {
            "input" => format!("input {mode}"),
            "initialize" => format!("initialize {mode} at {}", event.setting::<u64>("step")),
            "batch" => format!("batch {mode} {:?}", event.numbers::<f64>("x")),
            other => panic!("{other}"),
        });
    }
    all
}

#[test]
fn iterators_are_initialized_when_tensorflow_does() {
    let (mut n_calls, mut n_errors) = (0, 0);
    for case in cases_of("iterator_initializer", "program") {
        let folder = Folder::new();
        for (i, made) in case.objects("calls").iter().enumerate() {
            let (method, steps): (String, _) = (made.setting("method"), made.option("steps"));
            let (ends, passed) = (case.setting("ends"), case.setting("passed"));
            let (events, done) = call(&folder, &method, steps, ends, passed);
            let place = format!("{case}: call {i}, {method}");
            n_calls += 1;
            for mode in ["train", "eval", "infer"] {
                let of_mode = |event: &&String| event.split(' ').nth(1) == Some(mode);
                let mut found: Vec<String> = events.iter().filter(of_mode).cloned().collect();
                let mut expected = expected(made, mode);
                if method == "train_and_evaluate" && mode == "eval" {
                    // Ours calls the input function once more, before the training, to build the
                    // model of evaluations.
                    found.retain(|event| !event.starts_with("input"));
                    expected.retain(|event| !event.starts_with("input"));
                }
                if i > 0 && method == "train" && !ends {
                    // TensorFlow begins the data anew. Ours goes on at the next row: batches of 3
                    // of 0 to 9 without end, after two batches.
                    for (event, x) in expected.iter_mut().skip(2).zip([[6, 7, 8], [9, 0, 1], [2, 3, 4]]) {
                        *event = format!("batch train {:?}", x.map(f64::from));
                    }
                }
                assert_eq!(found, expected, "{place}, {mode}: {done:?}");
            }
            match (made.option::<String>("error"), done) {
                (None, Ok(())) => {}
                (Some(error), Err(ours)) => {
                    assert!(error.contains("the iterator has not been initialized"), "{error}");
                    let ours = ours.to_string();
                    assert!(ours.starts_with(NOT_INITIALIZED) && ours.ends_with(HELP), "{place}: {ours}");
                    n_errors += 1;
                }
                (error, done) => panic!("{place}: {error:?}, ours {done:?}"),
            }
        }
    }
    assert_eq!((n_calls, n_errors), (17, 5));
}

const NOT_INITIALIZED: &str = "the iterator has not been initialized: nothing was fed to `x`, `y`";
const HELP: &str = "help: pass the IteratorInitializerHook of the input function to the run that reads it: \
                    TrainSpec::hook, EvalSpec::hook, PredictSpec::hook, Experiment::train_hook or Experiment::eval_hook";

/// The rows of a training with the hook are those of a dataset that holds its arrays, also when it
/// resumes within an epoch, and each can go on in the other's folder.
#[test]
fn a_resumed_training_goes_on_at_the_next_row() -> Result<()> {
    let train = |folder: &Folder, by_hook: bool, steps: u64| -> Result<Vec<String>> {
        let (events, estimator) = (Events::default(), estimator(folder));
        let x = Array::from((0..10).map(|i| i as f32).collect::<Vec<_>>());
        let watch = Batches { events: events.clone(), mode: "train", x: None };
        let hook = IteratorInitializerHook::new();
        let initializer = hook.clone();
        let inputs = move |_: &InputFnContext<'_>| {
            let placeholders = Placeholders::like([("x", &x), ("y", &x)]);
            let data = match by_hook {
                true => placeholders.dataset(),
                false => Dataset::from_arrays([("x", x.clone()), ("y", x.clone())]),
            };
            let x = x.clone();
            initializer.iterator_initializer_func(move |_| placeholders.feed([("x", x.clone()), ("y", x.clone())]));
            let data = data.label("y").shuffle(10, 5).repeat(3).batch(4);
            Ok(data.map(Ok))
        };
        estimator.train(TrainSpec::new(inputs).hook(watch).hook(hook).steps(steps))?;
        let events = events.borrow().clone();
        Ok(events)
    };
    let whole = train(&Folder::new(), false, 7)?;
    for [first, second] in [[true, true], [true, false], [false, true]] {
        let folder = Folder::new();
        let found = [train(&folder, first, 2)?, train(&folder, second, 5)?].concat();
        assert_eq!(found, whole, "{first}, then {second}");
    }
    Ok(())
}

/// Batches look like those of the arrays: weights, functions of rows, batches that must be full.
#[test]
fn batches_are_known_before_they_are_fed() -> Result<()> {
    let placeholders = Placeholders::new([
        ("x", FeatureSpec::dense(DType::F32, [2])),
        ("word", FeatureSpec::dense(DType::Str, [])),
        ("weight", FeatureSpec::dense(DType::F32, [])),
    ]);
    let data = placeholders.dataset().weights("weight").map_feature("x", |x| x.cast(DType::F64));
    let data = data.batch(500).drop_remainder();
    assert!(data.awaits_feeding());
    let zeros = data.batch_of_zeros(&Default::default())?;
    assert_eq!((zeros.n_rows(), zeros.weights().is_some()), (500, true));
    assert_eq!(zeros.features()["x"].dtype(), DType::F64);
    assert!(data.awaits_feeding(), "zeros are no data");
    assert!(data.iter().next().unwrap().is_err());
    let none = placeholders.dataset().filter(|batch| Ok(vec![false; batch.n_rows()])).batch(4);
    let error = none.batch_of_zeros(&Default::default()).unwrap_err().to_string();
    assert!(error.contains("65536 rows of zeros make no batch") && error.contains("help: "), "{error}");
    let cached = placeholders.dataset().cache().batch(4);
    let error = cached.batch_of_zeros(&Default::default()).unwrap_err().to_string();
    assert!(error.contains("a cache is filled from placeholders") && error.contains("help: "), "{error}");
    Ok(())
}

/// The dataset reads the memory of the arrays that were fed.
#[test]
fn arrays_are_not_copied() -> Result<()> {
    let x = Array::from(vec![1f32; 1000]);
    let placeholders = Placeholders::like([("x", &x)]);
    placeholders.feed([("x", x.clone())])?;
    let data = placeholders.dataset().batch(1000);
    let batch = data.iter().next().unwrap()?;
    let read = batch.feature("x")?.dense()?;
    assert_eq!(read.as_slice::<f32>()?.as_ptr(), x.as_slice::<f32>()?.as_ptr());
    Ok(())
}

#[test]
fn mistakes_are_named() {
    let fed = |specs: &[(&str, FeatureSpec)], arrays: Vec<(&str, Array)>| {
        Placeholders::new(specs.iter().cloned()).feed(arrays).unwrap_err().to_string()
    };
    let x = ("x", FeatureSpec::dense(DType::F32, []));
    let one = std::slice::from_ref(&x);
    let array = || Array::from([1f32, 2.0]);
    for (error, expected) in [
        (fed(&[x.clone(), x.clone()], vec![]), "there are two placeholders named `x`"),
        (fed(one, vec![]), "placeholder `x` was not fed"),
        (fed(one, vec![("z", array())]), "there is no placeholder `z`"),
        (fed(one, vec![("x", Array::from([1i64]))]), "`x` was fed rows of i64 []; its placeholder is f32 []"),
        (fed(&[x.clone(), ("y", x.1.clone())], vec![("x", array()), ("y", Array::from([1f32]))]), "rows"),
    ] {
        assert!(error.contains(expected) && error.contains("in the arrays that were fed to placeholders"), "{error}");
    }
    let error = Placeholders::new::<&str>([]).dataset().batch(1).batch_of_zeros(&Default::default()).unwrap_err();
    assert!(error.to_string().contains("no placeholders"), "{error}");
    // A hook that the input function did not get.
    let folder = Folder::new();
    let events = Events::default();
    let (train, _) = get_inputs(&events, "train", true);
    let spec = TrainSpec::new(train).hook(IteratorInitializerHook::new()).steps(1);
    let error = estimator(&folder).train(spec).unwrap_err().to_string();
    assert!(error.starts_with("the IteratorInitializerHook has no function to call"), "{error}");
    // No rows at all.
    let placeholders = Placeholders::new([("x", x.1.clone()), ("y", x.1.clone())]);
    let hook = IteratorInitializerHook::new();
    let data = placeholders.dataset().label("y").batch(2);
    let none = || Array::zeros(DType::F32, [0]).unwrap();
    hook.iterator_initializer_func(move |_| placeholders.feed([("x", none()), ("y", none())]));
    let error = estimator(&Folder::new()).train(TrainSpec::new(data).hook(hook)).unwrap_err().to_string();
    assert!(error.contains("nothing to train on"), "{error}");
}
