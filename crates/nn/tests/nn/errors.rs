//! Wrong inputs and options: an error that says what, where (this file) and how to fix it; never a
//! panic.

use estimand_engine::Session;
use estimand_graph::{Graph, Initializer, Tensor};
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

fn check(cases: &[Case]) {
    for (build, parts) in cases {
        let g = Graph::new();
        let _ = build(&g);
        expect(&g, parts);
    }
}

fn rows(g: &Graph) -> Tensor {
    g.placeholder("rows", DType::F32, [Dim::BATCH, 4.into()])
}

fn list(g: &Graph) -> Tensor {
    g.placeholder("list", DType::F32, [Dim::BATCH])
}

fn images(g: &Graph) -> Tensor {
    g.placeholder("images", DType::F32, [Dim::BATCH, 4.into(), 4.into(), 2.into()])
}

fn sequences(g: &Graph) -> Tensor {
    g.placeholder("sequences", DType::F32, [Dim::BATCH, 6.into(), 2.into()])
}

/// Images of any width.
fn wide(g: &Graph) -> Tensor {
    g.placeholder("wide", DType::F32, [Dim::BATCH, 4.into(), Graph::ANY, 2.into()])
}

fn steps(g: &Graph) -> Tensor {
    g.placeholder("steps", DType::F32, [Dim::BATCH, 5.into(), 2.into()])
}

fn ids(g: &Graph) -> Tensor {
    g.placeholder("ids", DType::I64, [Dim::BATCH, 4.into()])
}

