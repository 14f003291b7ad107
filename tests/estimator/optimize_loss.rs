//! `OptimizeLoss`, compared with TensorFlow 1.15 (`oracles/gen/optimize_loss.py`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use estimand::events::{EventReader, SummaryValue, What};
use estimand::graph::{Clip, Role};
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;
use estimand::{AdaptiveClipping, OptimizeLoss, OptimizerSummary};
use estimand_fixture::{Case, cases_of};

use crate::models::Folder;

/// The model of the fixture. Returns its loss.
fn loss_of(graph: &Graph, x: &Tensor, y: &Tensor) -> Tensor {
    let w = graph.variable("w", [3], Initializer::Constant(0.5));
    let b = graph.variable("b", [], Initializer::Constant(-0.25));
    let table = graph.variable("table", [4, 2], Initializer::Constant(0.1));
    let rows = table.gather(&graph.constant([0i64, 2, 2, 1]));
    let out = (x * w).sum_axes(1) + b + rows.sum_axes(1);
    (out - y).square().mean()
}

fn summary(name: &str) -> OptimizerSummary {
    match name {
        "loss" => OptimizerSummary::Loss,
        "learning_rate" => OptimizerSummary::LearningRate,
        "gradients" => OptimizerSummary::Gradients,
        "gradient_norm" => OptimizerSummary::GradientNorm,
        "global_gradient_norm" => OptimizerSummary::GlobalGradientNorm,
        other => panic!("{other}"),
    }
}

fn clipping(adaptive: &Case) -> AdaptiveClipping {
    adaptive.keys().fold(AdaptiveClipping::new(), |clipping, key| match key {
        "std_factor" => clipping.std_factor(adaptive.setting(key)),
        "decay" => clipping.decay(adaptive.setting(key)),
        "static_max_norm" => clipping.static_max_norm(adaptive.setting::<f64>(key)),
        "epsilon" => clipping.epsilon(adaptive.setting(key)),
        "quick" => clipping.adapt_quickly(),
        "report_summary" => clipping.report_summary(),
        other => panic!("{other}"),
    })
}

/// The train op of a case.
fn train_op(cx: &ModelFnContext<'_>, case: &Case, loss: &Tensor) -> Tensor {
    let optimizer: String = case.setting("optimizer");
    let mut made = OptimizeLoss::named(loss, &optimizer, case.setting("rate")).global_step(cx.global_step());
    if !case.json("adaptive").is_null() {
        made = made.clip_gradients(clipping(&case.object("adaptive")));
    }
    if !case.json("decay").is_null() {
        let decay = case.object("decay");
        made = made.learning_rate_decay(move |initial| Schedule::Exponential {
            initial,
            decay_steps: decay.setting("steps"),
            decay_rate: decay.setting("rate"),
            staircase: decay.setting("staircase"),
        });
    }
    if let Some(names) = case.option::<Vec<String>>("variables") {
        let variables: Vec<Tensor> = names.iter().map(|name| cx.graph().get_variable(name)).collect();
        made = made.variables(&variables);
    }
    let options = case.object("options");
    let mut shown = OptimizerSummary::DEFAULT.to_vec();
    for key in options.keys() {
        made = match key {
            "clip_gradients" => made.clip_gradients(options.setting::<f64>(key)),
            "gradient_multipliers" => {
                let multipliers = options.object(key);
                multipliers.keys().fold(made, |made, name| made.gradient_multiplier(name, multipliers.setting(name)))
            }
            "name" => made.name(options.setting::<String>(key)),
            "increment_global_step" => made.increment_global_step(options.setting(key)),
            "summaries" => {
                shown = options.setting::<Vec<String>>(key).iter().map(|name| summary(name)).collect();
                made
            }
            other => panic!("{case}: {other}"),
        };
    }
    made.summaries(cx.summary(), shown).train_op()
}

/// The values of w, b and table after each step.
#[derive(Clone, Default)]
struct Weights(Rc<RefCell<Vec<[Array; 3]>>>);

impl Hook for Weights {
    fn name(&self) -> &str {
        "weights"
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let session = cx.session();
        self.0.borrow_mut().push([session.value("w")?, session.value("b")?, session.value("table")?]);
        Ok(())
    }
}

/// Scalars of a step by tag.
type Scalars = BTreeMap<String, f32>;

