//! Running metrics of a training: values derived by hand, in log lines, event files and hooks; what
//! checkpoints keep of them, and that they change nothing else.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand::events::SummaryValue;
use estimand::graph::checkpoint::BundleReader;
use estimand::graph::custom::CustomOp;
use estimand::hook::{Hook, HookContext, LoggingTensorHook, SummarySaverHook};
use estimand::nn::metric::{self, Metric};
use estimand::prelude::*;
use estimand::premade::LinearEstimator;
use estimand::tensor::{Shape, TensorSpec};

use super::values;
use crate::hooks::log_lines::logged;
use crate::models::{Folder, network, points};

/// Seven numbers in batches of 2, 2, 2 and 1.
fn numbers() -> Dataset {
    let x: Vec<f32> = (1..=7).map(|i| i as f32).collect();
    Dataset::from_arrays([("x", Array::from(x))]).batch(2)
}

/// A weight that stays, and the running mean of the numbers.
fn mean_of_numbers(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let (x, w) = (cx.feature("x"), cx.graph().variable("w", [], Initializer::Ones));
    let spec = EstimatorSpec::new(cx).loss(&(&x * &w).mean()).optimizer(Optimizer::new(Sgd::default(), 0.0));
    Ok(spec.metric("mean", metric::mean(&x, None)).running_metric("mean_so_far", metric::mean(&x, None)))
}

fn config() -> RunConfig {
    RunConfig::new().tf_random_seed(1).threads(2).save_summary_steps(1).log_step_count_steps(1)
}

/// The scalars of a folder with this tag: steps and values.
fn scalars(folder: &Path, tag: &str) -> Vec<(i64, f32)> {
    let scalar = |(step, value): (i64, estimand::events::Value)| match value.value {
        Some(SummaryValue::SimpleValue(number)) if value.tag == tag => Some((step, number)),
        _ => None,
    };
    values(folder).into_iter().filter_map(scalar).collect()
}

/// 3 / 2, 10 / 4, 21 / 6 and 28 / 7: each number counts once, not each batch.
const MEANS: [(i64, f32); 4] = [(1, 1.5), (2, 2.5), (3, 3.5), (4, 4.0)];

#[test]
fn the_mean_over_all_steps_so_far() -> Result<()> {
    let folder = Folder::new();
    let model = Estimator::new(mean_of_numbers).config(config()).model_dir(folder.path()).build()?;
    let (trained, lines) = logged(|| model.train(numbers()));
    trained?;
    assert_eq!(scalars(folder.path(), "mean_so_far"), MEANS);
    assert!(scalars(folder.path(), "mean").is_empty(), "a metric of evaluations only");
    let lines: Vec<&String> = lines.iter().filter(|line| line.contains("mean_so_far")).collect();
    assert!(lines[0].contains("loss = 1.5, step = 0, mean_so_far = 1.5"), "{lines:?}");
    assert!(lines[3].contains("loss = 7, step = 3, mean_so_far = 4 ("), "{lines:?}");
    assert_eq!(lines.len(), 4);
    // Evaluations do not report it, and training does not report theirs.
    let names: Vec<String> = model.evaluate(numbers())?.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["loss", "mean"]);
    Ok(())
}

#[test]
fn summaries_have_their_period() -> Result<()> {
    let folder = Folder::new();
    let config = config().save_summary_steps(2).log_step_count_steps(None);
    let model = Estimator::new(mean_of_numbers).config(config).model_dir(folder.path()).build()?;
    let (trained, lines) = logged(|| model.train(numbers()));
    trained?;
    // The steps in between count too.
    assert_eq!(scalars(folder.path(), "mean_so_far"), [MEANS[0], MEANS[2]]);
    assert!(!lines.iter().any(|line| line.contains("mean_so_far")), "{lines:?}");
    Ok(())
}

/// What a hook sees, by phase.
struct Seen(Rc<RefCell<Vec<Option<f64>>>>);

impl Hook for Seen {
    fn name(&self) -> &str {
        "seen"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.0.borrow_mut().push(cx.running_metric("mean_so_far")?);
        let error = cx.running_metric("mean_so_fa").unwrap_err().to_string();
        assert!(error.contains("did you mean `mean_so_far`?"), "{error}");
        Ok(())
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.0.borrow_mut().push(cx.running_metric("mean_so_far")?);
        Ok(())
    }
}

