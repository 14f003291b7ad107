//! MobileNetV2: inverted residual blocks of depthwise convolutions.

use estimand_nn::{Add, BatchNorm, Conv2d, DepthwiseConv2d, Relu, ZeroPadding2d};

use super::{borders, channels};
use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

/// The filters, the number of blocks and the first stride of each group. The first group does not
/// expand its channels, the others do so six times.
const GROUPS: [(usize, usize, usize); 7] =
    [(16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)];

pub(super) fn images(input: &KerasTensor, alpha: f64) -> KerasTensor {
    let x = Conv2d::new(divisible(32.0 * alpha), 3).strides(2).same().use_bias(false).name("Conv1").on(input);
    let mut x = norm_relu(&x, "bn_Conv1", "Conv1_relu");
    let mut id = 0;
    for (filters, n, stride) in GROUPS {
        for i in 0..n {
            x = block(&x, divisible((filters as f64 * alpha).floor()), if i == 0 { stride } else { 1 }, id);
            id += 1;
        }
    }
    let filters = if alpha > 1.0 { divisible(1280.0 * alpha) } else { 1280 };
    let x = Conv2d::new(filters, 1).use_bias(false).name("Conv_1").on(&x);
    norm_relu(&x, "Conv_1_bn", "out_relu")
}

fn block(input: &KerasTensor, filters: usize, stride: usize, id: usize) -> KerasTensor {
    let prefix = if id == 0 { "expanded_conv".to_string() } else { format!("block_{id}") };
    let named = |suffix: &str| format!("{prefix}_{suffix}");
    let mut x = input.clone();
    if id > 0 {
        x = Conv2d::new(6 * channels(&x), 1).same().use_bias(false).name(&named("expand")).on(&x);
        x = norm_relu(&x, &named("expand_BN"), &named("expand_relu"));
    }
    let depthwise = DepthwiseConv2d::new(3).strides(stride).use_bias(false).name(&named("depthwise"));
    x = match stride {
        1 => depthwise.same().on(&x),
        _ => depthwise.on(&ZeroPadding2d::new(borders(&x, 3)).name(&named("pad")).on(&x)),
    };
    x = norm_relu(&x, &named("depthwise_BN"), &named("depthwise_relu"));
    x = Conv2d::new(filters, 1).same().use_bias(false).name(&named("project")).on(&x);
    x = norm(&x, &named("project_BN"));
    match stride == 1 && channels(input) == filters {
        true => Add::new().name(&named("add")).on(&[input, &x]),
        false => x,
    }
}

fn norm(x: &KerasTensor, name: &str) -> KerasTensor {
    BatchNorm::new().epsilon(1e-3).momentum(0.999).name(name).on(x)
}

fn norm_relu(x: &KerasTensor, bn: &str, relu: &str) -> KerasTensor {
    Relu::new().max_value(6.0).name(relu).on(&norm(x, bn))
}

/// The nearest multiple of 8 that is not more than a tenth smaller.
fn divisible(filters: f64) -> usize {
    let near = ((filters + 4.0) / 8.0).floor().max(1.0) * 8.0;
    (if near < 0.9 * filters { near + 8.0 } else { near }) as usize
}
