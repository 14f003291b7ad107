//! Constraints: trainings beside Keras's, on both executors, and what they leave alone.

use std::sync::Arc;

use estimand_engine::Session;
use estimand_graph::{Executor, Graph, Initializer, Optimizer};
use estimand_nn::testing::{check_layer, spread};
use estimand_nn::*;
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Dim, Result};
use estimand_update::{Adagrad, Constraint, MaxNorm, MinMaxNorm, NonNeg, Sgd, UnitNorm};

use crate::fixture::{Case, assert_close, cases, rows};

/// The layer of a case.
fn layer(name: &str) -> Box<dyn Layer> {
    match name {
        "max_norm" => Box::new(Dense::new(3).kernel_constraint(MaxNorm::new(1.2)).bias_constraint(NonNeg)),
        "unit_norm" => Box::new(Dense::new(3).kernel_constraint(UnitNorm::new().axes([1]))),
        "non_neg" => Box::new(Dense::new(3).kernel_constraint(NonNeg)),
        "min_max_norm" => Box::new(Dense::new(3).kernel_constraint(MinMaxNorm::new(0.5, 1.0).rate(0.6))),
        "filters" => Box::new(Conv2d::new(3, 2).kernel_constraint(MaxNorm::new(1.0).axes([0, 1, 2]))),
        "apart" => Box::new(Conv2d::new(3, 2).kernel_constraint(UnitNorm::new().axes([0, 2]))),
        "depthwise" => Box::new(DepthwiseConv2d::new(2).depthwise_constraint(UnitNorm::new().axes([0, 1]))),
        "separable" => Box::new(
            SeparableConv2d::new(3, 2).depthwise_constraint(NonNeg).pointwise_constraint(MaxNorm::new(0.7).axes([-1])),
        ),
        "slopes" => Box::new(PRelu::new().alpha_constraint(NonNeg)),
        "layer_norm" => Box::new(LayerNorm::new().beta_constraint(NonNeg).gamma_constraint(MaxNorm::new(0.5))),
        "batch_norm" => Box::new(BatchNorm::new().beta_constraint(NonNeg).gamma_constraint(UnitNorm::new())),
        "embedding_max_norm" => Box::new(Embedding::new(6, 3).constraint(MaxNorm::new(1.0).axes([1]))),
        "embedding_non_neg" => Box::new(Embedding::new(6, 3).constraint(NonNeg)),
        "sequences" => Box::new(
            Lstm::new(2)
                .kernel_constraint(MaxNorm::new(0.8))
                .recurrent_constraint(UnitNorm::new())
                .bias_constraint(NonNeg),
        ),
        _ => panic!("the fixture has a case `{name}` that the test does not know"),
    }
}

fn train(case: &Case, executor: impl Executor + 'static) -> Result<()> {
    let optimizer: String = case.settings.setting("optimizer");
    let optimizer = match optimizer.as_str() {
        "sgd" => Optimizer::new(Sgd::default(), 0.1),
        "momentum" => Optimizer::new(Sgd::default().momentum(0.9), 0.05),
        _ => Optimizer::new(Adagrad::default(), 0.2),
    };
    let g = Graph::new();
    let layer = layer(case.name());
    let (x, target) = (rows(&g, "x", case.array("in")), rows(&g, "target", case.array("target")));
    let loss = (layer.apply(&LayerInputs::of(&x).training(false)) - &target).square().mean();
    let train = optimizer.minimize(&loss);
    // The weights of a recurrent layer are those of its cell.
    let scope = if layer.kind() == "lstm" { "lstm/lstm_cell" } else { layer.kind() };
    let full = |name: &str| format!("{scope}/{name}");
    let mut session = Session::with(&g, executor, 0)?;
    for (name, value) in case.with_prefix("weight:") {
        session.set_value(&full(name), value)?;
    }
    for _ in 0..5 {
        session.run(&[&train], &[(&x, case.array("in").clone()), (&target, case.array("target").clone())])?;
    }
    for (name, expected) in case.with_prefix("after:") {
        assert_close(&format!("{}: {name}", case.settings), &session.value(&full(name))?, expected);
    }
    Ok(())
}

#[test]
fn training_under_constraints_agrees_with_keras() -> Result<()> {
    for case in cases("constraints") {
        train(&case, estimand_cpu::Cpu::with_threads(3))?;
        train(&case, Reference)?;
    }
    Ok(())
}

