//! Convolutions and pooling over NHWC images.
//!
//! A convolution, its gradient to the image and its gradient to the filter visit the same triples
//! of (pixel, tap, result). They are therefore adjoint by construction.

use estimand_graph::op::{Padding, PoolWindow, Window};
use estimand_tensor::{Error, Result};

use super::value::{Wide, check_dims, count};

/// Along one axis: a position of the window, the tap, and the pixel under it.
type Tap = (usize, usize, usize);

/// The number of positions, and all taps inside the image, by position.
fn taps(size: usize, window: usize, stride: usize, dilation: usize, padding: Padding) -> Result<(usize, Vec<Tap>)> {
    let (positions, before, _) = padding.place(size, window, stride, dilation).ok_or_else(|| {
        Error::shape(format!("the window of {window} elements with dilation {dilation} is too large"))
    })?;
    let inside = move |position: usize, tap: usize| {
        let pixel = (position * stride + tap * dilation).checked_sub(before)?;
        (pixel < size).then_some((position, tap, pixel))
    };
    let all = (0..positions).flat_map(|p| (0..window).filter_map(move |tap| inside(p, tap)));
    Ok((positions, all.collect()))
}

/// The positions of a filter over images of known sizes.
struct Geometry {
    image: [usize; 4],
    filter: [usize; 4],
    result: [usize; 4],
    rows: Vec<Tap>,
    columns: Vec<Tap>,
    depthwise: bool,
}

fn four(dims: &[usize]) -> Result<[usize; 4]> {
    dims.try_into().map_err(|_| Error::internal(format!("a convolution got {dims:?}, expected four axes")))
}

impl Geometry {
    fn new(w: &Window, image: &[usize], filter: &[usize], depthwise: bool) -> Result<Geometry> {
        let (image, filter) = (four(image)?, four(filter)?);
        if image[3] != filter[2] {
            return Err(Error::shape(format!(
                "the image has {} channels, but the filter expects {}",
                image[3], filter[2]
            )));
        }
        let (height, rows) = taps(image[1], filter[0], w.strides.0, w.dilations.0, w.padding)?;
        let (width, columns) = taps(image[2], filter[1], w.strides.1, w.dilations.1, w.padding)?;
        let channels = if depthwise { filter[2] * filter[3] } else { filter[3] };
        Ok(Geometry { image, filter, result: [image[0], height, width, channels], rows, columns, depthwise })
    }

