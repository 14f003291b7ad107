//! Kernels that rearrange elements without reading their values: transpose, slice, pad,
//! concatenate, and filling by rule.
//!
//! Every kernel here takes the size of an element (1, 4 or 8 bytes) and byte slices, so one kernel
//! serves all dtypes. Lengths that do not match the dims are a bug of the caller and panic; shape
//! inference checks for the mistakes of users.
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

/// Transposes `x`, which has `dims`: axis `k` of `out` is axis `perm[k]` of `x`.
pub fn transpose(pool: &Pool, dims: &[usize], perm: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).transpose(perm).read(pool, elem_size, x, out);
}

/// Copies the block of `size` elements that starts at `begin`, both given per axis.
pub fn slice(pool: &Pool, dims: &[usize], begin: &[usize], size: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).slice(begin, &[], size).read(pool, elem_size, x, out);
}

/// Like [`slice()`], but takes every `strides[k]`-th element, backwards if the stride is negative.
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

/// The gradient of [`strided_slice`]: writes `dy` to its positions and zeros elsewhere. `dims` are
/// those of the sliced array.
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

/// Reverses the array along `axes`.
pub fn reverse(pool: &Pool, dims: &[usize], axes: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).reverse(axes).read(pool, elem_size, x, out);
}

/// Repeats `x` of `dims` to the shape `to` by NumPy's rule: shapes are aligned at the last axis,
/// and axes of size 1 are stretched.
pub fn broadcast_to(pool: &Pool, dims: &[usize], to: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).broadcast_to(to).read(pool, elem_size, x, out);
}

/// Repeats `x` `multiples[k]` times along each axis.
pub fn tile(pool: &Pool, dims: &[usize], multiples: &[usize], elem_size: usize, x: &[u8], out: &mut [u8]) {
    View::dense(dims).tile(multiples).read(pool, elem_size, x, out);
}

/// Calls a function that is generic over the element `[u8; N]` with N as the element size.
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