/// Scalars of each step, and the tags of histograms, below a scope.
fn shown(folder: &Folder, scope: &str) -> Result<(Vec<Scalars>, Vec<String>)> {
    let file = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.to_string_lossy().contains("tfevents")).unwrap();
    let (mut steps, mut histograms) = (BTreeMap::<i64, Scalars>::new(), Vec::new());
    for event in EventReader::open(file)? {
        let event = event?;
        let Some(What::Summary(summary)) = event.what else { continue };
        for value in summary.value.into_iter().filter(|value| value.tag.starts_with(scope)) {
            match value.value {
                Some(SummaryValue::SimpleValue(number)) => {
                    steps.entry(event.step).or_default().insert(value.tag, number);
                }
                _ => histograms.push(value.tag),
            }
        }
    }
    histograms.sort();
    histograms.dedup();
    Ok((steps.into_values().collect(), histograms))
}

/// Compares within rounding: TensorFlow adds and multiplies in another order.
fn assert_near(found: &[f32], expected: &[f32], what: &dyn std::fmt::Display) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 2e-5 * b.abs().max(0.1), "{what}: {found:?}, expected {expected:?}");
    }
}

#[test]
fn steps_are_those_of_tensorflow() -> Result<()> {
    let mut n_cases = 0;
    for case in cases_of("optimize_loss", "steps") {
        n_cases += 1;
        let steps = case.objects("steps");
        let all = |key: &str| -> Vec<f32> { steps.iter().flat_map(|step| step.numbers::<f32>(key)).collect() };
        let arrays = [("x", Array::from_vec([20, 3], all("x"))?), ("y", Array::from(all("y")))];
        let data = Dataset::from_arrays(arrays).label("y").batch(4);
        let (folder, weights, shared) = (Folder::new(), Weights::default(), std::sync::Arc::new(case.clone()));
        let model = {
            let case = shared.clone();
            move |cx: &ModelFnContext<'_>| {
                let loss = loss_of(cx.graph(), &cx.feature("x"), &cx.label());
                let train_op = train_op(cx, &case, &loss);
                Ok(EstimatorSpec::new(cx).loss(&loss).train_op(&train_op))
            }
        };
        let config = RunConfig::new().save_summary_steps(1).tf_random_seed(1);
        let estimator = Estimator::new(model).model_dir(folder.path()).config(config).build()?;
        estimator.train(TrainSpec::new(&data).hook(weights.clone())).map_err(|e| e.context(case.to_string()))?;
        let name = case.object("options").option::<String>("name").unwrap_or_else(|| "OptimizeLoss".to_string());
        let (scalars, histograms) = shown(&folder, &format!("{name}/"))?;
        assert_eq!(histograms, case.setting::<Vec<String>>("histograms"), "{case}");
        for (i, step) in steps.iter().enumerate() {
            for (key, found) in ["w", "b", "table"].into_iter().zip(&weights.0.borrow()[i]) {
                let place = format!("{case}: {key} after step {i}");
                let expected = match key {
                    "b" => vec![step.setting::<f64>("b") as f32],
                    _ => step.numbers::<f32>(key),
                };
                assert_near(found.as_slice::<f32>()?, &expected, &place);
            }
            let expected = step.object("scalars");
            let tags: Vec<&str> = expected.keys().collect();
            let found = scalars.get(i).cloned().unwrap_or_default();
            let mut sorted = tags.clone();
            sorted.sort_unstable();
            assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), sorted, "{case}: step {i}");
            for tag in tags {
                assert_near(
                    &[found[tag]],
                    &[expected.setting::<f64>(tag) as f32],
                    &format!("{case}: {tag} at step {i}"),
                );
            }
        }
    }
    assert!(n_cases >= 30, "{n_cases} cases");
    Ok(())
}