/// Two calls of `train` are one training: the totals go on, and the checkpoint has the bits of a
/// training in one call.
#[test]
fn totals_are_part_of_the_training() -> Result<()> {
    let (whole, parts) = (Folder::new(), Folder::new());
    let train = |folder: &Folder, max_steps: u64, hook: Option<Seen>| {
        let model = Estimator::new(mean_of_numbers).config(config()).model_dir(folder.path()).build()?;
        let spec = TrainSpec::new(numbers()).max_steps(max_steps);
        match hook {
            Some(hook) => model.train(spec.hook(hook)),
            None => model.train(spec),
        }
    };
    train(&whole, 4, None)?;
    let seen = Rc::new(RefCell::new(Vec::new()));
    for max_steps in [2, 4] {
        train(&parts, max_steps, Some(Seen(seen.clone())))?;
    }
    assert_eq!(seen.take(), [None, Some(1.5), Some(2.5), Some(2.5), Some(3.5), Some(4.0)]);
    assert_eq!(scalars(parts.path(), "mean_so_far"), MEANS);
    let bits = |folder: &Folder| std::fs::read(folder.path().join("model.ckpt-4.data-00000-of-00001")).unwrap();
    assert!(bits(&whole) == bits(&parts));
    // The sum, and the number of numbers.
    let reader = BundleReader::open(whole.path().join("model.ckpt-4"))?;
    let total = |i: usize| reader.read(&format!("_estimand/running/mean_so_far/{i}"))?.item::<f64>();
    assert_eq!((total(0)?, total(1)?), (28.0, 7.0));
    let model = Estimator::new(mean_of_numbers).model_dir(whole.path()).build()?;
    assert_eq!(model.variable_names()?, ["SGD/decay", "SGD/learning_rate", "SGD/momentum", "global_step", "w"]);
    Ok(())
}

/// A checkpoint with sums of another shape, or without the metric.
#[test]
fn a_metric_that_is_new_starts_at_0() -> Result<()> {
    let sum_of = |shape: &'static [i64]| {
        move |cx: &ModelFnContext<'_>| -> Result<EstimatorSpec> {
            let (x, w) = (cx.feature("x"), cx.graph().variable("w", [], Initializer::Ones));
            let sum = Metric::new([x.sum().reshape(shape)], |sums| sums[0].sum());
            let spec = EstimatorSpec::new(cx).loss(&(&x * &w).mean()).optimizer(Optimizer::new(Sgd::default(), 0.0));
            Ok(spec.running_metric("sum", sum.clone()).running_metric(if shape.is_empty() { "a" } else { "b" }, sum))
        }
    };
    let folder = Folder::new();
    let first = Estimator::new(sum_of(&[])).config(config()).model_dir(folder.path()).build()?;
    first.train(TrainSpec::new(numbers()).max_steps(2))?;
    let second = Estimator::new(sum_of(&[1])).config(config()).model_dir(folder.path()).build()?;
    let (trained, lines) = logged(|| second.train(TrainSpec::new(numbers()).max_steps(4)));
    trained?;
    assert!(lines.iter().any(|line| line.contains("`sum` starts at 0")), "{lines:?}");
    assert_eq!(scalars(folder.path(), "sum"), [(1, 3.0), (2, 10.0), (3, 11.0), (4, 18.0)]);
    assert_eq!(scalars(folder.path(), "a"), [(1, 3.0), (2, 10.0)]);
    assert_eq!(scalars(folder.path(), "b"), [(3, 11.0), (4, 18.0)]);
    Ok(())
}

/// Metrics by name, of models that somebody else has written: with a rate of 0, a training over all
/// rows measures what an evaluation does.
#[test]
fn metrics_of_premade_estimators_by_name() -> Result<()> {
    let folder = Folder::new();
    let model = |rate: f64, config: RunConfig| {
        let head = BinaryClassHead::new().slice_by("slice", ["a", "b"]);
        let model = LinearEstimator::new(head, [numeric_column("x").into()]);
        let model = model.optimizer(Optimizer::new(Sgd::default(), rate)).config(config).model_dir(folder.path());
        let model = model.build()?.add_metrics(|cx| {
            let (label, p) = (cx.label().cast(DType::F32), cx.prediction("logistic")?.squeeze(&[-1]));
            Ok(vec![("rmse", metric::root_mean_squared_error(&label, &p, None))])
        });
        Ok::<_, Error>(model)
    };
    let rows = [
        ("x", Array::from([1f32, -2.0, 3.0, 0.5, -0.25])),
        ("slice", Array::from_strings([5], ["a", "b", "a", "a", "b"])?),
        ("y", Array::from([1i64, 0, 0, 1, 1])),
    ];
    let rows = Dataset::from_arrays(rows).label("y");
    model(0.5, config())?.train(rows.repeat(3).batch(2))?;

    let names = ["accuracy", "auc", "average_loss", "accuracy/slice=a", "rmse"];
    let model = model(0.0, config().running_metrics(names))?;
    model.train(rows.batch(2))?;
    let metrics = model.evaluate(rows.batch(2))?;
    for name in names {
        let (_, last) = scalars(folder.path(), name).pop().unwrap();
        assert!((f64::from(last) - metrics.get(name)?).abs() < 1e-6, "{name}: {last} in {metrics}");
    }
    // The rows tell the metrics apart.
    assert!(metrics["accuracy"] < metrics["accuracy/slice=a"] && metrics["rmse"] != 0.5, "{metrics}");
    assert!(scalars(folder.path(), "precision").is_empty(), "it was not named");
    Ok(())
}

