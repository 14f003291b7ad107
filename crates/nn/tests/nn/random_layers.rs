//! Layers that draw numbers in training: what their results are like, by arithmetic.

use estimand_engine::Session;
use estimand_graph::Graph;
use estimand_nn::*;
use estimand_tensor::{Array, Result};

/// What a layer makes of ones in training.
fn trained(layer: &dyn Layer, dims: &[usize]) -> Result<Vec<f32>> {
    let g = Graph::new();
    let n = dims.iter().product();
    let x = g.constant(Array::from_vec(dims, vec![1.0f32; n])?);
    let y = layer.apply(&x);
    session_run(&g, &y)
}

fn session_run(g: &Graph, y: &estimand_graph::Tensor) -> Result<Vec<f32>> {
    Ok(Session::new(g)?.run(&[y], &[])?.remove(0).as_slice::<f32>()?.to_vec())
}

/// Mean and variance. Of 40,000 draws the mean is within 4 deviations / 200 of the truth in all but
/// 0.006% of cases; the seed is fixed.
fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    (mean, values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n)
}

#[test]
fn gaussian_noise_is_added() -> Result<()> {
    let (mean, variance) = moments(&trained(&GaussianNoise::new(0.3), &[400, 100])?);
    assert!((mean - 1.0).abs() < 4.0 * 0.3 / 200.0, "{mean}");
    assert!((variance - 0.09).abs() < 0.003, "{variance}");
    Ok(())
}

/// The deviation of a dropout: sqrt(0.2 / 0.8) = 0.5.
#[test]
fn gaussian_dropout_multiplies() -> Result<()> {
    let (mean, variance) = moments(&trained(&GaussianDropout::new(0.2), &[400, 100])?);
    assert!((mean - 1.0).abs() < 4.0 * 0.5 / 200.0, "{mean}");
    assert!((variance - 0.25).abs() < 0.01, "{variance}");
    Ok(())
}

/// With alpha' = -1.7580993 and a rate of 0.1: a = (0.9 * (1 + 0.1 * alpha'^2))^-0.5 = 0.9213...,
/// b = -a * alpha' * 0.1. Elements are a * 1 + b = 1.0863... or a * alpha' + b = -1.4485..., and a
/// row of mean 0 and variance 1 keeps both.
#[test]
fn alpha_dropout_keeps_mean_and_variance() -> Result<()> {
    let alpha = -1.7580993408473766f64;
    let a = (0.9 * (1.0 + 0.1 * alpha * alpha)).powf(-0.5);
    let (kept, dropped) = ((a - a * alpha * 0.1) as f32, (a * alpha - a * alpha * 0.1) as f32);
    let values = trained(&AlphaDropout::new(0.1), &[400, 100])?;
    let close = |v: f32, to: f32| (v - to).abs() < 1e-6;
    assert!(values.iter().all(|&v| close(v, kept) || close(v, dropped)));
    let share = values.iter().filter(|&&v| close(v, dropped)).count() as f64 / 40_000.0;
    assert!((share - 0.1).abs() < 4.0 * 0.3 / 200.0, "{share}");

    let g = Graph::new();
    let x = g.random_normal([400, 100]);
    let (mean, variance) = moments(&session_run(&g, &AlphaDropout::new(0.1).apply(&x))?);
    assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.04, "{mean} {variance}");
    Ok(())
}

#[test]
fn spatial_dropout_leaves_out_whole_channels() -> Result<()> {
    let sequences = trained(&SpatialDropout1d::new(0.5), &[50, 4, 10])?;
    let images = trained(&SpatialDropout2d::new(0.5), &[50, 2, 2, 10])?;
    for values in [&sequences, &images] {
        let mut n_dropped = 0;
        for row in values.chunks(40) {
            // Four steps, or four pixels, of ten channels.
            for step in row.chunks(10) {
                assert_eq!(step, &row[..10]);
            }
            assert!(row.iter().all(|&v| v == 0.0 || v == 2.0));
            n_dropped += row[..10].iter().filter(|&&v| v == 0.0).count();
        }
        assert!((180..320).contains(&n_dropped), "{n_dropped} of 500 channels");
    }
    Ok(())
}
