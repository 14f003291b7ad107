//! Convolutions, poolings, borders and activations with parameters against Keras's: results,
//! gradients, regularization.

use estimand_nn::*;

use crate::fixture::cases;
use crate::tensorflow::check_layer;

/// The layer of a case.
fn layer(name: &str) -> Box<dyn Layer> {
    match name {
        "conv1d" => Box::new(Conv1d::new(3, 2)),
        "conv1d_same" => Box::new(Conv1d::new(3, 4).strides(2).same().relu()),
        "conv1d_causal" => Box::new(Conv1d::new(2, 3).causal().dilation(2).use_bias(false)),
        "conv1d_causal_strides" => Box::new(Conv1d::new(2, 3).causal().strides(3)),
        "conv1d_dilated" => Box::new(Conv1d::new(2, 3).dilation(3)),
        "conv1d_groups" => Box::new(Conv1d::new(6, 3).groups(2).same()),
        "conv2d_groups" => Box::new(Conv2d::new(4, 3).groups(2).strides(2)),
        "conv2d_groups_of_one" => Box::new(Conv2d::new(6, (2, 3)).groups(3).same()),
        "depthwise_conv2d" => Box::new(DepthwiseConv2d::new(3)),
        "depthwise_conv2d_multiplied" => Box::new(
            DepthwiseConv2d::new((2, 3)).depth_multiplier(2).same().tanh().depthwise_regularizer(Regularizer::l2(0.1)),
        ),
        "depthwise_conv2d_strides" => Box::new(DepthwiseConv2d::new(3).strides(2).same().use_bias(false)),
        "depthwise_conv2d_dilated" => Box::new(DepthwiseConv2d::new(2).dilation(2)),
        "separable_conv2d" => Box::new(SeparableConv2d::new(4, 3)),
        "separable_conv2d_options" => Box::new(
            SeparableConv2d::new(2, (2, 3))
                .strides(2)
                .same()
                .depth_multiplier(2)
                .relu()
                .depthwise_regularizer(Regularizer::l2(0.1))
                .pointwise_regularizer(Regularizer::l1(0.2)),
        ),
        "separable_conv2d_dilated" => Box::new(SeparableConv2d::new(2, 2).dilation(2).use_bias(false)),
        "depthwise_conv1d" => Box::new(DepthwiseConv1d::new(3)),
        "depthwise_conv1d_multiplied" => Box::new(
            DepthwiseConv1d::new(2).depth_multiplier(3).same().tanh().depthwise_regularizer(Regularizer::l2(0.1)),
        ),
        "depthwise_conv1d_strides" => Box::new(DepthwiseConv1d::new(3).strides(2).same().use_bias(false)),
        "depthwise_conv1d_dilated" => Box::new(DepthwiseConv1d::new(2).dilation(3)),
        "separable_conv1d" => Box::new(SeparableConv1d::new(5, 3)),
        "separable_conv1d_options" => Box::new(
            SeparableConv1d::new(2, 3)
                .strides(2)
                .same()
                .depth_multiplier(2)
                .relu()
                .depthwise_regularizer(Regularizer::l2(0.1))
                .pointwise_regularizer(Regularizer::l1(0.2)),
        ),
        "separable_conv1d_dilated" => Box::new(SeparableConv1d::new(2, 2).dilation(2).use_bias(false)),
        "separable_conv1d_causal" => Box::new(SeparableConv1d::new(2, 3).causal().dilation(2)),
        "separable_conv1d_causal_strides" => Box::new(SeparableConv1d::new(2, 3).causal().strides(3)),
        "max_pool1d" => Box::new(MaxPool1d::new(2)),
        "max_pool1d_same" => Box::new(MaxPool1d::new(3).strides(2).same()),
        "avg_pool1d" => Box::new(AvgPool1d::new(3)),
        "avg_pool1d_same" => Box::new(AvgPool1d::new(3).strides(1).same()),
        "global_max_pool1d" => Box::new(GlobalMaxPool1d::new()),
        "global_avg_pool1d" => Box::new(GlobalAvgPool1d::new()),
        "global_avg_pool1d_keep" => Box::new(GlobalAvgPool1d::new().keep_dims(true)),
        "global_max_pool2d_keep" => Box::new(GlobalMaxPool2d::new().keep_dims(true)),
        "permute" => Box::new(Permute::new([2, 1])),
        "permute_image" => Box::new(Permute::new([3, 1, 2])),
        "repeat_vector" => Box::new(RepeatVector::new(3)),
        "zero_padding1d" => Box::new(ZeroPadding1d::new(2)),
        "zero_padding1d_sides" => Box::new(ZeroPadding1d::new((0, 3))),
        "zero_padding2d" => Box::new(ZeroPadding2d::new((1, 2))),
        "zero_padding2d_sides" => Box::new(ZeroPadding2d::new(((0, 1), (2, 0)))),
        "cropping1d" => Box::new(Cropping1d::new(1)),
        "cropping1d_sides" => Box::new(Cropping1d::new((4, 0))),
        "cropping2d" => Box::new(Cropping2d::new((1, 2))),
        "cropping2d_sides" => Box::new(Cropping2d::new(((0, 2), (3, 1)))),
        "up_sampling1d" => Box::new(UpSampling1d::new(3)),
        "up_sampling2d" => Box::new(UpSampling2d::new((2, 3))),
        "up_sampling2d_bilinear" => Box::new(UpSampling2d::new((2, 3)).bilinear()),
        "leaky_relu" => Box::new(LeakyRelu::new(0.3)),
        "elu" => Box::new(Elu::new(1.0)),
        "elu_alpha" => Box::new(Elu::new(0.4)),
        "thresholded_relu" => Box::new(ThresholdedRelu::new(1.0)),
        "relu" => Box::new(Relu::new()),
        "relu_slope" => Box::new(Relu::new().negative_slope(0.2)),
        "relu_max" => Box::new(Relu::new().max_value(1.5)),
        "relu_six" => Box::new(Relu::new().max_value(6.0)),
        "relu_threshold" => Box::new(Relu::new().threshold(0.7)),
        "relu_all" => Box::new(Relu::new().max_value(2.0).negative_slope(0.1).threshold(0.5)),
        "softmax" => Box::new(Softmax::new()),
        "softmax_axis" => Box::new(Softmax::new().axis(1)),
        "prelu" => Box::new(PRelu::new()),
        "prelu_shared" => Box::new(PRelu::new().shared_axes([1, 2]).alpha_regularizer(Regularizer::l2(0.3))),
        "layer_norm_axes" => Box::new(LayerNorm::new().axes([1, 2]).gamma_regularizer(Regularizer::l2(0.3))),
        "layer_norm_middle" => Box::new(LayerNorm::new().axes([1]).beta_regularizer(Regularizer::l1(0.2))),
        "batch_norm_regularized" => {
            Box::new(BatchNorm::new().beta_regularizer(Regularizer::l2(0.2)).gamma_regularizer(Regularizer::l1(0.1)))
        }
        "group_norm" => Box::new(GroupNorm::new(2).epsilon(0.01)),
        "group_norm_axis" => Box::new(GroupNorm::new(-1).axis(1).gamma_regularizer(Regularizer::l2(0.3))),
        "unit_norm" => Box::new(UnitNormalization::new()),
        "unit_norm_axes" => Box::new(UnitNormalization::new().axes([1, 2])),
        "conv3d" => Box::new(Conv3d::new(3, 2)),
        "conv3d_same" => Box::new(Conv3d::new(2, (3, 2, 1)).strides((2, 1, 2)).same().relu()),
        "conv3d_dilated" => Box::new(Conv3d::new(2, 2).dilation(2).use_bias(false)),
        "max_pool3d" => Box::new(MaxPool3d::new(2)),
        "max_pool3d_same" => Box::new(MaxPool3d::new((3, 2, 2)).strides((2, 1, 1)).same()),
        "avg_pool3d" => Box::new(AvgPool3d::new(2)),
        "avg_pool3d_same" => Box::new(AvgPool3d::new((3, 2, 2)).strides((2, 1, 1)).same()),
        "global_max_pool3d" => Box::new(GlobalMaxPool3d::new()),
        "global_avg_pool3d" => Box::new(GlobalAvgPool3d::new().keep_dims(true)),
        "cropping3d" => Box::new(Cropping3d::new((1, 1, 0))),
        "zero_padding3d" => Box::new(ZeroPadding3d::new([(0, 1), (2, 0), (1, 1)])),
        "up_sampling3d" => Box::new(UpSampling3d::new((1, 2, 3))),
        "spatial_dropout3d" => Box::new(SpatialDropout3d::new(0.5)),
        "alpha_dropout" => Box::new(AlphaDropout::new(0.5)),
        "gaussian_dropout" => Box::new(GaussianDropout::new(0.5)),
        "gaussian_noise" => Box::new(GaussianNoise::new(0.5)),
        "spatial_dropout1d" => Box::new(SpatialDropout1d::new(0.5)),
        "spatial_dropout2d" => Box::new(SpatialDropout2d::new(0.5)),
        _ => match name.split_once("d_transpose_") {
            Some(("conv1", rest)) => transposed_sequences(rest),
            Some(("conv2", rest)) => transposed(rest),
            Some(("conv3", rest)) => transposed_volumes(rest),
            _ => panic!("the fixture has a case `{name}` that the test does not know"),
        },
    }
}

