//! VGG16: five blocks of 3 x 3 convolutions.

use estimand_nn::{Conv2d, Dense, Flatten, MaxPool2d};

use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

/// The filters and the number of convolutions of each block.
const BLOCKS: [(usize, usize); 5] = [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)];

pub(super) fn images(input: &KerasTensor) -> KerasTensor {
    let mut x = input.clone();
    for (block, (filters, n)) in (1..).zip(BLOCKS) {
        for i in 1..=n {
            x = Conv2d::new(filters, 3).same().relu().name(&format!("block{block}_conv{i}")).on(&x);
        }
        x = MaxPool2d::new(2).strides(2).name(&format!("block{block}_pool")).on(&x);
    }
    x
}

pub(super) fn top(images: &KerasTensor) -> KerasTensor {
    let x = Flatten::new().name("flatten").on(images);
    let x = Dense::new(4096).relu().name("fc1").on(&x);
    Dense::new(4096).relu().name("fc2").on(&x)
}
