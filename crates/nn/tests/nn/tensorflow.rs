//! Layers and losses against Keras's and TensorFlow 1's: results, gradients, moving statistics,
//! regularization.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Graph, Initializer, Tensor, gradients};
use estimand_nn::*;
use estimand_tensor::{Array, Dim};

use crate::fixture::{Case, assert_close, cases, rows};
use crate::losses::check_loss;

/// The layer of a case, and whether it is called as in training.
fn layer(name: &str) -> (Box<dyn Layer>, bool) {
    let plain = |layer: Box<dyn Layer>| (layer, false);
    if let Some(activation) = name.strip_prefix("activation_") {
        return plain(Box::new(activation.parse::<Activation>().unwrap()));
    }
    plain(match name {
        "dense" => Box::new(Dense::new(3)),
        "dense_rank3" => Box::new(Dense::new(2).relu().use_bias(false)),
        "dense_l1" => Box::new(Dense::new(3).kernel_regularizer(Regularizer::l1(0.03))),
        "dense_l2" => Box::new(Dense::new(3).kernel_regularizer(Regularizer::l2(0.02))),
        "dense_l1_l2" => Box::new(
            Dense::new(3).kernel_regularizer(Regularizer::l1_l2(0.03, 0.02)).bias_regularizer(Regularizer::l2(0.1)),
        ),
        "dense_activity" => Box::new(Dense::new(3).tanh().activity_regularizer(Regularizer::l2(0.5))),
        "dense_frozen_l2" => Box::new(Dense::new(3).kernel_regularizer(Regularizer::l2(0.02)).trainable(false)),
        "conv2d" => Box::new(Conv2d::new(4, 3)),
        "conv2d_same" => Box::new(Conv2d::new(2, (3, 2)).strides((2, 1)).same().relu()),
        "conv2d_dilated" => Box::new(Conv2d::new(2, 2).dilation((2, 3)).use_bias(false)),
        "max_pool" => Box::new(MaxPool2d::new(2)),
        "max_pool_same" => Box::new(MaxPool2d::new((3, 2)).strides((2, 1)).same()),
        "avg_pool" => Box::new(AvgPool2d::new(2)),
        "avg_pool_same" => Box::new(AvgPool2d::new((3, 2)).strides((2, 1)).same()),
        "global_max_pool" => Box::new(GlobalMaxPool2d::new()),
        "global_avg_pool" => Box::new(GlobalAvgPool2d::new()),
        "flatten" => Box::new(Flatten::new()),
        "reshape" => Box::new(Reshape::new([10, -1])),
        "embedding" => Box::new(Embedding::new(6, 3)),
        "layer_norm" => Box::new(LayerNorm::new()),
        "layer_norm_plain" => Box::new(LayerNorm::new().epsilon(0.1).center(false).scale(false)),
        "batch_norm" | "batch_norm_image" => Box::new(BatchNorm::new()),
        "batch_norm_training" | "batch_norm_image_training" => return (Box::new(BatchNorm::new()), true),
        "batch_norm_options" => {
            return (Box::new(BatchNorm::new().momentum(0.7).epsilon(0.1).center(false).scale(false)), true);
        }
        "batch_norm_axis" => return (Box::new(BatchNorm::new().axis(1)), true),
        "batch_norm_frozen" => return (Box::new(BatchNorm::new().trainable(false)), true),
        _ => panic!("the fixture has a case `{name}` that the test does not know"),
    })
}

/// Checks a layer against its case: result, gradients, updates, regularization.
pub fn check_layer(case: &Case, layer: &dyn Layer, training: bool) {
    let g = Graph::new();
    let x = rows(&g, "x", case.array("in"));
    let coef = rows(&g, "coef", case.array("coef"));
    let y = layer.apply(&LayerInputs::of(&x).training(training));
    let loss = g.regularization_loss();
    let total = (&y * &coef).sum() + &loss;
    let weights: Vec<(&str, &Array)> = case.with_prefix("weight:").collect();
    assert_eq!(g.body().variables().len(), weights.len(), "{}: variables of\n{g}", case.settings);
    let full = |name: &str| format!("{}/{name}", layer.kind());

    let wanted: Vec<(&str, &Array)> = case.with_prefix("grad:").collect();
    let sources: Vec<Tensor> =
        wanted.iter().map(|(name, _)| if *name == "in" { x.clone() } else { g.get_variable(&full(name)) }).collect();
    let found = gradients(&total, &sources.iter().collect::<Vec<_>>());
    let dense: Vec<Tensor> = found
        .iter()
        .zip(&sources)
        .map(|(gradient, s)| gradient.to_dense(s.shape()).unwrap_or_else(|| s.zeros_like()))
        .collect();

    let mut session = Session::new(&g).unwrap();
    for (name, value) in &weights {
        session.set_value(&full(name), value).unwrap();
    }
    let mut fetches = vec![&y, &loss];
    fetches.extend(&dense);
    let updates = g.updates();
    fetches.extend(&updates);
    let feeds = [(&x, case.array("in").clone()), (&coef, case.array("coef").clone())];
    let results = session.run(&fetches, &feeds).unwrap();
    assert_close(&case.settings.to_string(), &results[0], case.array("out"));
    assert_close(&format!("{} loss", case.settings), &results[1], case.find("loss").unwrap_or(&Array::scalar(0.0f32)));
    for ((name, expected), actual) in wanted.iter().zip(&results[2..]) {
        assert_close(&format!("{} gradient of {name}", case.settings), actual, expected);
    }
    let after: Vec<(&str, &Array)> = case.with_prefix("after:").collect();
    assert!(after.len() >= updates.len(), "{} updates more than Keras", case.settings);
    for (name, expected) in after {
        assert_close(&format!("{} {name} afterwards", case.settings), &session.value(&full(name)).unwrap(), expected);
    }
}

