//! InceptionV3: blocks of parallel branches, whose results are joined along the channels.

use estimand_nn::{Activation, ActivationLayer, AvgPool2d, BatchNorm, Concat, Conv2d, MaxPool2d, Size2d};

use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

// TF: convolutions, norms and activations have no names of their own. They are numbered in the
// order in which they are made, so branches must be made in Keras' order.

pub(super) fn images(input: &KerasTensor) -> KerasTensor {
    let x = halving(input, 32, 3);
    let x = convolution(Conv2d::new(32, 3), &x);
    let x = MaxPool2d::new(3).strides(2).on(&same(&x, 64, 3));
    let x = convolution(Conv2d::new(80, 1), &x);
    let x = convolution(Conv2d::new(192, 3), &x);
    let mut x = MaxPool2d::new(3).strides(2).on(&x);
    for (i, pooled) in [32, 64, 64].into_iter().enumerate() {
        x = small_filters(&x, pooled, &format!("mixed{i}"));
    }
    x = first_reduction(&x);
    for (i, filters) in (4..).zip([128, 160, 160, 192]) {
        x = long_filters(&x, filters, &format!("mixed{i}"));
    }
    x = second_reduction(&x);
    for i in 0..2 {
        x = wide(&x, i);
    }
    x
}

/// Branches of 1 x 1, 5 x 5 and two 3 x 3 filters.
fn small_filters(x: &KerasTensor, pooled: usize, name: &str) -> KerasTensor {
    let one = same(x, 64, 1);
    let five = same(&same(x, 48, 1), 64, 5);
    let three = same(&same(&same(x, 64, 1), 96, 3), 96, 3);
    let pool = pooled_branch(x, pooled);
    joined(&[one, five, three, pool], name)
}

fn first_reduction(x: &KerasTensor) -> KerasTensor {
    let three = halving(x, 384, 3);
    let double = halving(&same(&same(x, 64, 1), 96, 3), 96, 3);
    let pool = MaxPool2d::new(3).strides(2).on(x);
    joined(&[three, double, pool], "mixed3")
}

/// Branches of filters that are 7 pixels long in one direction.
fn long_filters(x: &KerasTensor, filters: usize, name: &str) -> KerasTensor {
    let one = same(x, 192, 1);
    let seven = same(&same(&same(x, filters, 1), filters, (1, 7)), 192, (7, 1));
    let mut double = same(x, filters, 1);
    for (n, size) in [(filters, (7, 1)), (filters, (1, 7)), (filters, (7, 1)), (192, (1, 7))] {
        double = same(&double, n, size);
    }
    let pool = pooled_branch(x, 192);
    joined(&[one, seven, double, pool], name)
}

fn second_reduction(x: &KerasTensor) -> KerasTensor {
    let three = halving(&same(x, 192, 1), 320, 3);
    let seven = halving(&same(&same(&same(x, 192, 1), 192, (1, 7)), 192, (7, 1)), 192, 3);
    let pool = MaxPool2d::new(3).strides(2).on(x);
    joined(&[three, seven, pool], "mixed8")
}

/// Branches that end in two directions each.
fn wide(x: &KerasTensor, i: usize) -> KerasTensor {
    let one = same(x, 320, 1);
    let three = same(x, 384, 1);
    let parts = [same(&three, 384, (1, 3)), same(&three, 384, (3, 1))];
    let three = joined(&parts, &format!("mixed9_{i}"));
    let double = same(&same(x, 448, 1), 384, 3);
    let parts = [same(&double, 384, (1, 3)), same(&double, 384, (3, 1))];
    let double = Concat::new().axis(3).on(&parts);
    let pool = pooled_branch(x, 192);
    joined(&[one, three, double, pool], &format!("mixed{}", 9 + i))
}

fn pooled_branch(x: &KerasTensor, filters: usize) -> KerasTensor {
    same(&AvgPool2d::new(3).strides(1).same().on(x), filters, 1)
}

fn joined(branches: &[KerasTensor], name: &str) -> KerasTensor {
    Concat::new().axis(3).name(name).on(&branches.to_vec())
}

fn same(x: &KerasTensor, filters: usize, size: impl Into<Size2d>) -> KerasTensor {
    convolution(Conv2d::new(filters, size).same(), x)
}

fn halving(x: &KerasTensor, filters: usize, size: usize) -> KerasTensor {
    convolution(Conv2d::new(filters, size).strides(2), x)
}

fn convolution(layer: Conv2d, x: &KerasTensor) -> KerasTensor {
    let x = layer.use_bias(false).on(x);
    let x = BatchNorm::new().axis(3).scale(false).on(&x);
    ActivationLayer::new(Activation::Relu).on(&x)
}
