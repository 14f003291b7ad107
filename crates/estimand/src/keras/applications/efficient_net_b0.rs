//! EfficientNetB0: inverted residual blocks whose channels are weighed by their means.

use estimand_graph::Initializer;
use estimand_nn::{
    Activation, ActivationLayer, Add, BatchNorm, Conv2d, Dense, DepthwiseConv2d, Dropout, GlobalAvgPool2d, Multiply,
    Normalization, Rescaling, Reshape, ZeroPadding2d,
};

use super::{borders, channels};
use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

/// A group of blocks: the size of the kernel, the number of blocks, the filters, the factor of
/// channels inside of a block, and the first stride.
struct Group {
    kernel: usize,
    n: usize,
    filters: usize,
    expand: usize,
    stride: usize,
}

const GROUPS: [Group; 7] = [
    Group { kernel: 3, n: 1, filters: 16, expand: 1, stride: 1 },
    Group { kernel: 3, n: 2, filters: 24, expand: 6, stride: 2 },
    Group { kernel: 5, n: 2, filters: 40, expand: 6, stride: 2 },
    Group { kernel: 3, n: 3, filters: 80, expand: 6, stride: 2 },
    Group { kernel: 5, n: 3, filters: 112, expand: 6, stride: 1 },
    Group { kernel: 5, n: 4, filters: 192, expand: 6, stride: 2 },
    Group { kernel: 3, n: 1, filters: 320, expand: 6, stride: 1 },
];

/// The probability that the last block is skipped in training; that of others is proportional to
/// their number.
const DROP_BLOCK: f64 = 0.2;
/// The deviations of ImageNet's channels.
const DEVIATIONS: [f64; 3] = [0.229, 0.224, 0.225];

/// Pixels from 0 to 255 are scaled by the network itself.
pub(super) fn images(input: &KerasTensor, has_imagenet_weights: bool) -> KerasTensor {
    let x = Rescaling::new(1.0 / 255.0).on(input);
    let mut x = Normalization::new().axis(3).weights().on(&x);
    if has_imagenet_weights {
        // TF: Keras' file has deviations where variances belong, so a root of them is missing. A
        // network with other weights does not have the layer.
        x = Rescaling::per_channel(DEVIATIONS.map(|deviation| 1.0 / deviation.sqrt())).on(&x);
    }
    let x = ZeroPadding2d::new(borders(&x, 3)).name("stem_conv_pad").on(&x);
    let x = conv(32, 3).strides(2).name("stem_conv").on(&x);
    let mut x = norm_swish(&x, "stem_bn", "stem_activation");
    let n_blocks: usize = GROUPS.iter().map(|group| group.n).sum();
    let mut n = 0;
    for (number, group) in (1..).zip(&GROUPS) {
        for (i, letter) in (0..group.n).zip('a'..) {
            let stride = if i == 0 { group.stride } else { 1 };
            let drop = DROP_BLOCK * n as f64 / n_blocks as f64;
            x = block(&x, &Group { stride, ..*group }, drop, &format!("block{number}{letter}"));
            n += 1;
        }
    }
    let x = conv(1280, 1).same().name("top_conv").on(&x);
    norm_swish(&x, "top_bn", "top_activation")
}

/// The classifier without its activation.
pub(super) fn classifier(features: &KerasTensor, classes: usize) -> (KerasTensor, Dense) {
    let limit = (1.0 / classes as f64).sqrt();
    let kernel = Initializer::RandomUniform { low: -limit, high: limit };
    (Dropout::new(0.2).name("top_dropout").on(features), Dense::new(classes).kernel_initializer(kernel))
}

fn block(input: &KerasTensor, group: &Group, drop: f64, name: &str) -> KerasTensor {
    let named = |suffix: &str| format!("{name}_{suffix}");
    let before = channels(input);
    let inner = before * group.expand;
    let mut x = input.clone();
    if group.expand != 1 {
        x = conv(inner, 1).same().name(&named("expand_conv")).on(&x);
        x = norm_swish(&x, &named("expand_bn"), &named("expand_activation"));
    }
    let depthwise = DepthwiseConv2d::new(group.kernel).strides(group.stride).use_bias(false);
    let depthwise = depthwise.depthwise_initializer(kernel(group.kernel, 1)).name(&named("dwconv"));
    x = match group.stride {
        1 => depthwise.same().on(&x),
        _ => depthwise.on(&ZeroPadding2d::new(borders(&x, group.kernel)).name(&named("dwconv_pad")).on(&x)),
    };
    x = norm_swish(&x, &named("bn"), &named("activation"));
    let weights = GlobalAvgPool2d::new().name(&named("se_squeeze")).on(&x);
    let weights = Reshape::new([1, 1, inner as i64]).name(&named("se_reshape")).on(&weights);
    let squeezed = (before / 4).max(1);
    let reduce = conv(squeezed, 1).same().use_bias(true).activation(Activation::Swish).name(&named("se_reduce"));
    let weights = reduce.on(&weights);
    let expand = conv(inner, 1).same().use_bias(true).sigmoid().name(&named("se_expand"));
    let weights = expand.on(&weights);
    x = Multiply::new().name(&named("se_excite")).on(&[&x, &weights]);
    x = conv(group.filters, 1).same().name(&named("project_conv")).on(&x);
    x = BatchNorm::new().axis(3).name(&named("project_bn")).on(&x);
    if group.stride != 1 || before != group.filters {
        return x;
    }
    if drop > 0.0 {
        x = Dropout::new(drop).noise_shape([None, Some(1), Some(1), Some(1)]).name(&named("drop")).on(&x);
    }
    Add::new().name(&named("add")).on(&[&x, input])
}

fn conv(filters: usize, size: usize) -> Conv2d {
    Conv2d::new(filters, size).use_bias(false).kernel_initializer(kernel(size, filters))
}

/// A truncated normal distribution of variance `2 / fan_out`.
fn kernel(size: usize, filters: usize) -> Initializer {
    /// The deviation of a standard normal distribution without what is beyond two deviations.
    const CUT: f64 = 0.879_625_661_034_239_8;
    let stddev = (2.0 / (size * size * filters) as f64).sqrt() / CUT;
    Initializer::TruncatedNormal { mean: 0.0, stddev }
}

fn norm_swish(x: &KerasTensor, bn: &str, activation: &str) -> KerasTensor {
    let x = BatchNorm::new().axis(3).name(bn).on(x);
    ActivationLayer::new(Activation::Swish).name(activation).on(&x)
}
