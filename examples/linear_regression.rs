//! A line fitted by hand with the low-level API: y = W * x + b, sum of squares, gradient descent.
//! It is the first program of the article "Keras and Estimator" ("the native API").
//!
//! What differs from the article: the random numbers have a seed, so each run prints the same; the
//! last lines have names, and show the last loss and the best line in closed form, too.
//!
//! `cargo run --release --example linear_regression`

use estimand::prelude::*;
use estimand::tensor::random::{Key, Stream};

fn main() -> Result<()> {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH]);
    let w = g.variable("W", [], Initializer::Constant(0.3));
    let b = g.variable("b", [], Initializer::Constant(-0.3));
    let out = &w * &x + &b;
    let loss = (out - &y).square().sum();
    let train = Optimizer::new(Sgd::default(), 0.001).minimize(&loss);

    let (mut xs, mut ys) = (vec![0.0f32; 100], vec![0.0f32; 100]);
    Stream::new(Key::new(1, "x"), 0).fill_uniform_f32(0, 1, &mut xs);
    Stream::new(Key::new(1, "y"), 0).fill_uniform_f32(0, 1, &mut ys);
    let feeds = [(&x, Array::from(xs.clone())), (&y, Array::from(ys.clone()))];

    let mut session = Session::new(&g)?;
    for step in 0..1000 {
        session.run(&[&train], &feeds)?;
        let current_loss = session.run(&[&loss], &feeds)?[0].item::<f32>()?;
        println!("iter step {step} training loss {current_loss:.6}");
    }
    println!("loss = {}", session.run(&[&loss], &feeds)?[0]);
    println!("W = {}", session.value("W")?);
    println!("b = {}", session.value("b")?);
    let (slope, intercept) = least_squares(&xs, &ys);
    println!("least_squares_W = {slope}");
    println!("least_squares_b = {intercept}");
    Ok(())
}

/// The best line in closed form, for comparison.
fn least_squares(xs: &[f32], ys: &[f32]) -> (f64, f64) {
    let n = xs.len() as f64;
    let mean = |v: &[f32]| v.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let (mx, my) = (mean(xs), mean(ys));
    let covariance: f64 = xs.iter().zip(ys).map(|(&x, &y)| (f64::from(x) - mx) * (f64::from(y) - my)).sum();
    let variance: f64 = xs.iter().map(|&x| (f64::from(x) - mx).powi(2)).sum();
    (covariance / variance, my - covariance / variance * mx)
}
