//! Xception: separable convolutions with shortcuts.

use estimand_nn::{Activation, ActivationLayer, Add, BatchNorm, Conv2d, MaxPool2d, SeparableConv2d};

use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

pub(super) fn images(input: &KerasTensor) -> KerasTensor {
    let x = Conv2d::new(32, 3).strides(2).use_bias(false).name("block1_conv1").on(input);
    let x = relu(&norm(&x, "block1_conv1_bn"), "block1_conv1_act");
    let x = Conv2d::new(64, 3).use_bias(false).name("block1_conv2").on(&x);
    let x = relu(&norm(&x, "block1_conv2_bn"), "block1_conv2_act");
    let mut x = halving(&x, 2, [128, 128], false);
    x = halving(&x, 3, [256, 256], true);
    x = halving(&x, 4, [728, 728], true);
    for block in 5..13 {
        let mut y = x.clone();
        for i in 1..=3 {
            y = separable(&relu(&y, &format!("block{block}_sepconv{i}_act")), 728, block, i);
        }
        x = Add::new().on(&[&y, &x]);
    }
    x = halving(&x, 13, [728, 1024], true);
    for (i, filters) in [(1, 1536), (2, 2048)] {
        x = relu(&separable(&x, filters, 14, i), &format!("block14_sepconv{i}_act"));
    }
    x
}

/// Two separable convolutions and a pooling, beside a convolution of stride 2.
fn halving(x: &KerasTensor, block: usize, filters: [usize; 2], starts_with_relu: bool) -> KerasTensor {
    let shortcut = Conv2d::new(filters[1], 1).strides(2).same().use_bias(false).on(x);
    let shortcut = BatchNorm::new().on(&shortcut);
    let mut y = x.clone();
    for (i, filters) in (1..).zip(filters) {
        if i > 1 || starts_with_relu {
            y = relu(&y, &format!("block{block}_sepconv{i}_act"));
        }
        y = separable(&y, filters, block, i);
    }
    let y = MaxPool2d::new(3).strides(2).same().name(&format!("block{block}_pool")).on(&y);
    Add::new().on(&[&y, &shortcut])
}

fn separable(x: &KerasTensor, filters: usize, block: usize, i: usize) -> KerasTensor {
    let name = format!("block{block}_sepconv{i}");
    let x = SeparableConv2d::new(filters, 3).same().use_bias(false).name(&name).on(x);
    norm(&x, &format!("{name}_bn"))
}

fn norm(x: &KerasTensor, name: &str) -> KerasTensor {
    BatchNorm::new().name(name).on(x)
}

fn relu(x: &KerasTensor, name: &str) -> KerasTensor {
    ActivationLayer::new(Activation::Relu).name(name).on(x)
}
