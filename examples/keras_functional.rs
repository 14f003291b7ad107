//! A model with two inputs and two outputs, in Keras' functional style: the price of a flat from
//! its size and the words of its advertisement, and whether it is in the centre. The article "Keras
//! and Estimator" describes such models; the smaller one that it shows is `keras_equivalent`.
//!
//! `cargo run --release --example keras_functional`

use estimand::keras::{Compile, Evaluate, Fit, Functional, Input, Model};
use estimand::nn::{Concat, GlobalMaxPool1d};
use estimand::prelude::*;

/// The number of different words; word 3 means the centre.
const N_WORDS: usize = 50;

/// Sizes, words, prices, and whether flats are in the centre.
fn flats(n: usize, seed: u64) -> Result<[Array; 4]> {
    // A generator of its own: the data is the same on every machine.
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f32 / (1u64 << 31) as f32
    };
    let (mut sizes, mut words, mut prices, mut centres) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let (size, is_central) = (0.2 + next(), next() < 0.5);
        let mut advertisement: Vec<i64> = (0..6).map(|_| 4 + (next() * (N_WORDS - 4) as f32) as i64).collect();
        if is_central {
            advertisement[(next() * 6.0) as usize % 6] = 3;
        }
        sizes.push(size);
        words.extend(advertisement);
        prices.push(size * if is_central { 2.0 } else { 1.0 } + 0.02 * (next() - 0.5));
        centres.push(i64::from(is_central));
    }
    Ok([
        Array::from_vec([n, 1], sizes)?,
        Array::from_vec([n, 6], words)?,
        Array::from_vec([n], prices)?,
        Array::from_vec([n], centres)?,
    ])
}

fn main() -> Result<()> {
    let size = Input::new([1]).name("size").tensor();
    let words = Input::new([6]).name("words").dtype(DType::I64).tensor();
    let text = GlobalMaxPool1d::new().on(&Embedding::new(N_WORDS, 8).on(&words));
    let hidden = Dense::new(32).relu().on(&Concat::new().on(&[&size, &text]));
    let price = Dense::new(1).name("price").on(&hidden);
    let centre = Dense::new(1).sigmoid().name("centre").on(&text);
    let mut model = Model::new(&[&size, &words], &[&price, &centre])?;
    println!("{}", model.summary());

    let compile = Compile::new(Optimizer::keras(Adam::default(), 0.01), "mse")
        .loss_of("centre", "binary_crossentropy")
        .loss_weight("centre", 0.2)
        .metric_of("price", "mae")
        .metric_of("centre", "accuracy");
    model.compile(compile)?;
    let named = |[size, words, price, centre]: [Array; 4]| {
        ([("size", size), ("words", words)], [("price", price), ("centre", centre)])
    };
    let stopping = EarlyStopping::lower_is_better("val_loss").patience(5).restore_best();
    model.fit(Fit::new(named(flats(2_000, 1)?)).epochs(40).validation_split(0.1).verbose(2).callback(stopping))?;
    let logs = model.evaluate(Evaluate::new(named(flats(500, 2)?)))?;
    println!("price_error = {:.4}", logs["price_mae"]);
    println!("accuracy = {:.4}", logs["centre_accuracy"]);
    Ok(())
}
