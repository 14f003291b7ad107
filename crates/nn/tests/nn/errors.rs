//! Wrong inputs and options: an error that says what, where (this file) and how to fix it; never a panic.

use estimand_graph::{Graph, Session, Tensor};
use estimand_nn::*;
use estimand_tensor::{Array, DType, Dim};

fn expect(graph: &Graph, parts: &[&str]) {
    let Err(error) = graph.check() else { panic!("the graph should have an error with {parts:?}\n{graph}") };
    let text = error.to_string();
    for part in parts.iter().chain(&["errors.rs:"]) {
        assert!(text.contains(part), "{text}\nshould contain {part}");
    }
}

/// A mistake, and what its error must contain.
type Case = (fn(&Graph) -> Tensor, &'static [&'static str]);

fn rows(g: &Graph) -> Tensor {
    g.placeholder("rows", DType::F32, [Dim::BATCH, 4.into()])
}

fn list(g: &Graph) -> Tensor {
    g.placeholder("list", DType::F32, [Dim::BATCH])
}

fn images(g: &Graph) -> Tensor {
    g.placeholder("images", DType::F32, [Dim::BATCH, 4.into(), 4.into(), 2.into()])
}

fn ids(g: &Graph) -> Tensor {
    g.placeholder("ids", DType::I64, [Dim::BATCH, 4.into()])
}

#[test]
fn layers_say_what_they_got() {
    let cases: &[Case] = &[
        (|g| Dense::new(3).apply(&list(g)), &["layer `dense` got `list` f32[batch]", "expected [batch, ..., inputs]"]),
        (|g| Dense::new(0).apply(&rows(g)), &["0 units", "in layer `dense`"]),
        (|g| Dense::new(3).apply(&ids(g)), &["layer `dense` got `ids` i64[batch, 4]; expected f32", "help: use .cast"]),
        (
            |g| Dense::new(3).apply(&g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY])),
            &["layer `dense` got `x` f32[batch, s1], whose last size is not known", "help:"],
        ),
        (|g| Conv2d::new(3, 2).apply(&rows(g)), &["layer `conv2d` got `rows`", "[batch, height, width, channels]"]),
        (|g| Conv2d::new(3, (0, 2)).apply(&images(g)), &["3 filters of 0 x 2"]),
        (|g| Conv2d::new(3, 2).strides(0).apply(&images(g)), &["stride 0", "at least 1"]),
        (|g| MaxPool2d::new(2).apply(&rows(g)), &["expected [batch, height, width, channels]"]),
        (|g| AvgPool2d::new(0).apply(&images(g)), &["window 0"]),
        (|g| GlobalMaxPool2d::new().apply(&rows(g)), &["layer `global_max_pooling2d` got `rows`"]),
        (|g| GlobalAvgPool2d::new().apply(&rows(g)), &["layer `global_average_pooling2d` got `rows`"]),
        (|g| Flatten::new().apply(&g.constant(1.0f32)), &["layer `flatten` got", "expected [batch, ...]"]),
        (|g| Reshape::new([3]).apply(&g.constant([1.0f32, 2.0]).expand_dims(0)), &["cannot reshape [1, 2] to [1, 3]"]),
        (|g| Reshape::new([-2]).apply(&rows(g)), &["a size of -2"]),
        (|g| Reshape::new([2]).apply(&g.constant(1.0f32)), &["layer `reshape` got"]),
        (|g| Dropout::new(1.0).apply(&rows(g)), &["dropout rate 1, expected 0 <= rate < 1"]),
        (|g| Dropout::new(-0.1).apply_training(&rows(g), false), &["dropout rate -0.1"]),
        (|g| Dropout::new(0.5).noise_shape([None]).apply(&rows(g)), &["a noise shape of 1 axes for `rows`"]),
        (|g| Dropout::new(0.5).noise_shape([None, Some(3)]).apply(&rows(g)), &["cannot be broadcast"]),
        (|g| BatchNorm::new().axis(2).apply(&rows(g)), &["axis 2 of `rows` f32[batch, 4]", "in layer"]),
        (|g| BatchNorm::new().momentum(1.5).apply(&rows(g)), &["momentum 1.5, expected 0 to 1"]),
        (|g| BatchNorm::new().apply(&list(g)), &["expected [batch, ..., channels]"]),
        (|g| LayerNorm::new().apply(&list(g)), &["layer `layer_normalization` got `list`"]),
        (|g| Embedding::new(0, 3).apply(&ids(g)), &["a table of [0, 3]"]),
        (|g| Embedding::new(5, 3).apply(&rows(g)), &["indices are f32, expected i32 or i64"]),
        (|g| Activation::Relu.apply(&ids(g).equal(1)), &["not defined on bool"]),
        (
            |g| {
                let x = Dense::new(4).name("same").apply(&rows(g));
                Dense::new(4).name("same").apply(&x)
            },
            &["variable `same/kernel` exists already; it was made at", "help:"],
        ),
    ];
    for (build, parts) in cases {
        let g = Graph::new();
        let _ = build(&g);
        expect(&g, parts);
    }
}

