//! Resizes images: `ResizeBilinear`, `ResizeNearestNeighbor` and their gradients, NHWC, f32.
//!
//! The position of output pixel i in the input follows TensorFlow's rule, in f32: `i * scale`, or
//! `(i + 0.5) * scale - 0.5` with half-pixel centres. The scale is in / out; with aligned corners
//! it is (in - 1) / (out - 1).

use super::size::product;
use super::split::for_each_rows;
use crate::parallel::Pool;

/// Sizes and options of a resize. No size is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resize {
    /// Height and width of the input.
    pub from: [usize; 2],
    /// Height and width of the output.
    pub to: [usize; 2],
    /// Values per pixel.
    pub channels: usize,
    /// Whether the centres of the corner pixels of input and output coincide. Cannot be combined
    /// with half-pixel centres.
    pub align_corners: bool,
    /// Whether a pixel's value belongs to its centre rather than to its upper left corner.
    pub half_pixel_centers: bool,
}

/// The two input positions around an output position, and the fraction of the way from the first to
/// the second.
#[derive(Clone, Copy)]
struct Between {
    lower: usize,
    upper: usize,
    weight: f32,
}

impl Resize {
    fn scale(&self, axis: usize) -> f32 {
        let (from, to) = (self.from[axis], self.to[axis]);
        if self.align_corners && to > 1 { (from - 1) as f32 / (to - 1) as f32 } else { from as f32 / to as f32 }
    }

    fn between(&self, axis: usize, scale: f32, i: usize) -> Between {
        let at = if self.half_pixel_centers { (i as f32 + 0.5) * scale - 0.5 } else { i as f32 * scale };
        let floor = at.floor();
        let last = self.from[axis] - 1;
        Between { lower: floor.max(0.0) as usize, upper: (at.ceil() as usize).min(last), weight: at - floor }
    }

    fn nearest(&self, axis: usize, scale: f32, i: usize) -> usize {
        let at = if self.half_pixel_centers { (i as f32 + 0.5) * scale } else { i as f32 * scale };
        // TF: aligned corners round to the nearest pixel, all other modes round down (fixture
        // `nearest`).
        let pixel = if self.align_corners { at.round() } else { at.floor() };
        (pixel as usize).min(self.from[axis] - 1)
    }

    /// The input pixel of each output pixel along an axis, as [`resize_nearest`] takes them.
    pub fn nearest_pixels(&self, axis: usize) -> impl Iterator<Item = usize> {
        let (resize, scale) = (*self, self.scale(axis));
        (0..self.to[axis]).map(move |i| resize.nearest(axis, scale, i))
    }

    /// The number of values in one row and in a whole image of a height and width.
    fn sizes(&self, [height, width]: [usize; 2]) -> (usize, usize) {
        (product(&[width, self.channels]), product(&[height, width, self.channels]))
    }

    /// Panics unless `x` and `y` hold the same number of whole images, before and after the resize.
    /// Returns whether there is anything to do.
    fn check(&self, x: usize, y: usize) -> bool {
        let ((_, x_image), (_, y_image)) = (self.sizes(self.from), self.sizes(self.to));
        let fits = |len: usize, image: usize| if image == 0 { len == 0 } else { len.is_multiple_of(image) };
        assert!(fits(x, x_image) && fits(y, y_image), "{x} values before and {y} after {self:?}");
        let is_empty = x == 0 || y == 0;
        assert!(is_empty || x / x_image == y / y_image, "{x} values before and {y} after {self:?}");
        !is_empty
    }
}

/// Bilinear resizing: each output pixel is a weighted mean of the four input pixels around it.
pub fn resize_bilinear(pool: &Pool, resize: &Resize, x: &[f32], out: &mut [f32]) {
    if !resize.check(x.len(), out.len()) {
        return;
    }
    let ((x_row, x_image), (out_row, _)) = (resize.sizes(resize.from), resize.sizes(resize.to));
    let (down, across, channels) = (resize.scale(0), resize.scale(1), resize.channels);
    for_each_rows(pool, out, out_row, &|first, part| {
        for (number, row) in (first..).zip(part.chunks_exact_mut(out_row)) {
            let x = &x[number / resize.to[0] * x_image..][..x_image];
            let v = resize.between(0, down, number % resize.to[0]);
            let (top, bottom) = (&x[v.lower * x_row..][..x_row], &x[v.upper * x_row..][..x_row]);
            for (column, pixel) in row.chunks_exact_mut(channels).enumerate() {
                let h = resize.between(1, across, column);
                let (left, right) = (h.lower * channels, h.upper * channels);
                for (c, value) in pixel.iter_mut().enumerate() {
                    let above = top[left + c] + (top[right + c] - top[left + c]) * h.weight;
                    let below = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * h.weight;
                    *value = above + (below - above) * v.weight;
                }
            }
        }
    });
}

