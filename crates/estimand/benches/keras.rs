//! `fit` of Keras models: an MLP, a CNN and an LSTM on made-up rows. Prints milliseconds a step.
//!
//! `benches/compare/keras.sh` runs it beside tf.keras and, if it is there, PyTorch.

use std::time::Instant;

use estimand::keras::{Compile, Fit, Model, Sequential};
use estimand::prelude::*;

/// Numbers from 0 to 1 without a pattern, the same on every machine.
fn numbers(dims: &[usize]) -> Array {
    let number = |i: usize| {
        let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32 / (1u64 << 24) as f32
    };
    Array::from_vec(dims, (0..dims.iter().product()).map(number).collect()).expect("sizes fit")
}

fn mlp() -> Result<Model> {
    Sequential::new().input([784]).add(Dense::new(512).relu()).add(Dense::new(10).softmax()).build()
}

fn cnn() -> Result<Model> {
    Sequential::new()
        .input([28, 28, 1])
        .add(Conv2d::new(32, 3).relu())
        .add(MaxPool2d::new(2))
        .add(Conv2d::new(64, 3).relu())
        .add(MaxPool2d::new(2))
        .add(Flatten::new())
        .add(Dense::new(10).softmax())
        .build()
}

fn lstm() -> Result<Model> {
    Sequential::new().input([40, 32]).add(Lstm::new(64)).add(Dense::new(10).softmax()).build()
}

/// The name, the model, the sizes of a row, the number of rows and of epochs.
type Run = (&'static str, fn() -> Result<Model>, &'static [usize], usize, usize);

const RUNS: [Run; 3] =
    [("mlp", mlp, &[784], 12_800, 3), ("cnn", cnn, &[28, 28, 1], 2_560, 2), ("lstm", lstm, &[40, 32], 5_120, 2)];

fn main() -> Result<()> {
    for (name, make, row, n, epochs) in RUNS {
        let dims: Vec<usize> = std::iter::once(n).chain(row.iter().copied()).collect();
        let x = numbers(&dims);
        let y = Array::from_vec([n], (0..n).map(|i| (i * 7 % 10) as i64).collect())?;
        let mut model = make()?;
        model.compile(Compile::new("adam", "sparse_categorical_crossentropy").metric("accuracy"))?;
        let fit = || Fit::new((&x, &y)).batch_size(128).verbose(0);
        model.fit(fit())?;
        let started = Instant::now();
        model.fit(fit().epochs(epochs))?;
        let steps = (n / 128 * epochs) as f64;
        println!("{name}_ms = {:.3}", started.elapsed().as_secs_f64() * 1e3 / steps);
    }
    Ok(())
}
