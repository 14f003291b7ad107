//! DenseNet121: each block adds channels to those of all blocks before it.

use estimand_nn::{Activation, ActivationLayer, AvgPool2d, BatchNorm, Concat, Conv2d, MaxPool2d, ZeroPadding2d};

use super::channels;
use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

/// The number of blocks in each stage.
const STAGES: [usize; 4] = [6, 12, 24, 16];
/// The channels that a block adds.
const GROWTH: usize = 32;

pub(super) fn images(input: &KerasTensor) -> KerasTensor {
    let x = ZeroPadding2d::new(3).on(input);
    let x = Conv2d::new(64, 7).strides(2).use_bias(false).name("conv1/conv").on(&x);
    let x = norm_relu(&x, "conv1/bn", "conv1/relu");
    let x = ZeroPadding2d::new(1).on(&x);
    let mut x = MaxPool2d::new(3).strides(2).name("pool1").on(&x);
    for (stage, n) in (2..).zip(STAGES) {
        for i in 1..=n {
            x = block(&x, &format!("conv{stage}_block{i}"));
        }
        if stage <= STAGES.len() {
            x = transition(&x, &format!("pool{stage}"));
        }
    }
    norm_relu(&x, "bn", "relu")
}

fn block(x: &KerasTensor, name: &str) -> KerasTensor {
    let named = |suffix: &str| format!("{name}_{suffix}");
    let y = norm_relu(x, &named("0_bn"), &named("0_relu"));
    let y = Conv2d::new(4 * GROWTH, 1).use_bias(false).name(&named("1_conv")).on(&y);
    let y = norm_relu(&y, &named("1_bn"), &named("1_relu"));
    let y = Conv2d::new(GROWTH, 3).same().use_bias(false).name(&named("2_conv")).on(&y);
    Concat::new().axis(3).name(&named("concat")).on(&[x, &y])
}

/// Halves the channels, the height and the width.
fn transition(x: &KerasTensor, name: &str) -> KerasTensor {
    let named = |suffix: &str| format!("{name}_{suffix}");
    let x = norm_relu(x, &named("bn"), &named("relu"));
    let x = Conv2d::new(channels(&x) / 2, 1).use_bias(false).name(&named("conv")).on(&x);
    AvgPool2d::new(2).strides(2).name(&named("pool")).on(&x)
}

fn norm_relu(x: &KerasTensor, bn: &str, relu: &str) -> KerasTensor {
    let x = BatchNorm::new().axis(3).epsilon(1.001e-5).name(bn).on(x);
    ActivationLayer::new(Activation::Relu).name(relu).on(&x)
}
