//! Axes with strides, for views and transpositions.

use smallvec::SmallVec;

/// One axis of a view: `len` positions that are `stride` elements apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Axis {
    pub len: usize,
    pub stride: isize,
}

/// The axes of a view, on the stack up to rank 8.
pub(super) type Axes = SmallVec<[Axis; 8]>;

/// The offset of the position with number `index` in row-major order.
pub(super) fn locate(axes: &[Axis], offset: usize, mut index: usize) -> usize {
    let mut at = offset;
    for axis in axes.iter().rev() {
        at = at.wrapping_add_signed((index % axis.len) as isize * axis.stride);
        index /= axis.len;
    }
    at
}