#[test]
fn layers_say_what_they_got() {
    let cases: &[Case] = &[
        (|g| Dense::new(3).apply(&list(g)), &["layer `dense` got `list` f32[batch]", "expected [batch, ..., inputs]"]),
        (|g| Dense::new(0).apply(&rows(g)), &["0 units", "in layer `dense`"]),
        (
            |g| Dense::new(3).apply(&ids(g)),
            &["layer `dense` got `ids` i64[batch, 4]; expected f32", "help: call .cast"],
        ),
        (
            |g| Dense::new(3).apply(&g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY])),
            &["layer `dense` got `x` f32[batch, s1], whose last size is not known", "help:"],
        ),
        (|g| Conv2d::new(3, 2).apply(&rows(g)), &["layer `conv2d` got `rows`", "[batch, height, width, channels]"]),
        (|g| Conv2d::new(3, (0, 2)).apply(&images(g)), &["3 filters of 0 x 2"]),
        (|g| Conv2d::new(3, 2).strides(0).apply(&images(g)), &["strides are [0, 0]", "at least 1"]),
        (|g| MaxPool2d::new(2).apply(&rows(g)), &["expected [batch, height, width, channels]"]),
        (|g| AvgPool2d::new(0).apply(&images(g)), &["the window is 0"]),
        (|g| GlobalMaxPool2d::new().apply(&rows(g)), &["layer `global_max_pooling2d` got `rows`"]),
        (|g| GlobalAvgPool2d::new().apply(&rows(g)), &["layer `global_average_pooling2d` got `rows`"]),
        (|g| Flatten::new().apply(&g.constant(1.0f32)), &["layer `flatten` got", "expected [batch, ...]"]),
        (|g| Reshape::new([3]).apply(&g.constant([1.0f32, 2.0]).expand_dims(0)), &["cannot reshape [1, 2] to [1, 3]"]),
        (|g| Reshape::new([-2]).apply(&rows(g)), &["a size of the new shape is -2"]),
        (|g| Reshape::new([2]).apply(&g.constant(1.0f32)), &["layer `reshape` got"]),
        (|g| Dropout::new(1.0).apply(&rows(g)), &["dropout rate is 1; expected 0 <= rate < 1"]),
        (|g| Dropout::new(-0.1).apply(&LayerInputs::of(&rows(g)).training(false)), &["dropout rate is -0.1"]),
        (|g| Dropout::new(0.5).noise_shape([None]).apply(&rows(g)), &["the noise shape has 1 sizes for `rows`"]),
        (|g| Dropout::new(0.5).noise_shape([None, Some(3)]).apply(&rows(g)), &["cannot be broadcast"]),
        (|g| BatchNorm::new().axis(2).apply(&rows(g)), &["`rows` f32[batch, 4] has no axis 2", "in layer"]),
        (|g| BatchNorm::new().momentum(1.5).apply(&rows(g)), &["momentum is 1.5; expected 0 to 1"]),
        (|g| BatchNorm::new().apply(&list(g)), &["expected [batch, ..., channels]"]),
        (|g| LayerNorm::new().apply(&list(g)), &["layer `layer_normalization` got `list`"]),
        (
            |g| LayerNorm::new().axes([0]).apply(&rows(g)),
            &["axes [0] do not fit `rows`", "after the batch", "in layer"],
        ),
        (|g| LayerNorm::new().axes([1, -1]).apply(&rows(g)), &["axes [1, -1] do not fit `rows`", "each at most once"]),
        (|g| LayerNorm::new().axes([2]).apply(&wide(g)), &["axes [2] of `wide`", "not all known", "help:"]),
        (|g| Embedding::new(0, 3).apply(&ids(g)), &["the table has the shape [0, 3]"]),
        (
            |g| Embedding::new(5, 3).apply(&g.placeholder("words", DType::Str, [4])),
            &["indices are string, expected i32 or i64"],
        ),
        (|g| Lstm::new(0).apply(&steps(g)), &["0 units", "in layer `lstm`"]),
        (|g| Gru::new(3).apply(&rows(g)), &["layer `gru` got `rows` f32[batch, 4]; expected [batch, time, inputs]"]),
        (|g| SimpleRnn::new(3).dropout(1.0).apply(&steps(g)), &["dropout rate is 1; expected 0 <= rate < 1"]),
        (|g| Gru::new(3).recurrent_dropout(-0.5).apply(&steps(g)), &["recurrent dropout rate is -0.5"]),
        (|g| Gru::new(3).apply(&LayerInputs::of(&steps(g)).mask(&steps(g))), &["the mask is f32, expected bool"]),
        (
            |g| Gru::new(3).apply(&LayerInputs::of(&steps(g)).mask(&rows(g).greater(0.0))),
            &["the mask is [batch, 4], expected [batch, 5]"],
        ),
        (
            |g| Lstm::new(4).apply(&LayerInputs::of(&steps(g)).initial_state(&[rows(g)])),
            &["got 1 initial states; expected 2"],
        ),
        (
            |g| Bidirectional::new(Gru::new(4)).apply(&LayerInputs::of(&steps(g)).initial_state(&[rows(g)])),
            &["got 1 initial states; expected 2"],
        ),
        (
            |g| Gru::new(3).go_backwards(true).apply(&LayerInputs::of(&steps(g)).mask(&list(g).greater(0.0))),
            &["axis 1 is out of range for a tensor with 1 axes"],
        ),
        (
            |g| Gru::new(3).apply(&LayerInputs::of(&steps(g)).initial_state(&[rows(g)])),
            &["the first state is [batch, 4], expected [batch, 3]"],
        ),
        (
            |g| Lstm::new(3).bias_initializer(Initializer::HeNormal).apply(&steps(g)),
            &["the bias initializer is HeNormal", "help: call .unit_forget_bias(false)", "in layer `lstm_cell`"],
        ),
        (
            |g| {
                let x = g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY, 2.into()]);
                SimpleRnn::new(3).activation(Activation::Gelu).apply(&x)
            },
            &["the number of steps of", "is known only at run time", "help: declare the size of its time axis"],
        ),
        (|g| Bidirectional::new(Gru::new(3)).apply(&rows(g)), &["layer `forward_gru` got `rows`"]),
        (|g| TimeDistributed::new(Dense::new(3)).apply(&rows(g)), &["`rows` f32[batch, 4] has no steps"]),
        (|g| TimeDistributed::new(Dense::new(0)).apply(&steps(g)), &["0 units"]),
        (|g| Masking::new(0.0).apply(&list(g)), &["layer `masking` got `list`"]),
        (
            |g| MultiHeadAttention::new(2, 0).apply(&steps(g)),
            &["num_heads is 2, key_dim is 0", "help: set each to at least 1"],
        ),
        (
            |g| MultiHeadAttention::new(2, 3).apply(&rows(g)),
            &["attention got `rows`", "expected f32 [batch, steps, inputs]"],
        ),
        (|g| MultiHeadAttention::new(2, 3).dropout(1.0).apply(&steps(g)), &["dropout rate is 1"]),
        (
            |g| MultiHeadAttention::new(2, 3).apply(&LayerInputs::of(&steps(g)).attention_mask(&rows(g).greater(0.0))),
            &["cannot be broadcast"],
        ),
        (|g| Activation::Relu.apply(&ids(g).equal(1)), &["not defined on bool"]),
        (
            |g| {
                let x = Dense::new(4).name("same").apply(&rows(g));
                Dense::new(4).name("same").apply(&x)
            },
            &["variable `same/kernel` already exists; it was created at", "help:"],
        ),
    ];
    check(cases);
}