/// The loss of a case.
fn loss(name: &str, reduction: Reduction) -> Box<dyn Loss> {
    match name {
        "mean_squared_error" => Box::new(MeanSquaredError::new().reduction(reduction)),
        "absolute_error" => Box::new(AbsoluteError::new().reduction(reduction)),
        "log_poisson" => Box::new(LogPoisson::new().reduction(reduction)),
        "log_poisson_short" => Box::new(LogPoisson::new().compute_full_loss(false).reduction(reduction)),
        "huber" => Box::new(Huber::new().delta(0.7).reduction(reduction)),
        "sigmoid" => Box::new(SigmoidCrossEntropy::new().label_smoothing(0.1).reduction(reduction)),
        "sigmoid_probabilities" => Box::new(SigmoidCrossEntropy::new().from_probabilities().reduction(reduction)),
        "softmax" => Box::new(SoftmaxCrossEntropy::new().label_smoothing(0.1).reduction(reduction)),
        "softmax_plain" => Box::new(SoftmaxCrossEntropy::new().reduction(reduction)),
        "softmax_probabilities" => {
            Box::new(SoftmaxCrossEntropy::new().from_probabilities().label_smoothing(0.1).reduction(reduction))
        }
        "sparse" => Box::new(SparseSoftmaxCrossEntropy::new().reduction(reduction)),
        "sparse_probabilities" => Box::new(SparseSoftmaxCrossEntropy::new().from_probabilities().reduction(reduction)),
        _ => panic!("the fixture has a loss `{name}` that the test does not know"),
    }
}

#[test]
fn layers_agree_with_keras() {
    let cases = cases("layers");
    let cases: Vec<&Case> = cases.iter().filter(|case| case.name() != "loss").collect();
    for case in &cases {
        let (layer, training) = layer(case.name());
        check_layer(case, &*layer, training);
    }
    // Every layer is there: Dropout draws its own numbers.
    let mut kinds: BTreeSet<&str> =
        cases.iter().map(|case| layer(case.name()).0.kind()).chain(crate::keras_layers::kinds()).collect();
    kinds.extend(crate::recurrent::KINDS);
    kinds.extend(crate::preprocessing::kinds());
    // Merges have a test of their own.
    let is_merge = |layer: &dyn Layer| !layer.n_inputs().contains(&1) || *layer.n_inputs().end() == usize::MAX;
    let all = ALL_LAYERS.iter().map(|make| make()).filter(|layer| !is_merge(&**layer)).map(|layer| layer.kind());
    let all: BTreeSet<&str> = all.filter(|kind| *kind != "dropout").collect();
    assert_eq!(kinds, all);
    // `keras_configs` compares those that TensorFlow 2.15 does not have, and reads `hard_sigmoid`.
    let later: String = crate::fixture::cases("layer_configs_keras3_15")
        .iter()
        .filter(|case| case.name() == "Activation")
        .map(|case| case.settings.setting::<String>("json"))
        .collect();
    for activation in ALL_ACTIVATIONS.into_iter().filter(|activation| *activation != Activation::HardSigmoidKeras3) {
        let is_later = later.contains(&format!("\"activation\": \"{activation}\""));
        let name = format!("activation_{activation}");
        assert!(is_later || cases.iter().any(|case| case.name() == name), "{activation}");
    }
}

#[test]
fn losses_agree_with_tensorflow() {
    let cases = cases("layers");
    let cases: Vec<&Case> = cases.iter().filter(|case| case.name() == "loss").collect();
    for case in &cases {
        check_loss(case, &*loss(&case.settings.setting::<String>("loss"), case.reduction()));
    }
    assert!(cases.len() > 150, "{} cases of losses", cases.len());
}

/// The defaults of layers are Keras's: Glorot's uniform kernels, biases at 0, gamma and moving
/// variance at 1.
#[test]
fn variables_begin_as_keras_ones() {
    let g = Graph::new();
    let x = g.placeholder("x", estimand_tensor::DType::F32, [Dim::BATCH, 4.into()]);
    let y = BatchNorm::new().apply(&Dense::new(3).apply(&x));
    let ids = g.placeholder("ids", estimand_tensor::DType::I64, [Dim::BATCH]);
    let _ = (y, Embedding::new(5, 2).apply(&ids));
    let expected = [
        ("dense/kernel", Initializer::GlorotUniform),
        ("dense/bias", Initializer::Zeros),
        ("batch_normalization/gamma", Initializer::Ones),
        ("batch_normalization/beta", Initializer::Zeros),
        ("batch_normalization/moving_mean", Initializer::Zeros),
        ("batch_normalization/moving_variance", Initializer::Ones),
        ("embedding/embeddings", Initializer::RandomUniform { low: -0.05, high: 0.05 }),
    ];
    let body = g.body();
    let actual: Vec<(&str, Initializer)> =
        body.variables().iter().map(|(_, v)| (v.name.as_str(), v.initializer.clone())).collect();
    assert_eq!(actual, expected);
}
