//! Layers with every option set, for tests and for the exchange with Keras.

use estimand_graph::{Initializer, Padding};
use estimand_nn::*;
use estimand_tensor::{DType, Dim, Shape};
use estimand_update::{MaxNorm, MinMaxNorm, NonNeg, UnitNorm};

/// A shape that a layer of a kind takes.
pub fn shape(kind: &str) -> Shape {
    let sizes: &[usize] = match kind {
        "conv_lstm1d" => &[3, 5, 2],
        "conv_lstm2d" => &[3, 4, 4, 2],
        "conv_lstm3d" => &[2, 3, 3, 3, 2],
        _ if kind.contains("3d") => &[4, 4, 4, 2],
        _ if kind.contains("2d") => &[8, 8, 4],
        _ if kind.contains("1d") => &[8, 4],
        "group_normalization"
        | "permute"
        | "softmax"
        | "layer_normalization"
        | "batch_normalization"
        | "p_re_lu"
        | "dropout"
        | "dot" => &[4, 4],
        "concatenate" | "masking" | "gru" | "lstm" | "simple_rnn" | "rnn" | "bidirectional" => &[6, 4],
        "multi_head_attention" | "time_distributed" | "attention" | "additive_attention" => &[6, 4],
        "embedding" => &[6],
        "text_vectorization" => &[],
        "string_lookup" | "integer_lookup" | "category_encoding" | "hashing" => &[3],
        "hashed_crossing" => &[1],
        "resizing" | "center_crop" => &[8, 6, 3],
        _ if kind.starts_with("random_") => &[8, 6, 3],
        _ => &[4],
    };
    [Dim::BATCH].into_iter().chain(sizes.iter().map(|&n| n.into())).collect()
}

/// The dtype that a layer takes.
pub fn dtype(layer: &dyn Layer) -> DType {
    match layer.kind() {
        "embedding" | "integer_lookup" | "category_encoding" => DType::I64,
        "string_lookup" if layer.to_json().is_ok_and(|json| json["config"]["invert"] == true) => DType::I64,
        "string_lookup" | "text_vectorization" | "hashed_crossing" | "hashing" => DType::Str,
        _ => DType::F32,
    }
}