#[test]
fn convolutions_say_what_they_got() {
    let cases: &[Case] = &[
        (
            |g| Conv2d::new(3, 2).strides(2).dilation(2).apply(&images(g)),
            &["strides are [2, 2] and the dilation is [2, 2]", "1 for one"],
        ),
        (
            |g| Conv2d::new(4, 2).groups(3).apply(&images(g)),
            &["groups is 3", "a divisor of the 2 channels and the 4 filters"],
        ),
        (|g| Conv2d::new(4, 2).groups(0).apply(&images(g)), &["groups is 0"]),
        (|g| Conv1d::new(3, 2).apply(&rows(g)), &["layer `conv1d` got `rows`", "expected [batch, steps, channels]"]),
        (|g| Conv1d::new(0, 2).apply(&sequences(g)), &["0 filters of 2 steps"]),
        (
            |g| Conv1d::new(3, 2).strides(2).dilation(3).apply(&sequences(g)),
            &["strides are [2] and the dilation is [3]"],
        ),
        (|g| Conv1d::new(3, 2).groups(2).apply(&sequences(g)), &["groups is 2", "2 channels and the 3 filters"]),
        (|g| Conv1d::new(3, 2).causal().dilation(usize::MAX).apply(&sequences(g)), &["overflows"]),
        (|g| DepthwiseConv1d::new(2).apply(&rows(g)), &["layer `depthwise_conv1d` got `rows`"]),
        (
            |g| DepthwiseConv1d::new(2).depth_multiplier(0).apply(&sequences(g)),
            &["0 filters for each channel of 2 steps"],
        ),
        (|g| SeparableConv1d::new(2, 0).apply(&sequences(g)), &["2 filters of 0 steps"]),
        (|g| SeparableConv1d::new(2, 2).depth_multiplier(0).apply(&sequences(g)), &["the depth multiplier is 0"]),
        (|g| SeparableConv1d::new(2, 2).causal().dilation(usize::MAX).apply(&sequences(g)), &["overflows"]),
        (|g| Conv1dTranspose::new(2, 2).apply(&rows(g)), &["layer `conv1d_transpose` got `rows`"]),
        (
            |g| Conv1dTranspose::new(2, 3).strides(2).output_padding(2).apply(&sequences(g)),
            &["the output padding is 2 and the stride is 2; expected a padding below"],
        ),
        (|g| Conv1dTranspose::new(2, 2).strides(usize::MAX).apply(&sequences(g)), &["too large"]),
        (|g| DepthwiseConv2d::new(2).apply(&rows(g)), &["layer `depthwise_conv2d` got `rows`"]),
        (|g| DepthwiseConv2d::new(2).depth_multiplier(0).apply(&images(g)), &["0 filters for each channel of 2 x 2"]),
        (
            |g| DepthwiseConv2d::new(2).strides(2).dilation(2).apply(&images(g)),
            &["strides are [2, 2] and the dilation is"],
        ),
        (|g| SeparableConv2d::new(2, 2).apply(&sequences(g)), &["layer `separable_conv2d` got `sequences`"]),
        (|g| SeparableConv2d::new(2, 2).depth_multiplier(0).apply(&images(g)), &["the depth multiplier is 0"]),
        (|g| Conv2dTranspose::new(2, 0).apply(&images(g)), &["2 filters of 0 x 0"]),
        (|g| Conv2dTranspose::new(2, 3).apply(&list(g)), &["layer `conv2d_transpose` got `list`"]),
        (
            |g| Conv2dTranspose::new(2, 3).strides(2).output_padding(2).apply(&images(g)),
            &["the output padding is 2 and the stride is 2; expected a padding below"],
        ),
        (
            |g| Conv2dTranspose::new(2, 4).strides(2).same().output_padding(0).apply(&images(g)),
            &["an output padding of 0, axis 1 of `images`", "becomes 6", "turns back to 4", "help:"],
        ),
        (|g| Conv2dTranspose::new(2, 2).apply(&wide(g)), &["the size of axis 2 of `wide`", "is not known", "help:"]),
        (|g| Conv2dTranspose::new(2, 2).strides(usize::MAX).apply(&images(g)), &["too large"]),
    ];
    check(cases);
}