    /// Calls `f` with the positions in image, filter and result of each product.
    fn each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let [images, height, width, channels] = self.image;
        let [_, filter_width, _, outputs] = self.filter;
        let [_, result_height, result_width, result_channels] = self.result;
        for image in 0..images {
            for &(row, tap_row, y) in &self.rows {
                for &(column, tap_column, x) in &self.columns {
                    let pixel = (image * height + y) * width + x;
                    let tap = tap_row * filter_width + tap_column;
                    let result = (image * result_height + row) * result_width + column;
                    for channel in 0..channels {
                        for output in 0..outputs {
                            let to = if self.depthwise { channel * outputs + output } else { output };
                            f(
                                pixel * channels + channel,
                                (tap * channels + channel) * outputs + output,
                                result * result_channels + to,
                            );
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn convolve(w: &Window, depthwise: bool, x: &Wide, filter: &Wide) -> Result<Wide> {
    let geometry = Geometry::new(w, x.dims(), filter.dims(), depthwise)?;
    let (image, weights) = (x.as_floats()?, filter.as_floats()?);
    let mut result = vec![0.0; count(&geometry.result)];
    geometry.each(|i, f, r| result[r] += image[i] * weights[f]);
    Ok(Wide::floats(x.dtype, &geometry.result, result))
}

/// The gradient to an image of `dims`.
pub(super) fn backprop_input(w: &Window, depthwise: bool, filter: &Wide, dy: &Wide, dims: &[usize]) -> Result<Wide> {
    let geometry = Geometry::new(w, dims, filter.dims(), depthwise)?;
    check_dims("gradient", dy.dims(), &geometry.result)?;
    let (weights, gradient) = (filter.as_floats()?, dy.as_floats()?);
    let mut image = vec![0.0; count(dims)];
    geometry.each(|i, f, r| image[i] += gradient[r] * weights[f]);
    Ok(Wide::floats(dy.dtype, dims, image))
}

/// The gradient to a filter of `dims`.
pub(super) fn backprop_filter(w: &Window, depthwise: bool, x: &Wide, dy: &Wide, dims: &[usize]) -> Result<Wide> {
    let geometry = Geometry::new(w, x.dims(), dims, depthwise)?;
    check_dims("gradient", dy.dims(), &geometry.result)?;
    let (image, gradient) = (x.as_floats()?, dy.as_floats()?);
    let mut weights = vec![0.0; count(dims)];
    geometry.each(|i, f, r| weights[f] += image[i] * gradient[r]);
    Ok(Wide::floats(x.dtype, dims, weights))
}

/// A pooling window has the geometry of a depthwise filter with one output.
fn pooling(w: &PoolWindow, image: &[usize]) -> Result<Geometry> {
    let window = Window { strides: w.strides, dilations: (1, 1), padding: w.padding };
    Geometry::new(&window, image, &[w.size.0, w.size.1, four(image)?[3], 1], true)
}

/// For every result the pixel of its first maximum, in row-major order of the window.
fn maxima(geometry: &Geometry, image: &[f64]) -> Vec<Option<usize>> {
    let mut best: Vec<Option<usize>> = vec![None; count(&geometry.result)];
    geometry.each(|i, _, r| {
        if best[r].is_none_or(|b| image[i] > image[b]) {
            best[r] = Some(i);
        }
    });
    best
}

pub(super) fn max_pool(w: &PoolWindow, x: &Wide) -> Result<Wide> {
    let (geometry, image) = (pooling(w, x.dims())?, x.as_floats()?);
    let best = maxima(&geometry, image).into_iter();
    let result = best.map(|at| at.map_or(f64::NEG_INFINITY, |at| image[at])).collect();
    Ok(Wide::floats(x.dtype, &geometry.result, result))
}

pub(super) fn max_pool_grad(w: &PoolWindow, x: &Wide, dy: &Wide) -> Result<Wide> {
    let geometry = pooling(w, x.dims())?;
    check_dims("gradient", dy.dims(), &geometry.result)?;
    let mut dx = vec![0.0; x.len()];
    for (at, gradient) in maxima(&geometry, x.as_floats()?).into_iter().zip(dy.as_floats()?) {
        if let Some(at) = at {
            dx[at] += gradient;
        }
    }
    Ok(Wide::floats(x.dtype, x.dims(), dx))
}

/// The number of pixels under each result: padding does not count.
fn covered(geometry: &Geometry) -> Vec<f64> {
    let mut n = vec![0.0; count(&geometry.result)];
    geometry.each(|_, _, r| n[r] += 1.0);
    n
}

pub(super) fn avg_pool(w: &PoolWindow, x: &Wide) -> Result<Wide> {
    let (geometry, image) = (pooling(w, x.dims())?, x.as_floats()?);
    let mut sums = vec![0.0; count(&geometry.result)];
    geometry.each(|i, _, r| sums[r] += image[i]);
    let means = sums.iter().zip(covered(&geometry)).map(|(sum, n)| sum / n).collect();
    Ok(Wide::floats(x.dtype, &geometry.result, means))
}

/// The gradient to an image of `dims`.
pub(super) fn avg_pool_grad(w: &PoolWindow, dy: &Wide, dims: &[usize]) -> Result<Wide> {
    let geometry = pooling(w, dims)?;
    check_dims("gradient", dy.dims(), &geometry.result)?;
    let (gradient, n) = (dy.as_floats()?, covered(&geometry));
    let mut dx = vec![0.0; count(dims)];
    geometry.each(|i, _, r| dx[i] += gradient[r] / n[r]);
    Ok(Wide::floats(dy.dtype, dims, dx))
}
