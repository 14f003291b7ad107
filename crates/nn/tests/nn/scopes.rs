//! Defaults of scopes: what layers take from them, what they do not, and where they end.

use estimand_engine::{Eval, Session};
use estimand_graph::{Graph, Initializer, Tensor};
use estimand_nn::*;
use estimand_tensor::{Array, DType, Dim, Result};

fn input(g: &Graph) -> Tensor {
    g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()])
}

fn inits(g: &Graph) -> Vec<Initializer> {
    g.body().variables().iter().map(|(_, spec)| spec.initializer.clone()).collect()
}

#[test]
fn inner_scopes_and_layers_override() -> Result<()> {
    let g = Graph::new();
    let x = input(&g);
    let outer = Defaults::new()
        .kernel_initializer(Initializer::Ones)
        .bias_initializer(Initializer::Constant(-5.0))
        .activation(Activation::Relu);
    let (a, b, c) = outer.scope(&g, || {
        let a = Dense::new(1).apply(&x);
        let inner = Defaults::new().kernel_initializer(Initializer::Constant(2.0));
        let b = inner.scope(&g, || Dense::new(1).apply(&x));
        (a, b, Dense::new(1).linear().bias_initializer(Initializer::Zeros).apply(&x))
    });
    let d = Dense::new(1).apply(&x);
    let expected = [
        Initializer::Ones,
        Initializer::Constant(-5.0),
        Initializer::Constant(2.0),
        Initializer::Constant(-5.0),
        Initializer::Ones,
        Initializer::Zeros,
        Initializer::GlorotUniform,
        Initializer::Zeros,
    ];
    assert_eq!(inits(&g), expected);
    // -1 + 2 = 1: relu(1 - 5), relu(2 * 1 - 5), 1 + 0.
    let feeds = [(&x, Array::from_vec([1, 2], vec![-1.0f32, 2.0])?)];
    let out = Session::new(&g)?.run(&[&a, &b, &c, &d], &feeds)?;
    let number = |i: usize| out[i].as_slice::<f32>().map(|v| v[0]);
    assert_eq!((number(0)?, number(1)?, number(2)?), (0.0, 0.0, 1.0));
    Ok(())
}

#[test]
fn regularizers_of_a_scope_reach_kernels_only() -> Result<()> {
    let g = Graph::new();
    let x = input(&g);
    Defaults::new()
        .regularizer(Regularizer::l2(0.5))
        .kernel_initializer(Initializer::Ones)
        .bias_initializer(Initializer::Ones)
        .scope(&g, || {
            let _ = Dense::new(3).kernel_regularizer(Regularizer::l1(0.1)).apply(&Dense::new(2).apply(&x));
        });
    assert_eq!(g.regularization_losses().len(), 2);
    // 0.5 * 4 ones, 0.1 * 6 ones.
    let loss = g.regularization_loss().eval()?.item::<f32>()?;
    assert!((loss - 2.6).abs() < 1e-6, "{loss}");
    Ok(())
}

/// A shared layer is what it was where it was first applied.
#[test]
fn a_shared_layer_keeps_its_scope() -> Result<()> {
    let g = Graph::new();
    let x = input(&g);
    let shared = Shared::new(Dense::new(1).kernel_initializer(Initializer::Ones));
    let defaults = Defaults::new().activation(Activation::Relu);
    let inside = defaults.scope(&g, || shared.apply(&x));
    let outside = shared.apply(&x);
    let feeds = [(&x, Array::from_vec([1, 2], vec![-1.0f32, -2.0])?)];
    let out = Session::new(&g)?.run(&[&inside, &outside], &feeds)?;
    assert_eq!(out[0].as_slice::<f32>()?, [0.0]);
    assert_eq!(out[1].as_slice::<f32>()?, [0.0]);
    Ok(())
}

#[test]
fn a_scope_ends_when_what_it_builds_panics() {
    let g = Graph::new();
    let panics = || Defaults::new().kernel_initializer(Initializer::Ones).scope(&g, || panic!("on purpose"));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert!(result.is_err());
    let _ = Dense::new(1).use_bias(false).apply(&input(&g));
    assert_eq!(inits(&g), [Initializer::GlorotUniform]);
}