/// What training does without a running metric, and with one.
#[test]
fn only_what_was_named_is_computed() -> Result<()> {
    let trained = |names: &[&str]| {
        let folder = Folder::new();
        let n_calls = Arc::new(AtomicUsize::new(0));
        let counter = n_calls.clone();
        let model = move |cx: &ModelFnContext<'_>| -> Result<EstimatorSpec> {
            let spec = network(cx)?;
            let counter = counter.clone();
            let count = move |x: &[Array]| {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(x.to_vec())
            };
            let sum = cx.feature("x").sum();
            let counted = CustomOp::new("count", vec![TensorSpec::new(DType::F32, Shape::scalar())], count);
            let sum = cx.graph().custom(counted, &[&sum]).remove(0);
            Ok(spec.metric("counted", Metric::new([sum], |sums| sums[0].clone())))
        };
        let config = config().running_metrics(names.iter().copied());
        let model = Estimator::new(model).config(config).model_dir(folder.path()).build()?;
        model.train(TrainSpec::new(points(60).repeat_forever().batch(6)).steps(5))?;
        let names = model.variable_names()?;
        let bits = names.iter().map(|name| Ok(model.variable_value(name)?.bytes().to_vec()));
        Ok::<_, Error>((n_calls.load(Ordering::Relaxed), bits.collect::<Result<Vec<_>>>()?))
    };
    let (n_calls, bits) = trained(&[])?;
    assert_eq!(n_calls, 0);
    assert_eq!(trained(&["accuracy"])?, (0, bits.clone()), "the same bits of the model");
    assert_eq!(trained(&["accuracy", "counted"])?, (5, bits));
    Ok(())
}

#[test]
fn a_hook_with_its_own_list_writes_no_running_metrics() -> Result<()> {
    let (folder, seldom) = (Folder::new(), Folder::new());
    let path = seldom.path().to_path_buf();
    let model = move |cx: &ModelFnContext<'_>| -> Result<EstimatorSpec> {
        let own = estimand::Summaries::new(cx.graph());
        own.scalar("x", &cx.feature("x").mean());
        let hook = SummarySaverHook::new(Every::Steps(1)).summaries(&own).output_dir(&path);
        let log = LoggingTensorHook::new(Every::Steps(1)).running_metric("mean_so_far");
        Ok(mean_of_numbers(cx)?.training_hook(hook).training_hook(log))
    };
    let config = config().save_summary_steps(0).log_step_count_steps(None);
    let model = Estimator::new(model).config(config).model_dir(folder.path()).build()?;
    let (trained, lines) = logged(|| model.train(numbers()));
    trained?;
    assert_eq!(scalars(seldom.path(), "x").len(), 4);
    assert!(scalars(seldom.path(), "mean_so_far").is_empty());
    assert!(lines.iter().any(|line| line.ends_with("mean_so_far = 1.5")), "{lines:?}");
    Ok(())
}

#[test]
fn mistakes_are_found_when_the_model_is_built() -> Result<()> {
    type Change = fn(&ModelFnContext<'_>, EstimatorSpec) -> EstimatorSpec;
    let cases: [(&str, Change, &[&str]); 5] = [
        ("men", |_, spec| spec, &["there is no metric `men`", "did you mean `mean`?", "RunConfig::running_metrics"]),
        (
            "mean",
            |cx, spec| {
                let ids = cx.feature("x").cast(DType::I64);
                spec.running_metric("matrix", metric::confusion_matrix(&ids, &ids, 9, None))
            },
            &["in running metric `matrix`", "its value is [9, 9]; expected one number"],
        ),
        (
            "mean",
            |cx, spec| spec.running_metric("rows", Metric::new([cx.feature("x")], |sums| sums[0].sum())),
            &["in running metric `rows`", "known only at run time"],
        ),
        (
            "mean",
            |cx, spec| {
                cx.summary().scalar("mean", &cx.feature("x").mean());
                spec
            },
            &["a running metric and a summary named `mean`", "another name"],
        ),
        (
            "mean",
            |cx, spec| spec.running_metric("loss", metric::mean(&cx.feature("x"), None)),
            &["a metric is named `loss`"],
        ),
    ];
    for (name, change, parts) in cases {
        let folder = Folder::new();
        let model = move |cx: &ModelFnContext<'_>| -> Result<EstimatorSpec> { Ok(change(cx, mean_of_numbers(cx)?)) };
        let config = config().running_metrics([name]);
        let model = Estimator::new(model).config(config).model_dir(folder.path()).build()?;
        let error = model.train(numbers()).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error}\nshould contain {part}");
        }
    }
    // Evaluations have none.
    let folder = Folder::new();
    let model = Estimator::new(mean_of_numbers).model_dir(folder.path()).build()?;
    let log = LoggingTensorHook::new(Every::Steps(1)).running_metric("mean_so_far");
    let error = model.evaluate(EvalSpec::new(numbers()).hook(log)).unwrap_err().to_string();
    assert!(error.contains("only a training has running metrics"), "{error}");
    Ok(())
}
