//! Values that hooks feed, and tensors that hooks compute at the end of a run.

use estimand::graph::Encoding;
use estimand::hook::{BeginContext, FeedFnHook, Fetch, FinalOpsHook, Hook, HookContext};
use estimand::prelude::*;

use super::{endless, estimator};
use crate::models::{Folder, line, linear};

/// One weight; the loss is multiplied by a placeholder that is no feature.
fn scaled(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let w = cx.graph().variable("w", [], Initializer::Zeros);
    let scale = cx.graph().placeholder("scale", DType::F32, [0_usize; 0]);
    let y = cx.feature("x") * &w;
    let spec = EstimatorSpec::new(cx).prediction("y", &(&y * &scale));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = (&y - cx.label()).square().mean() * &scale;
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
}

fn model(folder: &Folder) -> Estimator {
    Estimator::new(scaled).model_dir(folder.path()).config(RunConfig::new().tf_random_seed(1)).build().unwrap()
}

fn feed(value: f32) -> FeedFnHook<'static> {
    FeedFnHook::new().named("scale", move |_| Ok(Array::from(value)))
}

/// Batches of (0, 0) and (0.5, 1.5), w = 0: the gradient of the mean of (w x - 3 x)^2 is -6 *
/// mean(x^2) = -0.75. With the scales 1 and then 2, and the rate 0.1: w = 0.075, then w += 0.2 *
/// 2 * mean(x^2) * (3 - 0.075) = 0.2 * 0.25 * 2.925 = 0.14625.
#[test]
fn a_function_feeds_every_step() -> Result<()> {
    let folder = Folder::new();
    let mut steps = Vec::new();
    let hook = FeedFnHook::new().named("scale", |cx| {
        steps.push(cx.global_step());
        Ok(Array::from(cx.global_step() as f32 + 1.0))
    });
    let data = line(2).repeat(2).batch(2);
    model(&folder).train(TrainSpec::new(&data).hook(hook))?;
    assert_eq!(steps, [0, 1, 2], "before the end of the input is met, too");
    let w = model(&folder).variable_value("w")?.item::<f32>()?;
    assert!((w - 0.22125).abs() < 1e-6, "{w}");

    let loss = |scale: f32| Ok::<_, Error>(model(&folder).evaluate(EvalSpec::new(&data).hook(feed(scale)))?["loss"]);
    assert_eq!(loss(2.0)?, 2.0 * loss(1.0)?);
    let predictions = |scale: f32| -> Result<f32> {
        let model = model(&folder);
        let row = model.predict(PredictSpec::new(&data).hook(feed(scale))).nth(1).unwrap()?;
        row.array("y")?.item::<f32>()
    };
    assert_eq!(predictions(4.0)?, 4.0 * predictions(1.0)?);
    Ok(())
}

/// Takes down the values of a tensor.
struct Values<'a> {
    name: &'static str,
    fetch: Option<Fetch>,
    values: &'a mut Vec<f32>,
}

impl Hook for Values<'_> {
    fn name(&self) -> &str {
        "values"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        self.fetch = Some(cx.fetch_named(self.name)?);
        Ok(())
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let value = self.fetch.and_then(|fetch| cx.value(fetch)).unwrap();
        self.values.push(value.item::<f32>()?);
        Ok(())
    }
}

/// A hook that a model function makes, and a placeholder that the host has to look at before the
/// step can: strings are fed as numbers are.
#[test]
fn strings_are_fed_too() -> Result<()> {
    let folder = Folder::new();
    let model = |cx: &ModelFnContext<'_>| {
        let word = cx.graph().placeholder("word", DType::Str, [1]);
        let length = word.string_length(Encoding::Bytes).cast(DType::F32).sum();
        let hook = FeedFnHook::new().tensor(&word, |_| Array::from_strings([1], ["abc"]));
        Ok(linear(cx)?.prediction("length", &length).training_hook(hook))
    };
    let model = Estimator::new(model).model_dir(folder.path()).build()?;
    let mut values = Vec::new();
    model.train(TrainSpec::new(endless()).steps(2).hook(Values { name: "Sum", fetch: None, values: &mut values }))?;
    assert_eq!(values, [3.0, 3.0]);
    Ok(())
}

