//! Cuts k: groups segments of an image into blocks of the arithmetic rule.

use std::mem::MaybeUninit;

use super::ConvShape;
use crate::cpu::microkernel::{BLOCK_K, Segment};
use crate::cpu::size::product;

/// One block of k.
pub(super) struct BlockOfK<'a> {
    /// The segments of the left operand, all of the same length.
    pub segments: &'a [Segment],
    /// The number of rows of the right operand before this block.
    pub first: usize,
    pub is_last: bool,
}

impl BlockOfK<'_> {
    /// The number of k in the block.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len).sum()
    }
}

/// Calls `body` for each block of `n` segments of length `len`, in order. If there is no k, it is
/// called once with an empty block.
pub(super) fn for_each_block(n: usize, len: usize, offset: impl Fn(usize) -> usize, mut body: impl FnMut(&BlockOfK)) {
    if n == 0 || len == 0 {
        return body(&BlockOfK { segments: &[], first: 0, is_last: true });
    }
    if len <= BLOCK_K {
        // Not zeroed: with short segments that would cost more than some of the products.
        let mut segments = [const { MaybeUninit::uninit() }; BLOCK_K];
        for first in (0..n).step_by(BLOCK_K / len) {
            let count = (BLOCK_K / len).min(n - first);
            for (i, at) in segments[..count].iter_mut().enumerate() {
                at.write(Segment { start: offset(first + i), len });
            }
            // SAFETY: the loop has written the first `count` elements.
            let segments = unsafe { segments[..count].assume_init_ref() };
            body(&BlockOfK { segments, first: first * len, is_last: first + count == n });
        }
        return;
    }
    for segment in 0..n {
        for start in (0..len).step_by(BLOCK_K) {
            let part = Segment { start: offset(segment) + start, len: BLOCK_K.min(len - start) };
            let is_last = segment + 1 == n && start + part.len == len;
            body(&BlockOfK { segments: &[part], first: segment * len + start, is_last });
        }
    }
}

/// The stretches of an image that a filter sees contiguously: its rows, or its single taps if they
/// are dilated.
pub(super) struct Stretches {
    /// The number of stretches.
    pub n: usize,
    /// The number of floats in each.
    pub len: usize,
    per_row: usize,
    row_step: usize,
    column_step: usize,
}

impl Stretches {
    /// The stretches in an image whose rows are `pitch` floats apart.
    pub fn new(shape: &ConvShape, pitch: usize) -> Self {
        let [rows, columns] = shape.window.size;
        let [row_dilation, column_dilation] = shape.window.dilation;
        let per_row = if column_dilation == 1 { 1 } else { columns };
        Stretches {
            n: product(&[rows, per_row]),
            len: product(&[columns / per_row.max(1), shape.in_channels]),
            per_row,
            // A filter with one row or column does not use its dilation.
            row_step: row_dilation.wrapping_mul(pitch),
            column_step: column_dilation.wrapping_mul(shape.in_channels),
        }
    }

    /// The offset of stretch `i` from the window's first element.
    pub fn offset(&self, i: usize) -> usize {
        i / self.per_row * self.row_step + i % self.per_row * self.column_step
    }
}
