//! ResNet50: blocks of three convolutions with a shortcut.

use estimand_nn::{Activation, ActivationLayer, Add, BatchNorm, Conv2d, MaxPool2d, ZeroPadding2d};

use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

/// The filters, the number of blocks and the first stride of each stack.
const STACKS: [(usize, usize, usize); 4] = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)];

pub(super) fn images(input: &KerasTensor) -> KerasTensor {
    let x = ZeroPadding2d::new(3).name("conv1_pad").on(input);
    let x = Conv2d::new(64, 7).strides(2).name("conv1_conv").on(&x);
    let x = relu(&norm(&x, "conv1_bn"), "conv1_relu");
    let x = ZeroPadding2d::new(1).name("pool1_pad").on(&x);
    let mut x = MaxPool2d::new(3).strides(2).name("pool1_pool").on(&x);
    for (stack, (filters, n, stride)) in (2..).zip(STACKS) {
        for i in 1..=n {
            let stride = if i == 1 { stride } else { 1 };
            x = block(&x, filters, stride, i == 1, &format!("conv{stack}_block{i}"));
        }
    }
    x
}

fn block(x: &KerasTensor, filters: usize, stride: usize, convolved: bool, name: &str) -> KerasTensor {
    let named = |suffix: &str| format!("{name}_{suffix}");
    let shortcut = match convolved {
        true => {
            let shortcut = Conv2d::new(4 * filters, 1).strides(stride).name(&named("0_conv")).on(x);
            norm(&shortcut, &named("0_bn"))
        }
        false => x.clone(),
    };
    let y = Conv2d::new(filters, 1).strides(stride).name(&named("1_conv")).on(x);
    let y = relu(&norm(&y, &named("1_bn")), &named("1_relu"));
    let y = Conv2d::new(filters, 3).same().name(&named("2_conv")).on(&y);
    let y = relu(&norm(&y, &named("2_bn")), &named("2_relu"));
    let y = norm(&Conv2d::new(4 * filters, 1).name(&named("3_conv")).on(&y), &named("3_bn"));
    relu(&Add::new().name(&named("add")).on(&[&shortcut, &y]), &named("out"))
}

fn norm(x: &KerasTensor, name: &str) -> KerasTensor {
    BatchNorm::new().axis(3).epsilon(1.001e-5).name(name).on(x)
}

fn relu(x: &KerasTensor, name: &str) -> KerasTensor {
    ActivationLayer::new(Activation::Relu).name(name).on(x)
}
