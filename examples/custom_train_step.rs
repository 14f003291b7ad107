//! A generative adversarial network with a training step of its own: a generator learns to make
//! points on a circle, and a discriminator learns to tell them from real ones.
//!
//! `cargo run --release --example custom_train_step`

use estimand::graph::Minimize;
use estimand::keras::{Compile, Fit, Input, Model, Sequential, TrainStep, Trained};
use estimand::nn::loss::{Loss, SigmoidCrossEntropy};
use estimand::prelude::*;

const N: usize = 2_000;

/// Points on the circle of radius 1.
fn circle() -> Result<Array> {
    let point = |i: usize| {
        let angle = i as f32 * 2.399_963;
        [angle.cos(), angle.sin()]
    };
    Array::from_vec([N, 2], (0..N).flat_map(point).collect())
}

/// Numbers between -1 and 1 without a pattern.
fn noise(offset: u64) -> Result<Array> {
    let number = |i: u64| {
        let mixed = (i + offset + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    Array::from_vec([N, 2], (0..2 * N as u64).map(number).collect())
}

/// One step of both players.
fn play(step: &TrainStep<'_>) -> Result<Trained> {
    let (noise, real) = (&step.inputs()[0], &step.labels()[0]);
    let entropy = SigmoidCrossEntropy::new();
    let fake = step.layer("generator", noise)?;
    let (of_real, of_fake) = (step.layer("discriminator", real)?, step.layer("discriminator", &fake)?);
    let d_loss = entropy.apply(&of_real.ones_like(), &of_real) + entropy.apply(&of_fake.zeros_like(), &of_fake);
    let g_loss = entropy.apply(&of_fake.ones_like(), &of_fake);
    // Each player changes its own weights alone.
    let adam = || Optimizer::keras(Adam::default().beta_1(0.5), 0.002);
    let (judge, maker) = (step.variables("discriminator")?, step.variables("generator")?);
    let d_train = adam().minimize(Minimize::new(&d_loss).variables(&judge));
    let g_train = adam().minimize(Minimize::new(&g_loss).variables(&maker));
    Ok(Trained::new(&d_train).and(&g_train).log("d_loss", &d_loss).log("g_loss", &g_loss))
}

fn main() -> Result<()> {
    let generator = Sequential::new().name("generator").input([2]);
    let generator = generator.add(Dense::new(32).relu()).add(Dense::new(32).relu()).add(Dense::new(2)).build()?;
    let judge = Sequential::new().name("discriminator").input([2]);
    let judge = judge.add(Dense::new(32).relu()).add(Dense::new(32).relu()).add(Dense::new(1)).build()?;
    let input = Input::new([2]).name("noise").tensor();
    let made = generator.on(&input);
    let mut gan = Model::named("gan", &input, &[&made, &judge.on(&made)])?;
    gan.compile(Compile::new("adam", "mse"))?;
    gan.set_train_step(play);

    let before = distance(&mut gan)?;
    let points = Dataset::from_arrays([("noise", noise(0)?), ("real", circle()?)]).label("real");
    gan.fit(Fit::new(points.shuffle(N, 5).batch(50)).epochs(40).verbose(2))?;
    println!("distance_before = {before:.3}");
    println!("distance = {:.3}", distance(&mut gan)?);
    Ok(())
}

/// The mean distance of made points from the circle.
fn distance(gan: &mut Model) -> Result<f32> {
    let made = gan.predict_all(&noise(1 << 20)?)?;
    let points = made[0].as_slice::<f32>()?;
    Ok(points.chunks(2).map(|p| (p[0].hypot(p[1]) - 1.0).abs()).sum::<f32>() / N as f32)
}
