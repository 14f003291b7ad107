//! Summaries of a training: steps, names, unchanged bits of the model, and numbers that are not
//! finite.

use estimand::Summaries;
use estimand::events::{SessionStatus, SummaryValue, Value, What};
use estimand::hook::SummarySaverHook;
use estimand::prelude::*;

use super::{events, values};
use crate::models::{Folder, line, linear, network, points};

type ModelFunction = fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>;

fn estimator(model: ModelFunction, folder: &Folder, every: u64) -> Result<Estimator> {
    let config = RunConfig::new().tf_random_seed(1).threads(2).save_summary_steps(every);
    Estimator::new(model).config(config).model_dir(folder.path()).build()
}

fn rows() -> Dataset {
    points(60).repeat_forever().batch(6).drop_remainder()
}

/// The network with everything that can be shown of it.
fn shown(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let spec = network(cx)?;
    let x = cx.feature("x");
    let _scope = cx.graph().scope("inputs");
    cx.summary().scalar("mean", &x.mean()).histogram("x", &x).histogram("x", &x.square());
    cx.summary().image("as a picture", &x.reshape([-1, 2, 2, 1]), 2);
    cx.summary().text("label", &cx.label().as_string());
    cx.summary().pr_curve(
        "first",
        &cx.label().equal(0.0).cast(DType::F32),
        &x.slice(&[0, 0], &[-1, 1]).reshape([-1]),
        5,
        None,
    );
    Ok(spec)
}

fn kind(value: &Value) -> &'static str {
    match value.value {
        Some(SummaryValue::SimpleValue(_)) => "scalar",
        Some(SummaryValue::Histo(_)) => "histogram",
        Some(SummaryValue::Image(_)) => "image",
        Some(SummaryValue::Tensor(_)) => "tensor",
        _ => "other",
    }
}

#[test]
fn every_kind_at_the_first_step_and_every_so_often() -> Result<()> {
    let folder = Folder::new();
    estimator(shown, &folder, 4)?.train(TrainSpec::new(rows()).steps(10))?;
    let all: Vec<_> =
        values(folder.path()).into_iter().map(|(step, value)| (step, value.tag.clone(), kind(&value))).collect();
    // TF: under the scope, the second of a name numbered, a blank is no part of a name, images
    // numbered.
    let of_one_step = [
        ("inputs/mean", "scalar"),
        ("inputs/x", "histogram"),
        ("inputs/x_1", "histogram"),
        ("inputs/as_a_picture/image/0", "image"),
        ("inputs/as_a_picture/image/1", "image"),
        ("inputs/label", "tensor"),
        ("inputs/first", "tensor"),
        ("loss", "scalar"),
    ];
    let expected = [1, 5, 9].into_iter().flat_map(|step| of_one_step.map(|(tag, kind)| (step, tag.to_string(), kind)));
    assert_eq!(all, expected.collect::<Vec<_>>());
    Ok(())
}

/// TF: the file says where training starts, so that TensorBoard forgets what an interrupted run did
/// beyond its last checkpoint.
#[test]
fn a_start_is_told_before_the_first_summary() -> Result<()> {
    let folder = Folder::new();
    for steps in [3, 2] {
        let own = SummarySaverHook::new(Every::Steps(1));
        estimator(linear, &folder, 1)?
            .train(TrainSpec::new(line(8).repeat_forever().batch(2).drop_remainder()).steps(steps).hook(own))?;
    }
    let starts: Vec<_> = (events(folder.path()).into_iter().enumerate())
        .filter(|(_, event)| matches!(&event.what, Some(What::SessionLog(log)) if log.status() == SessionStatus::Start))
        .map(|(_, event)| event.step)
        .collect();
    // Once in each file, although two hooks write.
    assert_eq!(starts, [1, 4]);
    Ok(())
}

#[test]
fn looking_changes_no_bit() -> Result<()> {
    let trained = |model: ModelFunction, every| -> Result<Vec<Vec<u8>>> {
        let folder = Folder::new();
        let estimator = estimator(model, &folder, every)?;
        estimator.train(TrainSpec::new(rows()).steps(9))?;
        let names = estimator.variable_names()?;
        names.iter().map(|name| Ok(estimator.variable_value(name)?.bytes().to_vec())).collect()
    };
    let bits = trained(network, 0)?;
    for every in [0, 1, 2] {
        assert!(trained(shown, every)? == bits, "other bits with summaries every {every} steps");
    }
    Ok(())
}

/// A model whose summaries are 1/x, for an x of 0 among others, and the root of -1.
fn odd(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let spec = linear(cx)?;
    let none = (cx.feature("x") * 0.0 - 1.0).sqrt();
    cx.summary().scalar("none", &none.mean());
    let inverse: Tensor = 1.0 / cx.feature("x");
    cx.summary().histogram("inverse", &inverse);
    cx.summary().histogram("nothing", &none);
    cx.summary().image("picture", &inverse.reshape([-1, 1, 1, 1]), 4);
    Ok(spec)
}