/// The gradient of [`resize_bilinear`]: each pixel of `dy` is distributed to the four input pixels
/// it was computed from.
pub fn resize_bilinear_grad(pool: &Pool, resize: &Resize, dy: &[f32], dx: &mut [f32]) {
    if !resize.check(dx.len(), dy.len()) {
        return dx.fill(0.0);
    }
    let (down, across) = (resize.scale(0), resize.scale(1));
    share_out(pool, resize, dy, dx, &|y, x, add| {
        let (v, h) = (resize.between(0, down, y), resize.between(1, across, x));
        for (row, row_weight) in [(v.lower, 1.0 - v.weight), (v.upper, v.weight)] {
            for (column, weight) in [(h.lower, 1.0 - h.weight), (h.upper, h.weight)] {
                add(row, column, row_weight * weight);
            }
        }
    });
}

/// Nearest-neighbour resizing: each output pixel is one input pixel.
pub fn resize_nearest(pool: &Pool, resize: &Resize, x: &[f32], out: &mut [f32]) {
    if !resize.check(x.len(), out.len()) {
        return;
    }
    let ((x_row, x_image), (out_row, _)) = (resize.sizes(resize.from), resize.sizes(resize.to));
    let (down, across, channels) = (resize.scale(0), resize.scale(1), resize.channels);
    for_each_rows(pool, out, out_row, &|first, part| {
        for (number, row) in (first..).zip(part.chunks_exact_mut(out_row)) {
            let (image, y) = (number / resize.to[0], number % resize.to[0]);
            let source = &x[image * x_image + resize.nearest(0, down, y) * x_row..][..x_row];
            for (column, pixel) in row.chunks_exact_mut(channels).enumerate() {
                pixel.copy_from_slice(&source[resize.nearest(1, across, column) * channels..][..channels]);
            }
        }
    });
}

/// The gradient of [`resize_nearest`]: each pixel of `dy` is added to the pixel it was copied from.
pub fn resize_nearest_grad(pool: &Pool, resize: &Resize, dy: &[f32], dx: &mut [f32]) {
    if !resize.check(dx.len(), dy.len()) {
        return dx.fill(0.0);
    }
    let (down, across) = (resize.scale(0), resize.scale(1));
    share_out(pool, resize, dy, dx, &|y, x, add| {
        add(resize.nearest(0, down, y), resize.nearest(1, across, x), 1.0);
    });
}

/// Adds every pixel (y, x) of `dy`, in order, to the pixels of `dx` that `targets` names, with
/// their weights.
///
/// A task has one or more whole images, since any two pixels of `dy` may add to the same pixel of
/// `dx`.
fn share_out(
    pool: &Pool,
    resize: &Resize,
    dy: &[f32],
    dx: &mut [f32],
    targets: &(impl Fn(usize, usize, &mut dyn FnMut(usize, usize, f32)) + Sync),
) {
    let ((x_row, x_image), (_, y_image)) = (resize.sizes(resize.from), resize.sizes(resize.to));
    let channels = resize.channels;
    for_each_rows(pool, dx, x_image, &|first, part| {
        part.fill(0.0);
        for (image, dx) in (first..).zip(part.chunks_exact_mut(x_image)) {
            for (number, pixel) in dy[image * y_image..][..y_image].chunks_exact(channels).enumerate() {
                targets(number / resize.to[1], number % resize.to[1], &mut |row, column, weight| {
                    let sums = &mut dx[row * x_row + column * channels..][..channels];
                    sums.iter_mut().zip(pixel).for_each(|(sum, d)| *sum += d * weight);
                });
            }
        }
    });
}

#[cfg(test)]
mod tests;