#[test]
fn what_is_fed_twice_or_not_at_all() {
    let folder = Folder::new();
    let train = |hooks: Vec<FeedFnHook<'static>>| {
        let spec = hooks.into_iter().fold(TrainSpec::new(endless()).steps(2), TrainSpec::hook);
        model(&folder).train(spec).unwrap_err().to_string()
    };
    let other = |name: &str| FeedFnHook::new().named(name, |_| Ok(Array::from(1.0f32)));
    for (hooks, parts) in [
        (vec![feed(1.0), feed(2.0)], ["placeholder `scale` is fed by two hooks", "begin of hook `feed_fn`"]),
        (vec![feed(1.0), other("x")], ["`x` is fed by the input", "begin of hook `feed_fn`"]),
        (vec![other("Mul")], ["a hook feeds `Mul`, which is not a placeholder", "graph().placeholder"]),
        (vec![other("scala")], ["there is no tensor `scala`", "did you mean `scale`?"]),
        (vec![], ["placeholder `scale` is not a feature or label", "FeedFnHook"]),
        (
            vec![FeedFnHook::new().named("scale", |_| Ok(Array::from(1_i64)))],
            ["placeholder `scale` was fed i64", "f32"],
        ),
        (
            vec![FeedFnHook::new().named("scale", |_| Ok(Array::from([1.0f32])))],
            ["placeholder `scale` was fed f32[1]", ""],
        ),
        (
            vec![FeedFnHook::new().named("scale", |_| Err(Error::config("none left")))],
            ["none left", "before_run of hook"],
        ),
    ] {
        let error = train(hooks);
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    }
}

#[test]
fn final_values_are_those_of_the_end() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder, 100);
    let hook = FinalOpsHook::new().named("w").named("Mul").feed("x", Array::from([1.0f32, 10.0]));
    let values = hook.values();
    assert!(values.get().is_empty());
    model.train(TrainSpec::new(endless()).steps(5).hook(hook))?;
    let w = model.variable_value("w")?.item::<f32>()?;
    assert_eq!(values.get()["w"], Array::from(w));
    assert_eq!(values.get()["Mul"], Array::from([w, 10.0 * w]), "x * w with the x that was fed");

    // Also after an evaluation.
    let hook = FinalOpsHook::new().named("w");
    let values = hook.values();
    model.evaluate(EvalSpec::new(endless()).steps(2).hook(hook))?;
    assert_eq!(values.get()["w"], Array::from(w));
    Ok(())
}

/// What is assigned at the end is in the last checkpoint.
#[test]
fn final_ops_may_assign() -> Result<()> {
    let folder = Folder::new();
    let model = |cx: &ModelFnContext<'_>| {
        let spec = linear(cx)?;
        let best = cx.graph().variable("best", [], Initializer::Zeros);
        let hook = FinalOpsHook::new().tensor("assign", &best.assign(&cx.graph().constant(7.0f32)));
        Ok(spec.training_hook(hook))
    };
    let model = Estimator::new(model).model_dir(folder.path()).build()?;
    model.train(TrainSpec::new(endless()).steps(3))?;
    assert_eq!(model.variable_value("best")?, Array::from(7.0f32));
    Ok(())
}

#[test]
fn final_ops_that_cannot_be_computed() {
    let folder = Folder::new();
    let model = estimator(&folder, 100);
    let train =
        |hook: FinalOpsHook| model.train(TrainSpec::new(endless()).steps(2).hook(hook)).unwrap_err().to_string();
    let error = train(FinalOpsHook::new().named("Mul"));
    for part in ["placeholder `x` has no value", "variables alone", "end of hook `final_ops`"] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert!(train(FinalOpsHook::new().named("v")).contains("there is no tensor `v`"));
    assert_eq!(folder.steps(), [0], "an error in `end`: no last checkpoint");
}