/// A constraint is seen in the text of a program, costs no step of its own, and changes no
/// variable's name.
#[test]
fn a_constraint_is_the_end_of_an_update() -> Result<()> {
    let program = |layer: Dense| -> Result<(String, Vec<String>)> {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
        let train = Optimizer::new(Sgd::default(), 0.1).minimize(&layer.apply(&x).square().sum());
        let names = g.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
        Ok((Session::new(&g)?.program(&[&train])?.to_string(), names))
    };
    let (free, names) = program(Dense::new(3))?;
    let (held, held_names) = program(Dense::new(3).kernel_constraint(MaxNorm::new(1.0)))?;
    assert_eq!(held.replace("+MaxNorm", ""), free);
    assert!(held.contains("ApplySGD+MaxNorm(dense/kernel)"), "{held}");
    assert_eq!(names, held_names);
    Ok(())
}

/// A frozen layer is not held to anything: no optimizer changes it. Nor is a value that is set.
#[test]
fn only_updates_are_constrained() -> Result<()> {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
    let dense = |name: &str| {
        Dense::new(2)
            .use_bias(false)
            .kernel_initializer(Initializer::Constant(-1.0))
            .kernel_constraint(NonNeg)
            .name(name)
    };
    let y = dense("free").apply(&dense("frozen").trainable(false).apply(&x));
    let train = Optimizer::new(Sgd::default(), 0.0).minimize(&y.square().sum());
    let mut session = Session::new(&g)?;
    let ones = Array::from_vec([1, 2], vec![1.0f32; 2])?;
    session.run(&[&y], &[(&x, ones.clone())])?;
    assert_eq!(session.value("free/kernel")?.as_slice::<f32>()?, [-1.0; 4]);
    session.run(&[&train], &[(&x, ones)])?;
    assert_eq!(session.value("free/kernel")?.as_slice::<f32>()?, [0.0; 4]);
    assert_eq!(session.value("frozen/kernel")?.as_slice::<f32>()?, [-1.0; 4]);
    Ok(())
}

/// Weights are whole numbers.
#[derive(Debug)]
struct Whole;

impl Constraint for Whole {
    fn name(&self) -> &'static str {
        "Whole"
    }

    fn project(&self, _dims: &[usize], weights: &mut [f32]) {
        weights.iter_mut().for_each(|w| *w = w.round());
    }
}

/// 1.6 - 0.4 * 2 * 1.6 = 0.32 without, and 0 with the constraint.
#[test]
fn a_constraint_of_ones_own() -> Result<()> {
    let g = Graph::new();
    let w = g.variable("w", [], Initializer::Constant(1.6));
    g.constrain(&w, Arc::new(Whole));
    let train = Optimizer::new(Sgd::default(), 0.4).minimize(&w.square());
    let mut session = Session::new(&g)?;
    session.run(&[&train], &[])?;
    assert_eq!(session.value("w")?.item::<f32>()?, 0.0);
    Ok(())
}

#[test]
fn layers_with_constraints_keep_the_contract() -> Result<()> {
    check_layer(&Dense::new(3).kernel_constraint(MaxNorm::new(10.0)).bias_constraint(NonNeg), &spread(&[3, 4])?)?;
    let ids = Array::from_vec([3, 2], vec![0i64, 4, 1, 1, 2, 3])?;
    check_layer(&Embedding::new(5, 2).constraint(MaxNorm::new(10.0).axes([1])), &ids)
}

/// A mistake, and what its error must contain.
type Mistake = (fn(&Graph), &'static str);

#[test]
fn constraints_that_do_not_fit_are_named() {
    let error = |build: fn(&Graph)| {
        let g = Graph::new();
        build(&g);
        let text = g.check().unwrap_err().to_string();
        assert!(text.contains("constraints.rs:"), "{text}");
        text
    };
    let cases: [Mistake; 4] = [
        (
            |g| {
                let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
                let _ = Dense::new(3).kernel_constraint(UnitNorm::new().axes([2])).apply(&x);
            },
            "UnitNorm: axis 2 of weights [4, 3], which have 2 axes\n  in variable `dense/kernel`",
        ),
        (
            |g| {
                let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
                let _ = Dense::new(3).bias_constraint(MaxNorm::new(f64::NAN)).apply(&x);
            },
            "MaxNorm: `max_value` must be zero or positive, got NaN",
        ),
        (
            |g| g.constrain(&g.constant([1.0f32]), Arc::new(NonNeg)),
            "the constraint NonNeg was given `Const` f32[1], which is not a variable",
        ),
        (
            |g| {
                let count = g.variable_with("n", DType::I64, [], Initializer::Zeros, estimand_graph::Role::Step);
                g.constrain(&count, Arc::new(NonNeg));
            },
            "the constraint NonNeg was given a variable of i64",
        ),
    ];
    for (build, expected) in cases {
        let text = error(build);
        assert!(text.contains(expected), "{text}\nshould contain {expected}");
    }
}
