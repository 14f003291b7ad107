//! Every layer, loss and column of the `ALL_*` lists through its contract, and contracts that are
//! broken on purpose.

use estimand_graph::{Axes, Combiner, Initializer, Tensor};
use estimand_nn::column::*;
use estimand_nn::layer::{Build, Config, LayerCall};
use estimand_nn::testing::{check_column, check_layer, check_loss, spread};
use estimand_nn::*;
use estimand_tensor::{Array, Batch, DType, Ragged, Result};

/// An input that a layer of a kind takes.
fn input(kind: &str) -> Array {
    match kind {
        "embedding" => Array::from_vec([3, 2], vec![0i64, 4, 1, 1, 2, 3]).unwrap(),
        "integer_lookup" | "category_encoding" => Array::from_vec([3, 2], vec![0i64, 4, 1, 1, 2, 3]).unwrap(),
        "string_lookup" | "hashing" => Array::from_strings([3, 2], ["a", "b", "", "zz", "b", "b"]).unwrap(),
        "text_vectorization" => Array::from_strings([3], ["a b!", "", "c a b b"]).unwrap(),
        "permute" => spread(&[3, 4, 2]).unwrap(),
        "resizing" | "center_crop" => spread(&[3, 4, 4, 2]).unwrap(),
        _ if kind.starts_with("random_") => spread(&[3, 4, 4, 2]).unwrap(),
        "conv_lstm1d" => spread(&[2, 3, 4, 2]).unwrap(),
        "conv_lstm2d" => spread(&[2, 3, 3, 3, 2]).unwrap(),
        "conv_lstm3d" => spread(&[2, 2, 3, 2, 2, 2]).unwrap(),
        _ if kind.contains("3d") => spread(&[2, 3, 3, 3, 2]).unwrap(),
        _ if kind.contains("1d") => spread(&[3, 4, 2]).unwrap(),
        _ if kind.contains("2d") => spread(&[3, 4, 4, 2]).unwrap(),
        "bidirectional"
        | "gru"
        | "lstm"
        | "rnn"
        | "simple_rnn"
        | "multi_head_attention"
        | "time_distributed"
        | "masking" => spread(&[3, 4, 2]).unwrap(),
        _ => spread(&[3, 5]).unwrap(),
    }
}

#[test]
fn every_layer_keeps_the_contract() -> Result<()> {
    for make in ALL_LAYERS {
        let layer = make();
        // From a state of 0, one step of a cell does not train its recurrent kernel.
        let is_cell = layer.kind().ends_with("_cell") || layer.kind().ends_with("_cells");
        if layer.n_inputs().contains(&1) && !is_cell {
            check_layer(&*layer, &input(layer.kind()))?;
        }
    }
    Ok(())
}