#[test]
fn layers_without_weights_say_what_they_got() {
    let cases: &[Case] = &[
        (|g| MaxPool1d::new(2).apply(&rows(g)), &["layer `max_pooling1d` got `rows`", "[batch, steps, channels]"]),
        (|g| AvgPool1d::new(0).apply(&sequences(g)), &["the window is 0"]),
        (|g| AvgPool1d::new(2).strides(0).apply(&sequences(g)), &["stride 0"]),
        (|g| GlobalMaxPool1d::new().apply(&images(g)), &["layer `global_max_pooling1d` got `images`"]),
        (|g| GlobalAvgPool1d::new().apply(&rows(g)), &["layer `global_average_pooling1d` got `rows`"]),
        (
            |g| Permute::new([1, 1]).apply(&sequences(g)),
            &["axes [1, 1] does not fit `sequences`", "each of 1 to 2 once"],
        ),
        (|g| Permute::new([0, 1]).apply(&sequences(g)), &["axes [0, 1]"]),
        (|g| RepeatVector::new(2).apply(&sequences(g)), &["layer `repeat_vector` got", "expected [batch, features]"]),
        (|g| ZeroPadding1d::new(1).apply(&rows(g)), &["layer `zero_padding1d` got `rows`"]),
        (|g| ZeroPadding2d::new(usize::MAX).apply(&images(g)), &["overflows"]),
        (|g| ZeroPadding2d::new(1).apply(&sequences(g)), &["layer `zero_padding2d` got `sequences`"]),
        (|g| Cropping1d::new(1).apply(&rows(g)), &["layer `cropping1d` got `rows`"]),
        (|g| Cropping1d::new((5, 1)).apply(&sequences(g)), &["cropping by [(5, 1)] leaves nothing of `sequences`"]),
        (|g| Cropping2d::new(2).apply(&images(g)), &["cropping by [(2, 2), (2, 2)] leaves nothing of `images`"]),
        (|g| Cropping2d::new((usize::MAX, 1)).apply(&images(g)), &["leaves nothing of `images`"]),
        (|g| UpSampling1d::new(2).apply(&images(g)), &["layer `up_sampling1d` got `images`"]),
        (|g| UpSampling1d::new(0).apply(&sequences(g)), &["the size of up_sampling1d is 0"]),
        (|g| UpSampling2d::new((0, 1)).apply(&images(g)), &["the size of up_sampling2d is 0 x 1"]),
        (|g| UpSampling2d::new(2).apply(&wide(g)), &["up_sampling2d got `wide`", "not known", "help:"]),
        (|g| SpatialDropout1d::new(0.5).apply(&images(g)), &["layer `spatial_dropout1d` got `images`"]),
        (|g| SpatialDropout2d::new(1.0).apply(&images(g)), &["dropout rate is 1"]),
        (|g| GaussianNoise::new(-1.0).apply(&rows(g)), &["the stddev of gaussian_noise is -1; expected 0 or more"]),
        (|g| GaussianDropout::new(1.0).apply(&rows(g)), &["the rate of gaussian_dropout is 1; expected 0 <= rate < 1"]),
        (
            |g| AlphaDropout::new(f64::NAN).apply(&LayerInputs::of(&rows(g)).training(false)),
            &["the rate of alpha_dropout is NaN"],
        ),
        (|g| LeakyRelu::new(-0.1).apply(&rows(g)), &["the alpha of leaky_re_lu is -0.1; expected 0 or more"]),
        (|g| Elu::new(f64::NAN).apply(&rows(g)), &["the alpha of elu is NaN"]),
        (|g| ThresholdedRelu::new(-1.0).apply(&rows(g)), &["the theta of thresholded_re_lu is -1"]),
        (|g| Relu::new().max_value(-1.0).apply(&rows(g)), &["the max_value of re_lu is -1"]),
        (|g| Relu::new().negative_slope(-1.0).apply(&rows(g)), &["the negative_slope of re_lu is -1"]),
        (|g| Relu::new().threshold(f64::INFINITY).apply(&rows(g)), &["the threshold of re_lu is inf"]),
        (|g| Softmax::new().axis(2).apply(&rows(g)), &["layer `softmax` got `rows`", "has no axis 2"]),
        (|g| PRelu::new().apply(&list(g)), &["layer `p_re_lu` got `list`"]),
        (
            |g| PRelu::new().shared_axes([0]).apply(&rows(g)),
            &["axis 0 of `rows`", "cannot be shared", "expected 1 to 1"],
        ),
        (
            |g| PRelu::new().apply(&wide(g)),
            &["are not all known, so the slopes cannot be made", "help: share the slopes"],
        ),
    ];
    check(cases);
}

