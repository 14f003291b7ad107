//! Behaviour of single layers, by arithmetic: dropout, batch normalisation, shared weights, frozen
//! layers.

use estimand_engine::{Eval, Session};
use estimand_graph::{Graph, Initializer, Optimizer, Tensor, gradients};
use estimand_nn::config::Dialect;
use estimand_nn::*;
use estimand_tensor::{Array, DType, Dim, Mode, Result};
use estimand_update::Sgd;

fn placeholder(g: &Graph, width: usize) -> Tensor {
    g.placeholder("x", DType::F32, [Dim::BATCH, width.into()])
}

fn names(g: &Graph) -> Vec<String> {
    g.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect()
}

#[test]
fn dropout_scales_what_it_keeps() -> Result<()> {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 1000.into()]);
    let y = Dropout::new(0.25).apply(&x);
    let ones = Array::from_vec([40, 1000], vec![1.0f32; 40_000])?;
    let out = Session::new(&g)?.run(&[&y], &[(&x, ones)])?.remove(0);
    let values = out.as_slice::<f32>()?;
    let scale = (1.0f64 / 0.75) as f32;
    assert!(values.iter().all(|v| *v == 0.0 || *v == scale));
    // A quarter of 40,000 with a deviation of sqrt(40,000 * 0.25 * 0.75) = 87; four of them
    // are 346.
    let dropped = values.iter().filter(|v| **v == 0.0).count();
    assert!(dropped.abs_diff(10_000) < 346, "{dropped} of 40,000 dropped");
    Ok(())
}

#[test]
fn dropout_is_the_input_outside_of_training() {
    let g = Graph::with_mode(Mode::Predict);
    let x = placeholder(&g, 4);
    assert_eq!(Dropout::new(0.9).apply(&x).value(), x.value());
    assert_ne!(Dropout::new(0.9).apply(&LayerInputs::of(&x).training(true)).value(), x.value());
}

#[test]
fn a_noise_shape_drops_whole_channels() -> Result<()> {
    let g = Graph::new();
    let x = g.constant(Array::from_vec([4, 6, 5], vec![1.0f32; 120])?);
    let y = Dropout::new(0.5).noise_shape([None, Some(1), None]).apply(&x).eval()?;
    let values = y.as_slice::<f32>()?;
    for row in 0..4 {
        for channel in 0..5 {
            let of = |place: usize| values[row * 30 + place * 5 + channel];
            assert!((0..6).all(|place| of(place) == of(0)));
        }
    }
    assert!(values.contains(&0.0) && values.contains(&2.0));
    Ok(())
}

#[test]
fn two_dropouts_draw_different_numbers() -> Result<()> {
    let g = Graph::new();
    let x = g.constant(Array::from_vec([1, 200], vec![1.0f32; 200])?);
    let shared = Shared::new(Dropout::new(0.5));
    let results = [shared.apply(&x), shared.apply(&x), Dropout::new(0.5).apply(&x)];
    let values = Session::new(&g)?.run(&results.iter().collect::<Vec<_>>(), &[])?;
    assert_ne!(values[0], values[1]);
    assert_ne!(values[1], values[2]);
    Ok(())
}

/// The pixels 1 and 3 have the variance 1. With momentum 0.5, the moving variance goes from 1 to 1
/// in Keras 3, and in Keras 2, whose kernel for images takes 1 * 2 / (2 - 1), to 1.5. So it does
/// for volumes, but not along axis 2 of them, for which Keras 2 has no such kernel.
#[test]
fn the_moving_variance_of_images_is_that_of_the_version() -> Result<()> {
    for (dialect, dims, axis, expected) in [
        (Dialect::Keras2, &[1, 2, 1, 1][..], -1, 1.5f32),
        (Dialect::Keras3, &[1, 2, 1, 1], -1, 1.0),
        (Dialect::Keras2, &[1, 2, 1, 1, 1], 4, 1.5),
        (Dialect::Keras2, &[1, 2, 1, 1, 1], 2, 1.0),
        (Dialect::Keras3, &[1, 2, 1, 1, 1], 4, 1.0),
    ] {
        let g = Graph::new();
        let x = g.constant(Array::from_vec(dims, vec![1.0f32, 3.0])?);
        let inputs = LayerInputs::of(&x).rules_of(dialect).training(true);
        let y = BatchNorm::new().momentum(0.5).axis(axis).apply(&inputs);
        let updates = g.updates();
        let fetches: Vec<&Tensor> = [&y].into_iter().chain(&updates).collect();
        let mut session = Session::new(&g)?;
        session.run(&fetches, &[])?;
        let found = session.value("batch_normalization/moving_variance")?;
        assert_eq!(found.as_slice::<f32>()?, [expected], "{dialect:?} {dims:?}");
    }
    Ok(())
}