#[test]
fn layers_with_options_keep_the_contract() -> Result<()> {
    let rows = spread(&[4, 3])?;
    let (sequences, small, images) = (spread(&[2, 4, 2])?, spread(&[2, 3, 3, 2])?, spread(&[2, 5, 4, 3])?);
    for activation in ALL_ACTIVATIONS {
        check_layer(&Dense::new(4).activation(activation).name("hidden"), &rows)?;
    }
    check_layer(&Dense::new(2).use_bias(false).kernel_regularizer(Regularizer::l1_l2(0.1, 0.2)), &rows)?;
    check_layer(
        &Dense::new(2).bias_initializer(Initializer::Ones).activity_regularizer(Regularizer::l2(0.1)),
        &spread(&[2, 3, 2])?,
    )?;
    check_layer(&Conv2d::new(2, (2, 3)).same().strides(2).relu().kernel_initializer(Initializer::HeNormal), &images)?;
    check_layer(&Conv2d::new(4, 2).groups(2), &small)?;
    check_layer(&Conv1d::new(2, 3).causal().dilation(2).tanh(), &sequences)?;
    check_layer(&Conv1d::new(2, 3).same().strides(2).groups(2), &sequences)?;
    check_layer(&DepthwiseConv1d::new(2).depth_multiplier(2).same().dilation(2), &sequences)?;
    check_layer(&SeparableConv1d::new(2, 3).depth_multiplier(2).causal().strides(2).relu(), &sequences)?;
    check_layer(&Conv1dTranspose::new(2, 3).strides(2).same().output_padding(1), &sequences)?;
    check_layer(&DepthwiseConv2d::new(2).depth_multiplier(2).same().dilation(2), &small)?;
    check_layer(&SeparableConv2d::new(2, 3).depth_multiplier(2).strides(2).relu(), &small)?;
    check_layer(&Conv2dTranspose::new(2, 3).strides(2).same().output_padding(1), &small)?;
    check_layer(&Conv2dTranspose::new(2, (1, 2)).strides(3).sigmoid(), &small)?;
    check_layer(&UpSampling2d::new((2, 3)).bilinear(), &small)?;
    check_layer(&PRelu::new().shared_axes([1, 2]).alpha_initializer(Initializer::Constant(0.3)), &small)?;
    check_layer(&Relu::new().max_value(0.6).negative_slope(0.1).threshold(0.2), &rows)?;
    check_layer(&Softmax::new().axis(1), &small)?;
    check_layer(&GlobalMaxPool2d::new().keep_dims(true), &small)?;
    check_layer(&MaxPool1d::new(3).strides(1).same(), &sequences)?;
    check_layer(&MaxPool2d::new(3).strides(1).same(), &images)?;
    check_layer(&AvgPool2d::new((2, 1)).same(), &images)?;
    check_layer(&BatchNorm::new(), &images)?;
    check_layer(&BatchNorm::new().axis(1).center(false).momentum(0.5), &images)?;
    check_layer(&LayerNorm::new().scale(false), &images)?;
    check_layer(&LayerNorm::new().axes([1, -1]), &small)?;
    check_layer(&Dropout::new(0.3).noise_shape([None, Some(1), Some(1), None]), &images)?;
    let steps = spread(&[2, 3, 2])?;
    check_layer(&Lstm::new(2).dropout(0.3).recurrent_dropout(0.4).return_sequences(true).go_backwards(true), &steps)?;
    check_layer(&Gru::new(2).reset_after(false).recurrent_regularizer(Regularizer::l2(0.1)).use_bias(false), &steps)?;
    check_layer(&SimpleRnn::new(2).activation(Activation::Softmax).return_sequences(true), &steps)?;
    check_layer(&Bidirectional::new(Gru::new(2).return_sequences(true)).merge_mode(MergeMode::Mul), &steps)?;
    let cells = || StackedRnnCells::new().cell(GruCell::new(2).dropout(0.3)).cell(LstmCell::new(3));
    check_layer(&Rnn::new(cells()).return_sequences(true).go_backwards(true), &steps)?;
    check_layer(&Bidirectional::new(Rnn::new(SimpleRnnCell::new(2))).merge_mode(MergeMode::Sum), &steps)?;
    let films = spread(&[2, 3, 3, 4, 2])?;
    check_layer(&ConvLstm2d::new(2, 2).same().dropout(0.2).recurrent_dropout(0.3).return_sequences(true), &films)?;
    check_layer(&Bidirectional::new(ConvLstm2d::new(2, 2)), &films)?;
    let signals = spread(&[2, 3, 4, 2])?;
    check_layer(&ConvLstm1d::new(2, 2).same().dropout(0.2).recurrent_dropout(0.3).return_sequences(true), &signals)?;
    check_layer(&Bidirectional::new(ConvLstm1d::new(2, 2)), &signals)?;
    check_layer(&MultiHeadAttention::new(2, 2).dropout(0.2).output_dim(3), &steps)?;
    check_layer(&Embedding::new(5, 2).regularizer(Regularizer::l2(0.1)), &input("embedding"))
}

