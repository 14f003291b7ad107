//! Rearranging elements without looking at them: transpose, slice, pad, concatenate, and filling by
//! rule.
//!
//! Every kernel here takes the size of an element (1, 4 or 8 bytes) and byte slices, so one serves
//! all dtypes. Lengths that disagree with the dims are the caller's bug and panic; what users can
//! get wrong is checked by shape inference.
//!
//! TensorFlow's `Pack` along an axis is [`concat()`] of inputs [outer, 1, inner]; `Unpack` is a
//! [`slice()`] of size 1 per output; `Split` is a [`slice()`] per output. `Squeeze`, `ExpandDims`
//! and `Reshape` move nothing.

mod axis;
mod band;
mod concat;
mod fill;
mod pad;
mod transpose;
mod view;

pub use band::band_part;
pub use concat::concat;
pub use fill::{fill, one_hot, range};
pub use pad::{Mirror, mirror_pad, pad};
pub use view::{View, resolve_range};

use crate::parallel::Pool;

/// Axis `k` of `out` is axis `perm[k]` of `x`, which has `dims`.
pub fn transpose(pool: &Pool, dims: &[usize], perm: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).transpose(perm).read(pool, elem_size, x, out);
}

/// The block of `size` elements that starts at `begin`, both per axis.
pub fn slice(pool: &Pool, dims: &[usize], begin: &[usize], size: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).slice(begin, &[], size).read(pool, elem_size, x, out);
}

/// As [`slice()`], taking every `strides[k]`-th element, backwards where that is negative.
///
/// [`resolve_range`] turns TensorFlow's begin, end and stride into begin and size.
#[allow(clippy::too_many_arguments)] // one more than `slice`, and interchangeable with it
pub fn strided_slice(
    pool: &Pool,
    dims: &[usize],
    begin: &[usize],
    strides: &[isize],
    size: &[usize],
    elem_size: usize,
    x: &[u8],
    out: &mut [u8],
) {
    View::dense(dims).slice(begin, strides, size).read(pool, elem_size, x, out);
}

/// The gradient of [`strided_slice`]: `dy` in its place among zeros. `dims` are those of the sliced
/// array.
#[allow(clippy::too_many_arguments)] // mirrors `strided_slice`
pub fn strided_slice_grad(
    pool: &Pool,
    dims: &[usize],
    begin: &[usize],
    strides: &[isize],
    size: &[usize],
    elem_size: usize,
    dy: &[u8],
    out: &mut [u8],
) {
    fill(pool, &[0; 8][..elem_size], out);
    View::dense(dims).slice(begin, strides, size).write(pool, elem_size, dy, out);
}

/// The whole array, backwards along `axes`.
pub fn reverse(pool: &Pool, dims: &[usize], axes: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).reverse(axes).read(pool, elem_size, x, out);
}

/// `x` of `dims` repeated to the shape `to`, by NumPy's rule: aligned at the last axis, 1
/// stretches.
pub fn broadcast_to(pool: &Pool, dims: &[usize], to: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).broadcast_to(to).read(pool, elem_size, x, out);
}

/// `x` laid side by side `multiples[k]` times along each axis.
pub fn tile(pool: &Pool, dims: &[usize], multiples: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).tile(multiples).read(pool, elem_size, x, out);
}

/// Calls a function generic over the element `[u8; N]` for the element size at hand.
macro_rules! by_size {
    ($elem_size:expr, $n:ident => $call:expr) => {
        match $elem_size {
            1 => {
                const $n: usize = 1;
                $call
            }
            4 => {
                const $n: usize = 4;
                $call
            }
            8 => {
                const $n: usize = 8;
                $call
            }
            other => panic!("elements of {other} bytes"),
        }
    };
}
pub(super) use by_size;

#[cfg(test)]
mod tests;