/// The noise is random, so its distribution is compared: its deviation and its largest number.
#[test]
fn noise_has_the_distribution_of_tensorflow() -> Result<()> {
    for case in cases_of("optimize_loss", "noise") {
        let graph = Graph::new();
        let w = graph.variable("w", [200, 100], Initializer::Zeros);
        let scale: f64 = case.setting("scale");
        let sgd = Optimizer::new(Sgd::default(), 1.0);
        let train = OptimizeLoss::new(&(w.sum() * 0.0), sgd).gradient_noise_scale(scale).train_op();
        let mut session = Session::new(&graph)?;
        session.run(&[&train], &[])?;
        let first = session.value("w")?;
        let noise: Vec<f64> = first.as_slice::<f32>()?.iter().map(|&v| f64::from(v)).collect();
        let n = noise.len() as f64;
        let mean = noise.iter().sum::<f64>() / n;
        let std = (noise.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let largest = noise.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        // Five deviations of the mean of n numbers; about as much for the deviation.
        let slack = 5.0 * std / n.sqrt();
        assert!(mean.abs() < slack, "{case}: mean {mean}");
        assert!((std - case.setting::<f64>("std")).abs() < slack, "{case}: deviation {std}");
        assert!((largest - case.setting::<f64>("largest")).abs() < 0.01 * scale, "{case}: largest {largest}");
        assert!(largest <= 2.0 * scale, "{case}: {largest}");
        // Each step draws anew.
        session.run(&[&train], &[])?;
        let second = session.value("w")?;
        let same = second.as_slice::<f32>()?.iter().zip(first.as_slice::<f32>()?).filter(|(b, a)| **b == 2.0 * **a);
        assert!(same.count() < 100, "the noise is the same in both steps");
    }
    Ok(())
}

/// A fixed noise of one gradient of rows: it becomes dense, so that rows without a gradient move.
#[test]
fn noise_moves_all_rows_of_a_table() -> Result<()> {
    let graph = Graph::new();
    let table = graph.variable("table", [50, 4], Initializer::Zeros);
    let loss = table.gather(&graph.constant([3i64])).sum();
    let train = OptimizeLoss::new(&loss, Optimizer::new(Sgd::default(), 1.0)).gradient_noise_scale(1e-3).train_op();
    let mut session = Session::new(&graph)?;
    session.run(&[&train], &[])?;
    let value = session.value("table")?;
    let moved = value.as_slice::<f32>()?.chunks(4).filter(|row| row.iter().any(|v| *v != 0.0)).count();
    assert_eq!(moved, 50);
    assert!(value.as_slice::<f32>()?[12..16].iter().all(|v| (v + 1.0).abs() < 3e-3), "{value}");
    Ok(())
}

#[test]
fn the_global_step_counts_unless_told_otherwise() -> Result<()> {
    for (increments, expected) in [(true, 2i64), (false, 0)] {
        let graph = Graph::new();
        let step = graph.variable_with("global_step", DType::I64, [], Initializer::Zeros, Role::Step);
        let w = graph.variable("w", [], Initializer::Constant(1.0));
        let other = graph.variable("other", [], Initializer::Zeros);
        let train = OptimizeLoss::named(&w.square(), "SGD", 0.1)
            .global_step(&step)
            .increment_global_step(increments)
            .variables([&w])
            .update_ops([&other.assign_add(1.0)])
            .train_op();
        let mut session = Session::new(&graph)?;
        session.run(&[&train], &[])?;
        session.run(&[&train], &[])?;
        assert_eq!(session.value("global_step")?.item::<i64>()?, expected);
        assert_eq!(session.value("other")?.item::<f32>()?, 2.0, "the update ops run");
        // 1 - 0.2, and 0.8 - 0.16.
        assert!((session.value("w")?.item::<f32>()? - 0.64).abs() < 1e-6);
    }
    Ok(())
}

#[test]
fn a_function_clips() -> Result<()> {
    let graph = Graph::new();
    let w = graph.variable("w", [2], Initializer::Zeros);
    let loss = (&w * graph.constant([3f32, -0.5])).sum();
    let train = OptimizeLoss::new(&loss, Optimizer::new(Sgd::default(), 1.0))
        .clip_gradients_with(|pairs| {
            pairs.into_iter().map(|(g, variable)| (g.map_values(|g| g.clip(-1.0, 1.0)), variable)).collect()
        })
        .train_op();
    let mut session = Session::new(&graph)?;
    session.run(&[&train], &[])?;
    assert_eq!(session.value("w")?.as_slice::<f32>()?, [-1.0, 0.5]);
    Ok(())
}

/// The squares of gradients are infinite, and so is their norm: TensorFlow 1.15 (and 2.15, for the
/// `global_clipnorm` of an optimizer) makes all gradients NaN, so that the training ends. The norm
/// of one variable, `clipnorm`, makes them 0, here and there.
#[test]
fn an_infinite_norm_is_not_hidden() -> Result<()> {
    let values = |make: fn(&Tensor) -> Tensor| -> Result<(Vec<f32>, f32)> {
        let graph = Graph::new();
        let (w, v) = (graph.variable("w", [2], Initializer::Zeros), graph.variable("v", [], Initializer::Zeros));
        let train = make(&((&w * graph.constant([1e20f32, 1.0])).sum() + &v));
        let mut session = Session::new(&graph)?;
        session.run(&[&train], &[])?;
        Ok((session.value("w")?.as_slice::<f32>()?.to_vec(), session.value("v")?.item::<f32>()?))
    };
    for make in [
        |loss: &Tensor| OptimizeLoss::new(loss, Optimizer::new(Sgd::default(), 1.0)).clip_gradients(5.0).train_op(),
        |loss: &Tensor| Optimizer::new(Sgd::default(), 1.0).clip(Clip::GlobalNorm(5.0)).minimize(loss),
    ] {
        let (w, v) = values(make)?;
        assert!(w.iter().all(|w| w.is_nan()) && v.is_nan(), "{w:?} {v}");
    }
    let by_variable = values(|loss| Optimizer::new(Sgd::default(), 1.0).clip(Clip::Norm(5.0)).minimize(loss))?;
    assert_eq!(by_variable, (vec![0.0, 0.0], -1.0));
    Ok(())
}

/// An error of the train op of a change to the options.
fn error_of(change: impl FnOnce(OptimizeLoss<'_>) -> OptimizeLoss<'_>) -> String {
    let graph = Graph::new();
    let w = graph.variable("w", [], Initializer::Zeros);
    let step = graph.variable_with("global_step", DType::I64, [], Initializer::Zeros, Role::Step);
    change(OptimizeLoss::named(&w.square(), "SGD", 0.1).global_step(&step)).train_op();
    graph.check().unwrap_err().to_string()
}

#[test]
fn mistakes_are_refused() {
    let graph = Graph::new();
    let w = graph.variable("w", [2], Initializer::Zeros);
    let fails = |made: OptimizeLoss<'_>| {
        made.train_op();
        graph.check().unwrap_err().to_string()
    };
    // The graph keeps the first error alone, so each has its own.
    for case in cases_of("optimize_loss", "refused") {
        let theirs: String = case.setting("error");
        let new = Graph::new();
        let loss = new.variable("w", [], Initializer::Zeros).square();
        match case.setting::<String>("name").as_str() {
            "optimizer" => drop(OptimizeLoss::named(&loss, "Sgd", 0.1).train_op()),
            "rate" => drop(OptimizeLoss::named(&loss, "SGD", -0.1).train_op()),
            "decay without step" => {
                drop(OptimizeLoss::named(&loss, "SGD", 0.1).learning_rate_decay(Schedule::Constant).train_op());
            }
            // An enum has no other names.
            "summary" => continue,
            other => panic!("{other}"),
        }
        let error = new.check().unwrap_err().to_string();
        // TensorFlow forgot to put the number into its text: ('Invalid learning_rate %s.', -0.1).
        let theirs = if theirs.contains("%s") { "Invalid learning_rate -0.1." } else { &theirs };
        assert!(error.starts_with(theirs), "{error}\nexpected {theirs}");
    }
    assert!(fails(OptimizeLoss::named(&w.square(), "SGD", 0.1)).contains("expected one number"));
    for (error, expected) in [
        (error_of(|made| made.gradient_multiplier("v", 2.0)), "there is no trained variable `v`"),
        (
            error_of(|made| made.gradient_multiplier("w", 2.0).gradient_multiplier("w:0", 3.0)),
            "two gradient multipliers",
        ),
        (error_of(|made| made.gradient_multiplier("w", f64::NAN)), "the gradient multiplier of `w` is NaN"),
        (error_of(|made| made.gradient_noise_scale(f64::INFINITY)), "gradient_noise_scale is inf"),
        (error_of(|made| made.clip_gradients(0.0)), "clip_gradients is 0"),
        (error_of(|made| made.clip_gradients(AdaptiveClipping::new().decay(1.5))), "decay is 1.5"),
        (error_of(|made| made.clip_gradients(AdaptiveClipping::new().std_factor(-1.0))), "std_factor is -1"),
        (error_of(|made| made.clip_gradients(AdaptiveClipping::new().epsilon(0.0))), "epsilon is 0"),
        (
            error_of(|made| made.clip_gradients(AdaptiveClipping::new().static_max_norm(f64::NAN))),
            "static_max_norm is NaN",
        ),
        (error_of(|made| made.clip_gradients(AdaptiveClipping::new().report_summary())), "no list of summaries"),
    ] {
        assert!(error.contains(expected), "{error}\nexpected {expected}");
        assert!(error.contains("\n  help: "), "no help: {error}");
    }
    let new = Graph::new();
    let loss = new.variable("w", [], Initializer::Zeros).square();
    let sgd = Optimizer::new(Sgd::default(), 0.1);
    OptimizeLoss::new(&loss, sgd).learning_rate_decay(Schedule::Constant).train_op();
    assert!(new.check().unwrap_err().to_string().contains("the optimizer has its own learning rate"));
    let new = Graph::new();
    let loss = new.variable("w", [], Initializer::Zeros).square();
    OptimizeLoss::named(&loss, "SGD", 0.1).clip_gradients(AdaptiveClipping::new().adapt_quickly()).train_op();
    assert!(new.check().unwrap_err().to_string().contains("needs the global step"));
}
