//! Matrix products and ops on images.

use estimand_graph::{Padding, Transposed};
use estimand_tensor::{Dim, Result, Shape};

use super::facts::Facts;
use super::generator::{Generator, PoolValue};
use super::leaves;

pub(super) fn product(g: &mut Generator) -> Result<bool> {
    let Some(a) = g.find(|i| i.is_float() && i.dims.len() >= 2) else { return Ok(false) };
    let rank = a.dims.len();
    let (transpose_a, transpose_b) = (g.dice.chance(30), g.dice.chance(30));
    let (rows, inner) = match transpose_a {
        true => (a.dims[rank - 1], a.dims[rank - 2]),
        false => (a.dims[rank - 2], a.dims[rank - 1]),
    };
    let columns = g.dice.pick(&g.palette.clone());
    let mut dims = if transpose_b { vec![columns, inner] } else { vec![inner, columns] };
    // Other leading axes, of size 1, or none.
    for axis in (0..rank - 2).rev() {
        let known = a.tensor.shape().dims()[axis].known();
        match (g.dice.below(3), known) {
            (0, _) => break,
            (1, Some(n)) => dims.insert(0, n),
            _ => dims.insert(0, 1),
        }
    }
    if a.dims.len() > 5 || !g.affords(a.len().max(1) * columns) || !g.affords(rows * columns) {
        return Ok(false);
    }
    let b = leaves::weights(g, &dims)?;
    let facts = a.facts.times(&b.facts).summed(inner);
    let product = match (transpose_a, transpose_b) {
        (false, false) => a.tensor.matmul(&b.tensor),
        (true, false) => a.tensor.matmul_with(&b.tensor, Transposed::Left),
        (false, true) => a.tensor.matmul_with(&b.tensor, Transposed::Right),
        (true, true) => a.tensor.matmul_with(&b.tensor, Transposed::Both),
    };
    g.push(product, facts)
}

/// Finds an image in the pool, or creates one: [batch, height, width, channels]. Only the batch may
/// be empty.
fn find_image(g: &mut Generator) -> Result<PoolValue> {
    let fits = |i: &PoolValue| {
        let known = |d: &Dim| d.known().is_some_and(|n| n > 0);
        i.is_float() && i.dims.len() == 4 && i.tensor.shape().dims()[1..].iter().all(known)
    };
    if let Some(found) = g.find(fits) {
        return Ok(found);
    }
    let (h, w, c) = (g.dice.pick(&[3, 5, 7, 8]), g.dice.pick(&[3, 5, 7, 8]), g.dice.pick(&[1, 2, 3]));
    let n = g.batch;
    let first = if g.dice.chance(80) { Dim::BATCH } else { Dim::Known(n) };
    leaves::float_feed(g, Some((Shape::from([first, h.into(), w.into(), c.into()]), vec![n, h, w, c])))
}

pub(super) fn image(g: &mut Generator) -> Result<bool> {
    let x = find_image(g)?;
    let padding = g.dice.pick(&[Padding::Same, Padding::Valid]);
    let fitting = |g: &mut Generator, n: usize| g.dice.between(1, n.min(3));
    let window = (fitting(g, x.dims[1]), fitting(g, x.dims[2]));
    let strides = (g.dice.between(1, 2), g.dice.between(1, 2));
    let taps = window.0 * window.1;
    let t = &x.tensor;
    if !g.affords(x.len() * 4) {
        return Ok(false);
    }
    match g.dice.below(8) {
        0..3 => {
            let filter = leaves::weights(g, &[window.0, window.1, x.dims[3], next_channels(x.dims[3])])?;
            let facts = x.facts.times(&filter.facts).summed(taps * x.dims[3]);
            // Dilation needs a larger image. TF: its only gradient for it, oneDNN's, miscomputes
            // the shapes of empty images.
            let fits = |n: usize, k: usize| padding == Padding::Same || (k - 1) * 2 < n;
            let never_empty = g.batch > 0 && !g.palette.contains(&0);
            if g.dice.chance(30) && never_empty && fits(x.dims[1], window.0) && fits(x.dims[2], window.1) {
                return g.push(t.conv2d_dilated(&filter.tensor, (1, 1), (2, 2), padding), facts);
            }
            g.push(t.conv2d(&filter.tensor, strides, padding), facts)
        }
        // TF: with an empty batch, its gradient of a depthwise filter is left uninitialised.
        3 if x.dims[0] > 0 => {
            let filter = leaves::weights(g, &[window.0, window.1, x.dims[3], 2])?;
            let facts = x.facts.times(&filter.facts).summed(taps);
            // TensorFlow's kernel supports only equal strides.
            g.push(t.depthwise_conv2d(&filter.tensor, (strides.0, strides.0), padding), facts)
        }
        4 => {
            let filter = leaves::weights(g, &[window.0, window.1, 2, x.dims[3]])?;
            let size = |n: usize, stride: usize, k: usize| match padding {
                Padding::Same => n * stride,
                Padding::Valid => (n - 1) * stride + k,
            };
            let to = (size(x.dims[1], strides.0, window.0), size(x.dims[2], strides.1, window.1));
            if !g.affords(x.dims[0] * to.0 * to.1 * 2) {
                return Ok(false);
            }
            let facts = x.facts.times(&filter.facts).summed(taps * x.dims[3]);
            g.push(t.conv2d_transpose(&filter.tensor, to, strides, padding), facts)
        }
        5 => {
            let Some(x) = leaves::separated(g, &x)? else { return Ok(false) };
            g.push(x.tensor.max_pool(window, strides, padding), x.facts)
        }
        6 => g.push(t.avg_pool(window, strides, padding), x.facts.rising(|v| v)),
        _ => {
            let size = (g.dice.between(1, 6), g.dice.between(1, 6));
            match g.dice.chance(50) {
                true => g.push(t.resize_bilinear(size), Facts::real(x.facts.low, x.facts.high)),
                false => g.push(t.resize_nearest(size), x.facts),
            }
        }
    }
}

/// The channels of a convolution's result: a few, and not always the same number as before.
fn next_channels(channels: usize) -> usize {
    channels % 3 + 1
}
