//! Pairs the elements of two arrays by NumPy's rule of broadcasting.

use crate::{Dims, Error, Result, element_count};

/// The pairs of elements of two arrays, in the order of the result.
///
/// Shapes are compared from the last axis. An axis of size 1, or one that only the other array has,
/// is repeated.
pub(super) struct Paired {
    dims: Dims,
    /// The distance of neighbours on each axis of the result; 0 where an array is repeated.
    strides: [Dims; 2],
    len: usize,
}

impl Paired {
    pub(super) fn new(a: &[usize], b: &[usize]) -> Result<Paired> {
        let rank = a.len().max(b.len());
        let size = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
        let mut dims = Dims::new();
        for axis in 0..rank {
            dims.push(match (size(a, axis), size(b, axis)) {
                (a, b) if a == b => a,
                (1, size) | (size, 1) => size,
                (a, b) => {
                    return Err(Error::shape(format!("the sizes {a} and {b} of axis {axis} do not fit together")));
                }
            });
        }
        let strides = [a, b].map(|own| {
            let mut strides: Dims = (0..rank).map(|_| 0).collect();
            let mut stride = 1usize;
            for axis in (0..rank).rev() {
                let size = size(own, axis);
                strides[axis] = if size == 1 { 0 } else { stride };
                // An empty array may have huge other axes; its strides are never used.
                stride = stride.saturating_mul(size);
            }
            strides
        });
        Ok(Paired { len: element_count(&dims)?, dims, strides })
    }

    /// The sizes of the result.
    pub(super) fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Finds memory for the result: a small array beside another may become a large one.
    pub(super) fn reserve<T>(&self, results: &mut Vec<T>) -> Result<()> {
        results.try_reserve_exact(self.len).map_err(|_| {
            Error::shape(format!("there is not enough memory for a result of {} elements, {:?}", self.len, self.dims))
        })
    }

    /// Calls a function with the indices of each pair, until it returns `false`.
    pub(super) fn each(&self, mut pair: impl FnMut(usize, usize) -> bool) {
        let [a, b] = &self.strides;
        let Some(inner) = self.dims.len().checked_sub(1) else {
            pair(0, 0);
            return;
        };
        let mut index: Dims = self.dims.iter().map(|_| 0).collect();
        let (mut i, mut j, mut n_left) = (0, 0, self.len);
        while n_left > 0 {
            for k in 0..self.dims[inner] {
                if !pair(i + k * a[inner], j + k * b[inner]) {
                    return;
                }
            }
            n_left -= self.dims[inner];
            // The next row: carry into the outer axes.
            for axis in (0..inner).rev() {
                index[axis] += 1;
                (i, j) = (i + a[axis], j + b[axis]);
                if index[axis] < self.dims[axis] {
                    break;
                }
                (i, j) = (i - index[axis] * a[axis], j - index[axis] * b[axis]);
                index[axis] = 0;
            }
        }
    }
}