#[test]
fn numbers_that_are_not_finite_end_no_training() -> Result<()> {
    let folder = Folder::new();
    // x = 0, 1/4, 1/2, 3/4
    estimator(odd, &folder, 1)?.train(TrainSpec::new(line(4).repeat_forever().batch(4).drop_remainder()).steps(2))?;
    let all = values(folder.path());
    let find =
        |step: i64, tag: &str| all.iter().find(|(at, value)| *at == step && value.tag == tag).map(|(_, value)| value);
    for step in [1, 2] {
        let Some(SummaryValue::SimpleValue(none)) = find(step, "none").unwrap().value else { panic!() };
        assert!(none.is_nan());
        let Some(SummaryValue::Histo(inverse)) = &find(step, "inverse").unwrap().value else { panic!() };
        // 4, 2 and 4/3
        assert_eq!((inverse.num, inverse.max), (3.0, 4.0));
        assert!(find(step, "nothing").is_none());
        assert!(find(step, "picture/image/0").is_some() && find(step, "loss").is_some());
    }
    Ok(())
}

/// An own list in an own folder, at an own pace; the model's folder does not have it.
#[test]
fn a_hook_with_a_list_and_a_folder_of_its_own() -> Result<()> {
    let folder = Folder::new();
    let seldom = folder.path().join("seldom");
    let model = {
        let seldom = seldom.clone();
        move |cx: &ModelFnContext<'_>| {
            let own = Summaries::new(cx.graph());
            own.scalar("first", &cx.feature("x").max());
            let hook = SummarySaverHook::new(Every::Steps(2)).summaries(&own).output_dir(&seldom);
            Ok(linear(cx)?.training_hook(hook))
        }
    };
    let estimator = Estimator::new(model).model_dir(folder.path()).build()?;
    estimator.train(TrainSpec::new(line(4).repeat_forever().batch(4).drop_remainder()).steps(4))?;
    let tags = |folder| values(folder).into_iter().map(|(step, value)| (step, value.tag)).collect::<Vec<_>>();
    assert_eq!(tags(&seldom), [(1, "first".to_string()), (3, "first".to_string())]);
    assert_eq!(tags(folder.path()), [(1, "loss".to_string())]);
    Ok(())
}

/// As TensorFlow's users did: the summaries of an evaluation, beside its metrics.
#[test]
fn an_evaluation_writes_summaries_where_it_is_told_to() -> Result<()> {
    let folder = Folder::new();
    let estimator = estimator(shown, &folder, 1)?;
    estimator.train(TrainSpec::new(rows()).steps(1))?;
    let data = points(12).batch(6).drop_remainder();
    let error = estimator.evaluate(EvalSpec::new(&data).hook(SummarySaverHook::new(Every::Steps(1)))).unwrap_err();
    assert!(error.to_string().contains("the summary hook has no folder"), "{error}");
    let hook = SummarySaverHook::new(Every::Steps(100)).output_dir(estimator.eval_dir(None));
    estimator.evaluate(EvalSpec::new(&data).hook(hook))?;
    let tags: Vec<_> = values(&estimator.eval_dir(None)).into_iter().map(|(_, value)| value.tag).collect();
    assert!(tags.contains(&"inputs/x".to_string()) && tags.contains(&"accuracy".to_string()), "{tags:?}");
    Ok(())
}

type Show = for<'a> fn(&'a ModelFnContext<'_>) -> &'a Summaries;

/// Builds a model that shows one thing, and returns the error.
fn refused(show: Show) -> String {
    let folder = Folder::new();
    let model = move |cx: &ModelFnContext<'_>| {
        show(cx);
        network(cx)
    };
    let estimator = Estimator::new(model).model_dir(folder.path()).build().unwrap();
    estimator.train(TrainSpec::new(rows()).steps(1)).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_shown_is_an_error_of_the_build() {
    let cases: [(Show, &str); 8] = [
        (|cx| cx.summary().scalar("a", &cx.feature("x")), "expected one number"),
        (|cx| cx.summary().scalar("a", &cx.label().as_string().reduce_join([0], "")), "expected one number"),
        (|cx| cx.summary().histogram("a", &cx.label().as_string()), "expected numbers"),
        (|cx| cx.summary().image("a", &cx.feature("x"), 1), "with 1, 3 or 4 channels"),
        (|cx| cx.summary().image("a", &cx.feature("x").reshape([-1, 2, 1, 2]), 1), "with 1, 3 or 4 channels"),
        (|cx| cx.summary().text("a", &cx.feature("x")), "expected strings"),
        (|cx| cx.summary().pr_curve("a", &cx.label(), &cx.feature("x"), 5, None), "expected one shape"),
        (|cx| cx.summary().pr_curve("a", &cx.label(), &cx.label(), 1, None), "expected at least 2"),
    ];
    for (show, expected) in cases {
        let error = refused(show);
        let place = "in summary `a`";
        assert!(error.contains(expected) && error.contains(place) && error.contains("training.rs:"), "{error}");
    }
}