#[test]
fn every_loss_keeps_the_contract() -> Result<()> {
    let logits = spread(&[5, 3])?;
    let unit = |v: &f32| v * 0.4 + 0.5;
    let probabilities = Array::from_vec([5, 3], logits.as_slice::<f32>()?.iter().map(unit).collect())?;
    let one_hot = [[1.0f32, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
    let one_hot = Array::from_vec([5, 3], one_hot.concat())?;
    let classes = Array::from_vec([5], vec![0i64, 2, 1, 0, 2])?;
    for make in ALL_LOSSES {
        let loss = make();
        let labels = if loss.name().starts_with("sparse") { &classes } else { &one_hot };
        let of_probabilities = ["kl_divergence", "log_loss", "mean_squared_logarithmic_error", "poisson"];
        let has_probabilities =
            of_probabilities.contains(&loss.name()) || format!("{loss:?}").contains("probabilities: true");
        let predictions = if has_probabilities { &probabilities } else { &logits };
        check_loss(&*loss, labels, predictions)?;
    }
    for reduction in Reduction::ALL {
        check_loss(&MeanSquaredError::new().reduction(reduction), &one_hot, &logits)?;
        check_loss(&SparseSoftmaxCrossEntropy::new().reduction(reduction), &classes, &logits)?;
    }
    check_loss(&Huber::new().delta(0.3), &one_hot, &logits)?;
    check_loss(&SigmoidCrossEntropy::new().label_smoothing(0.2), &one_hot, &logits)?;
    check_loss(&SoftmaxCrossEntropy::new().label_smoothing(0.2), &one_hot, &logits)
}

/// Features as all columns of the list read them: dense with missing values, and ragged with an
/// empty row.
fn batches() -> Result<[Batch; 2]> {
    let dense = Batch::new()
        .with_feature("x", Array::from([-1f32, 0.25, 3.0, 0.5]))?
        .with_feature("id", Array::from_vec([4, 2], vec![0i64, 3, -1, -1, 2, 2, 1, -1])?)?
        .with_feature("word", Array::from_strings([4, 2], ["a", "b", "", "", "c", "a", "", "z"])?)?
        .with_feature("weight", Array::from_vec([4, 2], vec![1f32, 2.0, 0.0, 0.0, 0.5, -1.0, 2.0, 0.0])?)?;
    let splits = [0, 2, 2, 3, 6];
    let ragged = Batch::new()
        .with_feature("x", Array::from([-1f32, 0.25, 3.0, 0.5]))?
        .with_feature("id", Ragged::new(Array::from([0i64, 3, 2, 1, -1, 1]), splits)?)?
        .with_feature("word", Ragged::new(Array::from_strings([6], ["a", "b", "", "c", "a", "zz"])?, splits)?)?
        .with_feature("weight", Ragged::new(Array::from([1f32, 2.0, 0.5, 0.0, 3.0, -1.0]), splits)?)?;
    Ok([dense, ragged])
}

#[test]
fn every_column_keeps_the_contract() -> Result<()> {
    for make in ALL_COLUMNS {
        let column = make();
        let [dense, ragged] = batches()?;
        check_column(&column, &ragged)?;
        if column.kind() != "sequence_numeric" {
            check_column(&column, &dense)?;
        }
    }
    Ok(())
}

#[test]
fn columns_with_options_keep_the_contract() -> Result<()> {
    let id = categorical_column_with_identity("id", 4);
    let word = categorical_column_with_vocabulary_list("word", ["a", "b"]).n_oov_buckets(2);
    let weighted = weighted_categorical_column(&id, "weight");
    let columns: [FeatureColumn; 10] = [
        numeric_column("x").min_max(-1.0, 3.0).into(),
        numeric_column("x").normalizer(|x| x.tanh()).into(),
        bucketized_column(&numeric_column("x").z_score(1.0, 2.0), [-0.5, 0.5]).into(),
        categorical_column_with_hash_bucket("id", 5).dtype(DType::I64).into(),
        id.clone().default_value(1).into(),
        crossed_column([ColumnKey::from(&word), "id".into()], 11).hash_key(3).into(),
        embedding_column(&word, 3).trainable(false).into(),
        embedding_column(&weighted, 3).combiner(Combiner::SqrtN).max_norm(0.1).into(),
        default_embedding_column(crossed_column(["id", "word"], 20)).into(),
        shared_embeddings([&id, &categorical_column_with_identity("weight", 4)], 2).columns().remove(0).into(),
    ];
    for column in &columns {
        for batch in batches()? {
            check_column(column, &batch)?;
        }
    }
    let [_, ragged] = batches()?;
    let pairs = sequence_numeric_column("weight").shape([2]).default_value(-1.0);
    check_column(&pairs.into(), &ragged)
}

/// A layer that breaks a rule that its number names.
#[derive(Debug)]
struct Broken(u8, Config);

impl Layer for Broken {
    fn kind(&self) -> &'static str {
        "broken"
    }

    fn config(&self) -> &Config {
        &self.1
    }

    fn build(&self, build: &mut Build<'_>) {
        build.weight("w", &[build.channels()], Initializer::Ones, None);
        if self.0 == 1 {
            build.weight("unused", &[2], Initializer::Ones, None);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (x, w) = (call.input(), call.weight("w"));
        match self.0 {
            // Its gradient is cut off, which differences see.
            2 => x * w.stop_gradient(),
            // Draws numbers outside of training.
            3 => (x * w).dropout(0.5),
            // A row depends on its batch.
            4 => x * w - x.mean(),
            // Updates something in evaluation.
            5 => {
                x.graph().add_update(&w.assign_add(1.0));
                x * w
            }
            // Drops the rows.
            6 => (x * w).sum_axes(Axes::of([0]).keep_dims()),
            _ => x * w,
        }
    }
}

#[test]
fn contracts_find_what_is_broken() {
    let rows = spread(&[3, 2]).unwrap();
    check_layer(&Broken(0, Config::default()), &rows).unwrap();
    for (rule, text) in [
        (1, "training did not change `broken/unused`"),
        (2, "by differences"),
        (3, "row 1 alone and in its batch"),
        (4, "alone and in its batch"),
        (5, "frozen, it still has updates"),
        (6, "3 rows gave a result of the shape [1, 2]"),
    ] {
        let error = check_layer(&Broken(rule, Config::default()), &rows).unwrap_err().to_string();
        assert!(error.contains(text), "rule {rule}: {error}");
    }
}