#[test]
fn losses_say_what_they_got() {
    let cases: &[Case] = &[
        (
            |g| MeanSquaredError::new().apply(&list(g), &rows(g)),
            &[
                "mean_squared_error got the labels `list` f32[batch] and the predictions `rows` f32[batch, 4]",
                "expand_dims(-1)",
            ],
        ),
        (|g| AbsoluteError::new().apply(&images(g), &rows(g)), &["expected the same shape"]),
        (
            |g| LogPoisson::new().apply(&images(g), &rows(g)),
            &["log_poisson_loss got the labels", "expected the same shape"],
        ),
        (
            |g| LogLoss::new().epsilon(-1.0).apply(&rows(g), &rows(g)),
            &["the epsilon of log_loss is -1; expected 0 <= epsilon < 1"],
        ),
        (|g| Hinge::new().apply(&list(g), &rows(g)), &["hinge_loss got the labels `list`"]),
        (|g| CosineSimilarity::new().apply(&list(g), &rows(g)), &["cosine_similarity got the labels `list`"]),
        (
            |g| Huber::new().delta(0.0).apply(&rows(g), &rows(g)),
            &["the delta of huber is 0; expected a number above 0"],
        ),
        (
            |g| SigmoidCrossEntropy::new().label_smoothing(1.5).apply(&rows(g), &rows(g)),
            &["label smoothing is 1.5; expected 0 to 1"],
        ),
        (
            |g| SoftmaxCrossEntropy::new().label_smoothing(f64::NAN).apply(&rows(g), &rows(g)),
            &["label smoothing is NaN; expected 0 to 1"],
        ),
        (|g| SigmoidCrossEntropy::new().apply(&list(g), &rows(g)), &["sigmoid_cross_entropy_loss got the labels"]),
        (
            |g| SoftmaxCrossEntropy::new().apply(&ids(g), &images(g)),
            &["softmax_cross_entropy_loss got the labels `ids`"],
        ),
        (
            |g| SparseSoftmaxCrossEntropy::new().apply(&rows(g), &rows(g)),
            &["expected one class number for each row", "SoftmaxCrossEntropy"],
        ),
        (|g| SparseSoftmaxCrossEntropy::new().apply(&list(g), &rows(g)), &["labels", "expected i32 or i64"]),
        (
            |g| MeanSquaredError::new().apply_weighted(&rows(g), &rows(g), &g.constant([1.0f32, 2.0]).expand_dims(0)),
            &["the weights", "f32[1, 2] do not fit the losses [batch, 4]", "help: give one number"],
        ),
    ];
    check(cases);
}

