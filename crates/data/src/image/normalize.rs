//! Scales pixels to the ranges that models expect.

use estimand_tensor::{Array, Error, Result};

use super::{as_f32, image_dims};

/// Converts u8 from 0 to 255 into f32 from 0 to 1: divides by 255.
///
/// ```
/// # use estimand_data::image::to_unit;
/// # use estimand_tensor::Array;
/// assert_eq!(to_unit(&Array::from([0u8, 51, 255]))?, Array::from([0.0f32, 0.2, 1.0]));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn to_unit(images: &Array) -> Result<Array> {
    let pixels = images.as_slice::<u8>()?;
    Array::from_vec(images.dims(), pixels.iter().map(|&pixel| f32::from(pixel) / 255.0).collect())
}

/// Computes `(x - mean) / deviation` for each channel, from u8 or f32 to f32. `mean` and
/// `deviation` have one number per channel, the last axis.
pub fn standardize(images: &Array, mean: &[f32], deviation: &[f32]) -> Result<Array> {
    let n_channels = images.dims().last().copied().unwrap_or(1);
    if mean.len() != n_channels || deviation.len() != n_channels {
        return Err(Error::shape(format!(
            "{} means and {} deviations were given; expected one of each for the {n_channels} channels",
            mean.len(),
            deviation.len()
        )));
    }
    if let Some(bad) = deviation.iter().find(|d| !(**d > 0.0 && d.is_finite())) {
        return Err(Error::config(format!("the deviation of a channel is {bad}; expected a positive number")));
    }
    let mut images = as_f32(images)?;
    if n_channels > 0 {
        for pixel in images.as_mut_slice::<f32>()?.chunks_exact_mut(n_channels) {
            for ((value, mean), deviation) in pixel.iter_mut().zip(mean).zip(deviation) {
                *value = (*value - mean) / deviation;
            }
        }
    }
    Ok(images)
}

/// Scales each image to mean 0 and deviation 1, from u8 or f32 to f32, like
/// `tf.image.per_image_standardization`.
pub fn per_image_standardization(images: &Array) -> Result<Array> {
    let [_, height, width, channels] = image_dims(images)?;
    let n = height * width * channels;
    let mut images = as_f32(images)?;
    if n == 0 {
        return Ok(images);
    }
    // TF: an image of one colour is divided by 1 / sqrt(n) and not by 0 (fixture
    // `standardization`).
    let least = 1.0 / (n as f64).sqrt();
    for image in images.as_mut_slice::<f32>()?.chunks_exact_mut(n) {
        let mean = image.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
        let variance = image.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n as f64;
        let scale = 1.0 / variance.sqrt().max(least);
        image.iter_mut().for_each(|v| *v = ((f64::from(*v) - mean) * scale) as f32);
    }
    Ok(images)
}