/// Of `valid` or `same`, and what is special.
fn transposed(name: &str) -> Box<dyn Layer> {
    let (padding, special) = name.split_once('_').unwrap_or((name, ""));
    let layer = match special {
        "" => Conv2dTranspose::new(4, (3, 2)),
        "strides" => Conv2dTranspose::new(2, 3).strides((2, 3)).relu(),
        "small" => Conv2dTranspose::new(2, (1, 2)).strides(3),
        "output" => Conv2dTranspose::new(2, 3).strides(3).output_padding((2, 1)),
        "dilated" => Conv2dTranspose::new(2, 2).dilation(2).use_bias(false),
        _ => panic!("{name}"),
    };
    Box::new(if padding == "same" { layer.same() } else { layer })
}

/// The same of sequences.
fn transposed_sequences(name: &str) -> Box<dyn Layer> {
    let (padding, special) = name.split_once('_').unwrap_or((name, ""));
    let layer = match special {
        "" => Conv1dTranspose::new(4, 3),
        "strides" => Conv1dTranspose::new(2, 3).strides(2).relu(),
        "small" => Conv1dTranspose::new(2, 2).strides(3).use_bias(false),
        "output" => Conv1dTranspose::new(2, 3).strides(3).output_padding(1),
        "dilated" => Conv1dTranspose::new(2, 2).dilation(2),
        _ => panic!("{name}"),
    };
    Box::new(if padding == "same" { layer.same() } else { layer })
}

/// The same of volumes.
fn transposed_volumes(name: &str) -> Box<dyn Layer> {
    let (padding, special) = name.split_once('_').unwrap_or((name, ""));
    let layer = match special {
        "" => Conv3dTranspose::new(3, (2, 3, 1)),
        "strides" => Conv3dTranspose::new(2, (3, 2, 3)).strides((2, 1, 3)).relu(),
        "small" => Conv3dTranspose::new(2, (1, 2, 1)).strides((3, 2, 2)).use_bias(false),
        "output" => Conv3dTranspose::new(2, 3).strides(3).output_padding((2, 1, 0)),
        _ => panic!("{name}"),
    };
    Box::new(if padding == "same" { layer.same() } else { layer })
}

#[test]
fn layers_of_sequences_and_images_agree_with_keras() {
    for case in cases("keras_layers").iter().filter(|case| case.name() != "merge") {
        check_layer(case, &*layer(case.name()), false);
    }
}

/// The kinds of layers in the fixture.
pub fn kinds() -> Vec<&'static str> {
    cases("keras_layers").iter().filter(|case| case.name() != "merge").map(|case| layer(case.name()).kind()).collect()
}