/// Of steps that do not count, mean and variance are 0 / 0 in Keras 2, and 0 / 1e-7 in Keras 3.
#[test]
fn a_batch_of_which_nothing_counts_has_no_moments_in_keras_2() -> Result<()> {
    let result = |dialect: Dialect| {
        let g = Graph::new();
        let x = g.constant(Array::from_vec([1, 2, 1], vec![1.0f32, 3.0])?);
        let mask = g.constant(Array::from_vec([1, 2], vec![false, false])?);
        let inputs = LayerInputs::of(&x).carried_masks(vec![Some(mask)]).rules_of(dialect).training(true);
        BatchNorm::new().epsilon(1.0).apply(&inputs).eval()
    };
    assert!(result(Dialect::Keras2)?.as_slice::<f32>()?.iter().all(|v| v.is_nan()));
    assert_eq!(result(Dialect::Keras3)?.as_slice::<f32>()?, [1.0, 3.0]);
    Ok(())
}

/// In Keras 2 a step counts if a part of it does, and in Keras 3 the mask stays as it is. The layer
/// inside sees the mask of the parts: of the steps [5, 7] and [9, 2], only 7 and 2 count.
#[test]
fn the_parts_of_steps_have_masks() -> Result<()> {
    let g = Graph::new();
    let x = g.constant(Array::from_vec([1, 2, 2, 1], vec![5.0f32, 7.0, 9.0, 2.0])?);
    let mask = g.constant(Array::from_vec([1, 2, 2], vec![false, true, false, true])?);
    let layer = TimeDistributed::new(GlobalAvgPool1d::new());
    let inputs = LayerInputs::of(&x).carried_masks(vec![Some(mask)]);
    assert_eq!(layer.apply(&inputs).eval()?.as_slice::<f32>()?, [7.0, 2.0]);
    let carried = |dialect| layer.compute_mask(&inputs.clone().rules_of(dialect)).map(|mask| mask.shape().to_string());
    assert_eq!(carried(Dialect::Keras2).as_deref(), Some("[1, 2]"));
    assert_eq!(carried(Dialect::Keras3).as_deref(), Some("[1, 2, 2]"));
    Ok(())
}

/// A batch of [1, 3] has mean 2 and variance 1. With momentum 0.5, 0 and 1 move to 1 and 1; then
/// [5, 5] moves them to 3 and 0.5.
#[test]
fn moving_statistics_follow_the_batches() -> Result<()> {
    let g = Graph::new();
    let x = placeholder(&g, 1);
    let y = BatchNorm::new().momentum(0.5).apply(&x);
    let updates = g.updates();
    let mut fetches = vec![&y];
    fetches.extend(&updates);
    let mut session = Session::new(&g)?;
    let out = session.run(&fetches, &[(&x, Array::from_vec([2, 1], vec![1.0f32, 3.0])?)])?;
    // (1 - 2) / sqrt(1 + 0.001)
    let expected = -1.0 / 1.001f64.sqrt();
    assert!((f64::from(out[0].as_slice::<f32>()?[0]) - expected).abs() < 1e-6);
    let value = |session: &Session, name: &str| {
        session.value(&format!("batch_normalization/{name}"))?.as_slice::<f32>().map(|v| v[0])
    };
    assert_eq!(value(&session, "moving_mean")?, 1.0);
    assert_eq!(value(&session, "moving_variance")?, 1.0);
    session.run(&fetches, &[(&x, Array::from_vec([2, 1], vec![5.0f32, 5.0])?)])?;
    assert_eq!(value(&session, "moving_mean")?, 3.0);
    assert_eq!(value(&session, "moving_variance")?, 0.5);
    Ok(())
}

#[test]
fn an_optimizer_alone_leaves_moving_statistics() -> Result<()> {
    let g = Graph::new();
    let x = placeholder(&g, 1);
    let loss = BatchNorm::new().apply(&x).square().sum();
    let train = Optimizer::new(Sgd::default(), 0.1).minimize(&loss);
    let mut session = Session::new(&g)?;
    session.run(&[&train], &[(&x, Array::from_vec([2, 1], vec![1.0f32, 3.0])?)])?;
    assert_eq!(session.value("batch_normalization/moving_mean")?.as_slice::<f32>()?, [0.0]);
    assert_ne!(session.value("batch_normalization/gamma")?.as_slice::<f32>()?, [1.0]);
    Ok(())
}

