//! Copies matrix blocks into the layout that the tile kernels read fastest: rows close together,
//! padded to whole vectors.

use super::prefetch;
use super::simd::{Simd, for_every_isa};

/// A block of a row-major matrix: its first element and the distance between its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<P> {
    pub start: P,
    pub stride: usize,
}

for_every_isa! {
    /// Copies `rows` x `columns`, and pads each row of `to` with zeros up to a multiple of 16
    /// columns.
    ///
    /// # Safety
    /// `from` must be readable and `to` writable for that extent, including the padding.
    pub(crate) unsafe fn copy(from: Block<*const f32>, to: Block<*mut f32>, rows: usize, columns: usize) = copy_generic
}

#[inline(always)]
unsafe fn copy_generic<S: Simd>(from: Block<*const f32>, to: Block<*mut f32>, rows: usize, columns: usize) {
    let whole = columns / S::LANES * S::LANES;
    let padded = columns.next_multiple_of(16);
    // SAFETY: within the extent of the blocks, which the caller guarantees.
    unsafe {
        let mask = S::mask(columns - whole);
        for r in 0..rows {
            let (start, to) = (from.start.add(r * from.stride), to.start.add(r * to.stride));
            // The rows of a large matrix lie on different pages, which the processor does not
            // foresee.
            for i in (0..columns).step_by(16) {
                prefetch::line(start.wrapping_add(prefetch::AHEAD * from.stride + i));
            }
            let (from, mut i) = (start, 0);
            while i < whole {
                S::store(to.add(i), S::load(from.add(i)));
                i += S::LANES;
            }
            if i < padded {
                S::store(to.add(i), S::load_masked(from.add(i), mask));
                i += S::LANES;
            }
            while i < padded {
                S::store(to.add(i), S::splat(0.0));
                i += S::LANES;
            }
        }
    }
}

for_every_isa! {
    /// Writes `rows` x `columns` of the transpose of `from`, which has `columns` rows, padded as by
    /// [`copy`].
    ///
    /// # Safety
    /// As for [`copy`].
    pub(crate) unsafe fn transpose(from: Block<*const f32>, to: Block<*mut f32>, rows: usize, columns: usize) = transpose_generic
}

#[inline(always)]
unsafe fn transpose_generic<S: Simd>(from: Block<*const f32>, to: Block<*mut f32>, rows: usize, columns: usize) {
    let padded = columns.next_multiple_of(16);
    // SAFETY: within the extent of the blocks, which the caller guarantees.
    unsafe {
        let mut column = 0;
        while column < columns {
            let height = (columns - column).min(8);
            let mut row = 0;
            while row < rows {
                let width = (rows - row).min(8);
                let from = Block { start: from.start.add(column * from.stride + row), stride: from.stride };
                let to = Block { start: to.start.add(row * to.stride + column), stride: to.stride };
                if height == 8 && width == 8 {
                    S::transpose_8x8(from.start, from.stride, to.start, to.stride);
                } else {
                    for j in 0..height {
                        for i in 0..width {
                            *to.start.add(i * to.stride + j) = *from.start.add(j * from.stride + i);
                        }
                    }
                }
                row += width;
            }
            column += height;
        }
        for row in 0..rows {
            for column in columns..padded {
                *to.start.add(row * to.stride + column) = 0.0;
            }
        }
    }
}