#[test]
fn losses_say_what_they_got() {
    let cases: &[Case] = &[
        (
            |g| MeanSquaredError::new().apply(&list(g), &rows(g)),
            &["mean_squared_error of labels `list` f32[batch] and predictions `rows` f32[batch, 4]", "expand_dims(-1)"],
        ),
        (|g| AbsoluteError::new().apply(&images(g), &rows(g)), &["expected the same shape"]),
        (|g| LogPoisson::new().apply(&images(g), &rows(g)), &["log_poisson_loss of labels", "expected the same shape"]),
        (|g| Huber::new().delta(0.0).apply(&rows(g), &rows(g)), &["huber delta 0, expected above 0"]),
        (
            |g| SigmoidCrossEntropy::new().label_smoothing(1.5).apply(&rows(g), &rows(g)),
            &["label smoothing 1.5, expected 0 to 1"],
        ),
        (
            |g| SoftmaxCrossEntropy::new().label_smoothing(f64::NAN).apply(&rows(g), &rows(g)),
            &["label smoothing NaN, expected 0 to 1"],
        ),
        (|g| SigmoidCrossEntropy::new().apply(&list(g), &rows(g)), &["sigmoid_cross_entropy_loss of labels"]),
        (|g| SoftmaxCrossEntropy::new().apply(&ids(g), &images(g)), &["softmax_cross_entropy_loss of labels `ids`"]),
        (
            |g| SparseSoftmaxCrossEntropy::new().apply(&rows(g), &rows(g)),
            &["expected one class number for each row", "SoftmaxCrossEntropy"],
        ),
        (|g| SparseSoftmaxCrossEntropy::new().apply(&list(g), &rows(g)), &["labels", "expected i32 or i64"]),
        (
            |g| MeanSquaredError::new().apply_weighted(&rows(g), &rows(g), &g.constant([1.0f32, 2.0]).expand_dims(0)),
            &["weights", "f32[1, 2] for losses [batch, 4]", "help: expected a number"],
        ),
    ];
    for (build, parts) in cases {
        let g = Graph::new();
        let _ = build(&g);
        expect(&g, parts);
    }
}

#[test]
fn a_label_that_is_no_class_is_named() {
    let g = Graph::new();
    let labels = g.placeholder("labels", DType::I64, [Dim::BATCH]);
    let logits = rows(&g);
    let loss = SparseSoftmaxCrossEntropy::new().apply(&labels, &logits);
    let feeds = [(&labels, Array::from([1i64, 4])), (&logits, Array::from_vec([2, 4], vec![0.0f32; 8]).unwrap())];
    let text = Session::new(&g).unwrap().run(&[&loss], &feeds).unwrap_err().to_string();
    assert!(text.contains("label 4 in row 1 is not a class of 0..4"), "{text}");
}

#[test]
fn an_id_that_is_not_in_the_table_is_named() {
    let g = Graph::new();
    let ids = ids(&g);
    let y = Embedding::new(5, 3).apply(&ids);
    let feeds = [(&ids, Array::from_vec([1, 4], vec![0i64, 1, 7, 2]).unwrap())];
    let text = Session::new(&g).unwrap().run(&[&y], &feeds).unwrap_err().to_string();
    assert!(text.contains('7') && text.contains("embedding/"), "{text}");
}

#[test]
fn a_shared_layer_belongs_to_one_graph() {
    let (first, second) = (Graph::new(), Graph::new());
    let shared = Shared::new(Dense::new(2));
    let _ = shared.apply(&rows(&first));
    assert!(shared.apply(&rows(&second)).is_poisoned());
    expect(&second, &["a shared dense is applied to `rows`", "another graph", "Shared::new inside the model function"]);
    first.check().unwrap();
}

/// The first error stays, and what follows from it is silent.
#[test]
fn layers_after_an_error_are_silent() {
    let g = Graph::new();
    let wrong = Dense::new(3).apply(&list(&g));
    let y = Dropout::new(0.5).apply(&BatchNorm::new().apply(&Conv2d::new(3, 2).apply(&wrong)));
    let loss = MeanSquaredError::new().apply_weighted(&y, &y, &y);
    assert!(Shared::new(Embedding::new(3, 2)).apply(&loss).is_poisoned());
    expect(&g, &["layer `dense` got"]);
    assert!(g.updates().is_empty() && g.regularization_losses().is_empty());
}