#[test]
fn a_shared_layer_has_one_set_of_weights() -> Result<()> {
    let g = Graph::new();
    let x = placeholder(&g, 2);
    let shared = Shared::new(Dense::new(2).kernel_initializer(Initializer::Ones));
    let y = shared.clone().apply(&shared.apply(&x));
    let _ = Dense::new(2).apply(&y);
    assert_eq!(names(&g), ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]);
    // (1 + 2) twice, and their sum twice.
    let out = Session::new(&g)?.run(&[&y], &[(&x, Array::from_vec([1, 2], vec![1.0f32, 2.0])?)])?;
    assert_eq!(out[0].as_slice::<f32>()?, [6.0, 6.0]);
    Ok(())
}

#[test]
fn a_frozen_layer_is_left_by_the_optimizer() -> Result<()> {
    let g = Graph::new();
    let x = placeholder(&g, 2);
    let hidden = Dense::new(2).trainable(false).apply(&x);
    let loss = Dense::new(1).apply(&hidden).square().sum();
    let train = Optimizer::new(Sgd::default(), 0.1).minimize(&loss);
    let mut session = Session::new(&g)?;
    let before = session.value("dense/kernel")?;
    session.run(&[&train], &[(&x, Array::from_vec([1, 2], vec![1.0f32, 2.0])?)])?;
    assert_eq!(session.value("dense/kernel")?, before);
    assert_ne!(session.value("dense_1/bias")?.as_slice::<f32>()?, [0.0]);
    Ok(())
}

#[test]
fn the_gradient_of_an_embedding_is_rows() {
    let g = Graph::new();
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH, 2.into()]);
    let y = Embedding::new(1000, 4).apply(&ids);
    assert_eq!(y.shape().to_string(), "[batch, 2, 4]");
    let table = g.get_variable("embedding/embeddings");
    assert!(matches!(gradients(&y.sum(), &[&table])[0], estimand_graph::Gradient::Rows { .. }));
}

#[test]
fn names_are_counted_per_graph_and_kind() {
    let g = Graph::new();
    // A node of the name, and a layer that was given it, are in nobody's way.
    let x = g.placeholder("dense", DType::F32, [Dim::BATCH, 2.into()]);
    let y = Dense::new(2).name("dense_1").apply(&Dense::new(2).apply(&x));
    let y = {
        let _tower = g.scope("tower");
        Dense::new(2).use_bias(false).apply(&y)
    };
    let _ = LayerNorm::new().apply(&y);
    let expected = [
        "dense/kernel",
        "dense/bias",
        "dense_1/kernel",
        "dense_1/bias",
        "tower/dense_2/kernel",
        "layer_normalization/gamma",
        "layer_normalization/beta",
    ];
    assert_eq!(names(&g), expected);
    g.check().unwrap();
}

/// The layers of a network are one step each in the program: product, bias and relu together.
#[test]
fn bias_and_relu_go_into_the_product() -> Result<()> {
    let g = Graph::with_mode(Mode::Predict);
    let x = placeholder(&g, 4);
    let y = Dense::new(3).relu().apply(&x);
    let program = Session::new(&g)?.program(&[&y])?.to_string();
    assert!(program.contains("MatMul+bias+relu"), "{program}");
    Ok(())
}

/// Of a sequence shorter than what is cropped nothing is left, as of Python's slices in Keras.
#[test]
fn sequences_of_any_length_are_cropped_and_stretched() -> Result<()> {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY, 1.into()]);
    let cropped = Cropping1d::new((1, 2)).apply(&x);
    let stretched = UpSampling1d::new(2).apply(&cropped);
    let mut session = Session::new(&g)?;
    let mut run = |n: usize| -> Result<Vec<f32>> {
        let sequence = Array::from_vec([1, n, 1], (0..n).map(|i| i as f32).collect())?;
        Ok(session.run(&[&stretched], &[(&x, sequence)])?[0].as_slice::<f32>()?.to_vec())
    };
    assert_eq!(run(5)?, [1.0, 1.0, 2.0, 2.0]);
    assert_eq!(run(4)?, [1.0, 1.0]);
    assert_eq!(run(2)?, [0.0; 0]);
    Ok(())
}