#[test]
fn a_label_that_is_no_class_is_named() {
    let g = Graph::new();
    let labels = g.placeholder("labels", DType::I64, [Dim::BATCH]);
    let logits = rows(&g);
    let loss = SparseSoftmaxCrossEntropy::new().apply(&labels, &logits);
    let feeds = [(&labels, Array::from([1i64, 4])), (&logits, Array::from_vec([2, 4], vec![0.0f32; 8]).unwrap())];
    let text = Session::new(&g).unwrap().run(&[&loss], &feeds).unwrap_err().to_string();
    assert!(text.contains("label 4 in row 1 is not a class; expected 0 or more and less than 4"), "{text}");
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

fn words(g: &Graph) -> Tensor {
    g.placeholder("words", DType::Str, [Dim::BATCH, 3.into()])
}

#[test]
fn preprocessing_layers_say_what_they_got() {
    check(&[
        (|g| Normalization::new().apply(&rows(g)), &["layer `normalization`", "call adapt"]),
        (|g| Normalization::new().moments([0.0; 3], [1.0; 3]).apply(&rows(g)), &["3 means", "expected 4"]),
        (|g| Normalization::new().moments([0.0], [-1.0]).apply(&rows(g)), &["a variance is -1"]),
        (|g| Normalization::new().axis(0).weights().apply(&rows(g)), &["has no axis 0"]),
        (|g| Rescaling::per_channel([1.0; 3]).apply(&rows(g)), &["layer `rescaling`", "3 factors", "expected 4"]),
        (|g| Rescaling::new(1.0).offsets([1.0; 3]).apply(&rows(g)), &["3 offsets", "expected 4"]),
        (|g| StringLookup::new().apply(&words(g)), &["the vocabulary is not set", "call adapt"]),
        (|g| StringLookup::new().vocabulary(["a", "a"]).apply(&words(g)), &["string_lookup"]),
        (|g| StringLookup::new().vocabulary(["a"]).apply(&rows(g)), &["expected string"]),
        (|g| StringLookup::new().vocabulary(["a", "b"]).max_tokens(2).apply(&words(g)), &["room for 1"]),
        (|g| StringLookup::new().vocabulary(["", "a"]).mask_token("").apply(&words(g)), &["mask token"]),
        (
            |g| StringLookup::new().vocabulary(["a"]).output_mode(OutputMode::TfIdf).apply(&words(g)),
            &["the weights of the terms are not set"],
        ),
        (
            |g| StringLookup::new().vocabulary(["a"]).output_mode(OutputMode::OneHot).apply(&words(g)),
            &["output mode OneHot got", "expected [batch] or [batch, 1]"],
        ),
        (|g| IntegerLookup::new().vocabulary([1]).apply(&words(g)), &["expected i64"]),
        (|g| Hashing::new(0).apply(&words(g)), &["the number of bins is 0"]),
        (|g| Hashing::new(3).apply(&rows(g)), &["expected strings or integers"]),
        (|g| Hashing::new(3).mask_integer(1).apply(&words(g)), &["the mask value is 1"]),
        (|g| CategoryEncoding::new(0).apply(&rows(g)), &["0 tokens"]),
        (|g| Discretization::bins(3).apply(&rows(g)), &["the boundaries are not set"]),
        (|g| Discretization::new([1.0, 0.0]).apply(&rows(g)), &["boundary 1 comes before 0"]),
        (|g| HashedCrossing::new(3).apply(&[words(g), words(g)]), &["an input is `words`"]),
        (|g| TextVectorization::new().vocabulary(["a"]).apply(&words(g)), &["the text is", "split(Split::No)"]),
        (|g| TextVectorization::new().vocabulary(["a"]).apply(&rows(g)), &["expected strings"]),
        (|g| Resizing::new(0, 2).apply(&images(g)), &["the size is 0 x 2"]),
        (|g| CenterCrop::new(2, 2).apply(&rows(g)), &["layer `center_crop` got `rows`"]),
        (|g| RandomZoom::new((0.5, 0.1)).apply(&images(g)), &["the factors do not fit"]),
        (|g| RandomContrast::new(-0.5).apply(&images(g)), &["the factor is (-0.5, -0.5)"]),
        (|g| RandomBrightness::new(2.0).apply(&images(g)), &["a factor is from -1 to 1"]),
    ]);
}

#[test]
fn other_new_layers_say_what_they_got() {
    check(&[
        (|g| GroupNorm::new(3).apply(&rows(g)), &["4 channels cannot be cut into 3 groups"]),
        (|g| GroupNorm::new(2).axis(0).apply(&rows(g)), &["no axis 0 after the batch"]),
        (|g| UnitNormalization::new().axes([]).apply(&rows(g)), &["no axes"]),
        (|g| Attention::new().apply(&[rows(g), rows(g)]), &["expected f32 [batch, steps, dim]"]),
        (|g| AdditiveAttention::new().dropout(1.0).apply(&[steps(g), steps(g)]), &["the dropout rate is 1"]),
        (|g| Conv3d::new(2, 2).apply(&images(g)), &["expected [batch, depth, height, width, channels]"]),
        (|g| MaxPool3d::new(0).apply(&images(g)), &["expected at least 1"]),
    ]);
}
