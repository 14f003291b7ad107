//! Resizing of NHWC images, and its adjoint.

use estimand_graph::op::Resize;
use estimand_tensor::{Error, Result};

use super::value::{Wide, check_dims, count};

/// The source of a pixel along one axis: up to two source pixels with their weights.
type Mix = [(usize, f64); 2];

/// The mixes of one axis.
///
/// TF: positions are computed in f32. Where that rounding selects the pixel, it does so here too.
fn mixes(r: &Resize, from: usize, to: usize) -> Vec<Mix> {
    let scale = from as f32 / to as f32;
    let last = from.saturating_sub(1);
    let mix = |i: usize| {
        let i = i as f32;
        if !r.bilinear {
            let place = if r.half_pixel_centers { (i + 0.5) * scale } else { i * scale };
            let pixel = (place.floor() as usize).min(last);
            return [(pixel, 1.0), (pixel, 0.0)];
        }
        let place = if r.half_pixel_centers { (i + 0.5) * scale - 0.5 } else { i * scale };
        let weight = f64::from(place - place.floor());
        // A cast of a negative float is 0.
        [(place.floor() as usize, 1.0 - weight), ((place.ceil() as usize).min(last), weight)]
    };
    (0..to).map(mix).collect()
}

/// Calls `f(source, result, weight)` for every source pixel of every result pixel.
fn each(r: &Resize, image: &[usize], mut f: impl FnMut(usize, usize, f64)) {
    let (rows, columns) = (mixes(r, image[1], r.size.0), mixes(r, image[2], r.size.1));
    for n in 0..image[0] {
        for (row, mix_row) in rows.iter().enumerate() {
            for (column, mix_column) in columns.iter().enumerate() {
                // A weight of 0 times an infinite pixel would be NaN.
                for (y, weight_y) in mix_row.iter().filter(|mix| mix.1 > 0.0) {
                    for (x, weight_x) in mix_column.iter().filter(|mix| mix.1 > 0.0) {
                        let source = (n * image[1] + y) * image[2] + x;
                        let result = (n * r.size.0 + row) * r.size.1 + column;
                        for channel in 0..image[3] {
                            f(source * image[3] + channel, result * image[3] + channel, weight_y * weight_x);
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn resize(r: &Resize, x: &Wide, dims: &[usize]) -> Result<Wide> {
    let image = x.as_floats()?;
    let mut result = vec![0.0; count(dims)];
    if image.is_empty() && !result.is_empty() {
        return Err(Error::shape(format!("cannot resize an image without pixels, {:?}, to {dims:?}", x.dims())));
    }
    each(r, x.dims(), |from, to, weight| result[to] += weight * image[from]);
    Ok(Wide::floats(x.dtype, dims, result))
}

/// The gradient to an image of `dims`.
pub(super) fn resize_grad(r: &Resize, dy: &Wide, dims: &[usize]) -> Result<Wide> {
    check_dims("gradient", dy.dims(), &[dims[0], r.size.0, r.size.1, dims[3]])?;
    let gradient = dy.as_floats()?;
    let mut dx = vec![0.0; count(dims)];
    if dx.is_empty() && !gradient.is_empty() {
        return Err(Error::shape(format!("the gradient is {:?}, but the image has no pixels: {dims:?}", dy.dims())));
    }
    each(r, dims, |from, to, weight| dx[from] += weight * gradient[to]);
    Ok(Wide::floats(dy.dtype, dims, dx))
}