/// A layer with each of its options set to something else than the default.
pub fn with_all_options() -> Vec<Box<dyn Layer>> {
    let (l1, l2) = (Regularizer::l1(0.1), Regularizer::l2(0.2));
    let normal = Initializer::RandomNormal { mean: 0.5, stddev: 0.1 };
    let uniform = Initializer::RandomUniform { low: -0.5, high: 0.25 };
    macro_rules! affine {
        ($layer:expr) => {
            $layer
                .kernel_initializer(normal.clone())
                .kernel_regularizer(l1)
                .kernel_constraint(MaxNorm::new(3.0).axes([0]))
                .bias_initializer(Initializer::Constant(0.25))
                .bias_regularizer(l2)
                .bias_constraint(NonNeg)
                .activity_regularizer(Regularizer::l1_l2(0.1, 0.3))
                .activation(Activation::LeakyRelu(0.4))
                .name("other")
                .trainable(false)
        };
    }
    macro_rules! rnn {
        ($layer:expr) => {
            cell!($layer.return_sequences(true).return_state(true).go_backwards(true).zero_output_for_mask(true))
        };
    }
    macro_rules! cell {
        ($layer:expr) => {
            $layer
                .activation(Activation::Relu)
                .use_bias(true)
                .dropout(0.1)
                .recurrent_dropout(0.2)
                .kernel_initializer(normal.clone())
                .kernel_regularizer(l1)
                .kernel_constraint(UnitNorm::new().axes([1]))
                .recurrent_initializer(Initializer::Identity { gain: 2.0 })
                .recurrent_regularizer(l2)
                .recurrent_constraint(MinMaxNorm::new(0.5, 2.0).rate(0.5).axes([0, 1]))
                .bias_initializer(Initializer::Ones)
                .bias_regularizer(l1)
                .bias_constraint(NonNeg)
                .name("other")
                .trainable(false)
        };
    }
    vec![
        Box::new(ActivationLayer::new(Activation::Tanh).name("other").trainable(false)),
        Box::new(AdditiveAttention::new().use_scale(false).dropout(0.25).name("other").trainable(false)),
        Box::new(Add::new().name("other").trainable(false)),
        Box::new(AlphaDropout::new(0.25).name("other").trainable(false)),
        Box::new(Average::new().name("other").trainable(false)),
        Box::new(AvgPool1d::new(3).strides(1).same().name("other").trainable(false)),
        Box::new(AvgPool2d::new((2, 3)).strides((1, 2)).same().name("other").trainable(false)),
        Box::new(
            BatchNorm::new()
                .axis(1)
                .momentum(0.5)
                .epsilon(0.01)
                .beta_initializer(normal.clone())
                .beta_regularizer(l1)
                .beta_constraint(NonNeg)
                .gamma_initializer(uniform.clone())
                .gamma_regularizer(l2)
                .gamma_constraint(UnitNorm::new())
                .moving_mean_initializer(Initializer::Ones)
                .moving_variance_initializer(Initializer::Constant(2.0))
                .name("other")
                .trainable(false),
        ),
        Box::new(BatchNorm::new().center(false).scale(false)),
        Box::new(Bidirectional::new(rnn!(Gru::new(5))).merge_mode(MergeMode::Sum).name("both").trainable(false)),
        Box::new(Bidirectional::new(Lstm::new(5)).merge_mode(MergeMode::Mul)),
        Box::new(Bidirectional::new(SimpleRnn::new(5)).merge_mode(MergeMode::Ave)),
        Box::new(Concat::new().axis(1).name("other").trainable(false)),
        Box::new(affine!(Conv1d::new(4, 3).strides(2).same().groups(2))),
        Box::new(Conv1d::new(4, 3).causal().dilation(2).use_bias(false)),
        Box::new(affine!(Conv1dTranspose::new(4, 3).strides(3).same().output_padding(2))),
        Box::new(Conv1dTranspose::new(4, 3).dilation(2).use_bias(false)),
        Box::new(affine!(Conv2d::new(4, (2, 3)).strides((2, 1)).same().groups(2))),
        Box::new(Conv2d::new(4, 3).dilation((2, 1)).use_bias(false)),
        Box::new(affine!(Conv2dTranspose::new(4, (2, 3)).strides((2, 3)).same().output_padding((1, 2)))),
        Box::new(CategoryEncoding::new(7).output_mode(OutputMode::Count).name("other").trainable(false)),
        Box::new(CenterCrop::new(3, 4).name("other").trainable(false)),
        Box::new(AvgPool3d::new(3).strides(1).padding(Padding::Same).name("other").trainable(false)),
        Box::new(affine!(Conv3d::new(4, (2, 3, 1)).strides(2).same())),
        Box::new(Conv3d::new(4, 2).dilation((1, 2, 1)).use_bias(false)),
        Box::new(affine!(Conv3dTranspose::new(4, (2, 3, 1)).strides((2, 1, 3)).same().output_padding((1, 0, 2)))),
        Box::new(Conv3dTranspose::new(4, 2).use_bias(false)),
        Box::new(
            rnn!(ConvLstm2d::new(4, (2, 3)).strides(2).same())
                .recurrent_initializer(Initializer::HeNormal)
                .recurrent_activation(Activation::Sigmoid)
                .unit_forget_bias(false),
        ),
        Box::new(ConvLstm2d::new(3, 2).dilation((1, 2)).use_bias(false)),
        Box::new(
            rnn!(ConvLstm1d::new(4, 3).strides(2).same())
                .recurrent_initializer(Initializer::HeNormal)
                .recurrent_activation(Activation::Sigmoid)
                .unit_forget_bias(false),
        ),
        Box::new(ConvLstm1d::new(3, 2).dilation(2).use_bias(false)),
        Box::new(
            rnn!(ConvLstm3d::new(4, (2, 3, 2)).strides((1, 2, 1)).same())
                .recurrent_initializer(Initializer::HeNormal)
                .recurrent_activation(Activation::Sigmoid)
                .unit_forget_bias(false),
        ),
        Box::new(ConvLstm3d::new(3, 2).dilation((1, 2, 1)).use_bias(false)),
        Box::new(Cropping3d::new([(1, 2), (0, 1), (1, 0)]).name("other").trainable(false)),
        Box::new(GlobalAvgPool3d::new().keep_dims(true).name("other").trainable(false)),
        Box::new(GlobalMaxPool3d::new().keep_dims(true).name("other").trainable(false)),
        Box::new(MaxPool3d::new(3).strides(1).padding(Padding::Same).name("other").trainable(false)),
        Box::new(SpatialDropout3d::new(0.25).name("other").trainable(false)),
        Box::new(UpSampling3d::new((3, 2, 1)).name("other").trainable(false)),
        Box::new(ZeroPadding3d::new([(1, 2), (0, 1), (1, 0)]).name("other").trainable(false)),
        Box::new(Conv2dTranspose::new(4, 3).dilation(2).use_bias(false)),
        Box::new(Cropping1d::new((1, 2)).name("other").trainable(false)),
        Box::new(Cropping2d::new(((1, 2), (0, 1))).name("other").trainable(false)),
        Box::new(affine!(Dense::new(5))),
        Box::new(Dense::new(5).use_bias(false)),
        Box::new(
            DepthwiseConv1d::new(3)
                .depth_multiplier(2)
                .strides(2)
                .same()
                .depthwise_initializer(Initializer::HeNormal)
                .depthwise_regularizer(l1)
                .depthwise_constraint(NonNeg)
                .bias_initializer(Initializer::Ones)
                .bias_regularizer(l2)
                .bias_constraint(NonNeg)
                .activity_regularizer(l1)
                .sigmoid()
                .name("other")
                .trainable(false),
        ),
        Box::new(DepthwiseConv1d::new(2).dilation(2).use_bias(false)),
        Box::new(
            DepthwiseConv2d::new((2, 3))
                .depth_multiplier(2)
                .strides(2)
                .same()
                .depthwise_initializer(Initializer::HeNormal)
                .depthwise_regularizer(l1)
                .depthwise_constraint(NonNeg)
                .bias_initializer(Initializer::Ones)
                .bias_regularizer(l2)
                .bias_constraint(NonNeg)
                .activity_regularizer(l1)
                .sigmoid()
                .name("other")
                .trainable(false),
        ),
        Box::new(DepthwiseConv2d::new(2).dilation(2).use_bias(false)),
        Box::new(Discretization::new([-0.25, 0.75]).output_mode(OutputMode::Count).name("other").trainable(false)),
        Box::new(Dot::axes(1, 2).normalize(true).name("other").trainable(false)),
        Box::new(Dot::new(2)),
        Box::new(Dropout::new(0.25).noise_shape([None, Some(1), None]).name("other").trainable(false)),
        Box::new(Elu::new(0.5).name("other").trainable(false)),
        Box::new(
            Embedding::new(7, 4)
                .mask_zero(true)
                .initializer(Initializer::TruncatedNormal { mean: 0.1, stddev: 0.2 })
                .regularizer(l2)
                .constraint(MaxNorm::new(1.0).axes([1]))
                .name("other")
                .trainable(false),
        ),
        Box::new(Flatten::new().name("other").trainable(false)),
        Box::new(GaussianDropout::new(0.25).name("other").trainable(false)),
        Box::new(GaussianNoise::new(0.25).name("other").trainable(false)),
        Box::new(GlobalAvgPool1d::new().keep_dims(true).name("other").trainable(false)),
        Box::new(GlobalAvgPool2d::new().keep_dims(true).name("other").trainable(false)),
        Box::new(GlobalMaxPool1d::new().keep_dims(true).name("other").trainable(false)),
        Box::new(GlobalMaxPool2d::new().keep_dims(true).name("other").trainable(false)),
        Box::new(
            GroupNorm::new(2)
                .axis(1)
                .epsilon(0.01)
                .beta_initializer(Initializer::Ones)
                .beta_regularizer(l1)
                .beta_constraint(NonNeg)
                .gamma_initializer(Initializer::Constant(0.5))
                .gamma_regularizer(l2)
                .gamma_constraint(UnitNorm::new())
                .name("other")
                .trainable(false),
        ),
        Box::new(GroupNorm::new(-1).center(false).scale(false)),
        Box::new(Attention::new().use_scale(true).concat_scores().dropout(0.25).name("other").trainable(false)),
        Box::new(UnitNormalization::new().axes([1]).name("other").trainable(false)),
        Box::new(rnn!(Gru::new(5)).recurrent_activation(Activation::HardSigmoid).reset_after(false)),
        Box::new(Gru::new(5).use_bias(false)),
        Box::new(cell!(GruCell::new(5)).recurrent_activation(Activation::HardSigmoid).reset_after(false)),
        Box::new(HashedCrossing::new(7).output_mode(OutputMode::OneHot).name("other").trainable(false)),
        Box::new(
            Hashing::new(7).mask_value("").salt([1, 2]).output_mode(OutputMode::Count).name("other").trainable(false),
        ),
        Box::new(
            IntegerLookup::new()
                .vocabulary([2, 3])
                .max_tokens(9)
                .num_oov_indices(3)
                .mask_token(0)
                .oov_token(-7)
                .output_mode(OutputMode::TfIdf)
                .pad_to_max_tokens(true)
                .idf_weights([0.5, 1.5])
                .name("other")
                .trainable(false),
        ),
        Box::new(IntegerLookup::new().vocabulary([2, 3]).invert(true)),
        Box::new(
            LayerNorm::new()
                .axes([1, 2])
                .epsilon(0.01)
                .beta_initializer(Initializer::LecunUniform)
                .beta_regularizer(l1)
                .beta_constraint(NonNeg)
                .gamma_initializer(Initializer::LecunNormal)
                .gamma_regularizer(l2)
                .gamma_constraint(UnitNorm::new())
                .name("other")
                .trainable(false),
        ),
        Box::new(LayerNorm::new().center(false).scale(false)),
        Box::new(LeakyRelu::new(0.1).name("other").trainable(false)),
        Box::new(rnn!(Lstm::new(5)).recurrent_activation(Activation::Linear).unit_forget_bias(false)),
        Box::new(Lstm::new(5).use_bias(false)),
        Box::new(cell!(LstmCell::new(5)).recurrent_activation(Activation::Linear).unit_forget_bias(false)),
        Box::new(Masking::new(-1.0).name("other").trainable(false)),
        Box::new(MaxPool1d::new(3).strides(1).padding(Padding::Same).name("other").trainable(false)),
        Box::new(MaxPool2d::new(3).strides(1).padding(Padding::Same).name("other").trainable(false)),
        Box::new(Maximum::new().name("other").trainable(false)),
        Box::new(Minimum::new().name("other").trainable(false)),
        Box::new(
            MultiHeadAttention::new(3, 5)
                .value_dim(2)
                .output_dim(7)
                .dropout(0.1)
                .kernel_initializer(Initializer::HeUniform)
                .kernel_regularizer(l1)
                .kernel_constraint(NonNeg)
                .bias_initializer(Initializer::Ones)
                .bias_regularizer(l2)
                .bias_constraint(NonNeg)
                .name("other")
                .trainable(false),
        ),
        Box::new(MultiHeadAttention::new(2, 5).use_bias(false)),
        Box::new(Multiply::new().name("other").trainable(false)),
        Box::new(
            PRelu::new()
                .shared_axes([1])
                .alpha_initializer(Initializer::GlorotNormal)
                .alpha_regularizer(l1)
                .alpha_constraint(NonNeg)
                .name("other")
                .trainable(false),
        ),
        Box::new(Normalization::new().axis(1).invert(true).moments([0.5; 4], [4.0; 4]).name("other").trainable(false)),
        Box::new(Permute::new([1, 2]).name("other").trainable(false)),
        Box::new(RandomBrightness::new((-0.1, 0.3)).value_range(-1.0, 1.0).name("other").trainable(false)),
        Box::new(RandomContrast::new((0.1, 0.3)).name("other").trainable(false)),
        Box::new(RandomCrop::new(3, 4).name("other").trainable(false)),
        Box::new(RandomFlip::new(Flip::Vertical).name("other").trainable(false)),
        Box::new(
            RandomRotation::new((-0.1, 0.2))
                .fill_mode(FillMode::Constant)
                .fill_value(2.0)
                .nearest()
                .name("other")
                .trainable(false),
        ),
        Box::new(
            RandomTranslation::new((-0.1, 0.2), 0.4)
                .fill_mode(FillMode::Wrap)
                .fill_value(2.0)
                .nearest()
                .name("other")
                .trainable(false),
        ),
        Box::new(
            RandomZoom::new((-0.1, 0.2))
                .width_factor(0.4)
                .fill_mode(FillMode::Nearest)
                .fill_value(2.0)
                .nearest()
                .name("other")
                .trainable(false),
        ),
        Box::new(Relu::new().max_value(2.0).negative_slope(0.1).threshold(0.5).name("other").trainable(false)),
        Box::new(RepeatVector::new(5).name("other").trainable(false)),
        Box::new(Rescaling::new(0.25).offset(-1.0).name("other").trainable(false)),
        Box::new(Rescaling::per_channel([0.25; 4]).offsets([-1.0; 4])),
        Box::new(Reshape::new([2, -1]).name("other").trainable(false)),
        Box::new(
            SeparableConv1d::new(4, 3)
                .depth_multiplier(2)
                .strides(2)
                .same()
                .depthwise_initializer(Initializer::HeNormal)
                .depthwise_regularizer(l1)
                .depthwise_constraint(NonNeg)
                .pointwise_initializer(Initializer::Orthogonal { gain: 2.0 })
                .pointwise_regularizer(l2)
                .pointwise_constraint(MaxNorm::new(1.0).axes([0, 1]))
                .bias_initializer(Initializer::Ones)
                .bias_regularizer(l2)
                .bias_constraint(NonNeg)
                .activity_regularizer(l1)
                .softmax()
                .name("other")
                .trainable(false),
        ),
        Box::new(SeparableConv1d::new(4, 2).causal().dilation(2).use_bias(false)),
        Box::new(
            SeparableConv2d::new(4, (2, 3))
                .depth_multiplier(2)
                .strides(2)
                .same()
                .depthwise_initializer(Initializer::HeNormal)
                .depthwise_regularizer(l1)
                .depthwise_constraint(NonNeg)
                .pointwise_initializer(Initializer::Orthogonal { gain: 2.0 })
                .pointwise_regularizer(l2)
                .pointwise_constraint(MaxNorm::new(1.0).axes([0, 1, 2]))
                .bias_initializer(Initializer::Ones)
                .bias_regularizer(l2)
                .bias_constraint(NonNeg)
                .activity_regularizer(l1)
                .softmax()
                .name("other")
                .trainable(false),
        ),
        Box::new(SeparableConv2d::new(4, 2).dilation(2).use_bias(false)),
        Box::new(Resizing::new(4, 7).nearest().crop_to_aspect_ratio(true).name("other").trainable(false)),
        Box::new(rnn!(SimpleRnn::new(5))),
        Box::new(SimpleRnn::new(5).use_bias(false)),
        Box::new(cell!(SimpleRnnCell::new(5))),
        Box::new(SimpleRnnCell::new(5).use_bias(false)),
        Box::new(GruCell::new(5).use_bias(false)),
        Box::new(LstmCell::new(5).use_bias(false)),
        Box::new(
            Rnn::new(
                StackedRnnCells::new()
                    .cell(cell!(LstmCell::new(5)).name("first").trainable(true))
                    .cell(LstmCell::new(2)),
            )
            .return_sequences(true)
            .return_state(true)
            .go_backwards(true)
            .zero_output_for_mask(true)
            .name("other")
            .trainable(false),
        ),
        Box::new(Bidirectional::new(Rnn::new(GruCell::new(3)))),
        Box::new(StackedRnnCells::new().cell(GruCell::new(5)).name("other").trainable(false)),
        Box::new(Softmax::new().axis(1).name("other").trainable(false)),
        Box::new(SpatialDropout1d::new(0.25).name("other").trainable(false)),
        Box::new(SpatialDropout2d::new(0.25).name("other").trainable(false)),
        Box::new(
            StringLookup::new()
                .vocabulary(["a", "d", "e"])
                .max_tokens(9)
                .num_oov_indices(3)
                .mask_token("")
                .oov_token("?")
                .output_mode(OutputMode::TfIdf)
                .pad_to_max_tokens(true)
                .idf_weights([0.5, 1.5, 2.0])
                .name("other")
                .trainable(false),
        ),
        Box::new(StringLookup::new().vocabulary(["a", "d"]).invert(true)),
        Box::new(
            TextVectorization::new()
                .vocabulary(["a", "d", "e"])
                .max_tokens(9)
                .standardize(Standardize::Lower)
                .split(Split::Character)
                .ngrams(2)
                .output_mode(OutputMode::TfIdf)
                .pad_to_max_tokens(true)
                .idf_weights([0.5, 1.5, 2.0])
                .name("other")
                .trainable(false),
        ),
        Box::new(Subtract::new().name("other").trainable(false)),
        Box::new(ThresholdedRelu::new(0.25).name("other").trainable(false)),
        Box::new(TimeDistributed::new(affine!(Dense::new(2))).name("steps").trainable(false)),
        Box::new(UpSampling1d::new(3).name("other").trainable(false)),
        Box::new(UpSampling2d::new((3, 2)).bilinear().name("other").trainable(false)),
        Box::new(ZeroPadding1d::new((1, 2)).name("other").trainable(false)),
        Box::new(ZeroPadding2d::new(((1, 2), (0, 1))).name("other").trainable(false)),
    ]
}
