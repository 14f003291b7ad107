//! Concatenates arrays along an axis.

use crate::cpu::split::{for_each_part, grain};
use crate::parallel::Pool;
use std::ops::Range;

/// Concatenates inputs of dims [outer, size_i, inner], for any sizes, along the middle axis.
///
/// An input's share of an output row is its length divided by `outer`, so neither sizes nor dtype
/// are needed.
pub fn concat(pool: &Pool, outer: usize, inputs: &[&[u8]], out: &mut [u8]) {
    assert_eq!(out.len(), inputs.iter().map(|input| input.len()).sum::<usize>(), "length of the output");
    if out.is_empty() {
        return;
    }
    assert!(inputs.iter().all(|input| input.len().is_multiple_of(outer)), "inputs of whole rows");
    let width = out.len() / outer;
    let part_len = if width < grain(1) { grain(1) / width * width } else { grain(1) };
    for_each_part(pool, out, part_len, &|start, part| {
        let end = start + part.len();
        let rows = start / width..end.div_ceil(width);
        let mut left = 0;
        for input in inputs {
            let len = input.len() / outer;
            let piece = Piece { input, len, left, width };
            match len {
                4 => piece.copy_fixed::<4>(rows.clone(), start, part),
                16 => piece.copy_fixed::<16>(rows.clone(), start, part),
                32 => piece.copy_fixed::<32>(rows.clone(), start, part),
                64 => piece.copy_fixed::<64>(rows.clone(), start, part),
                128 => piece.copy_fixed::<128>(rows.clone(), start, part),
                _ => piece.copy(rows.clone(), start, part),
            }
            left += len;
        }
    });
}

/// One input's share of the output.
struct Piece<'a> {
    input: &'a [u8],
    /// The number of bytes per row.
    len: usize,
    /// The position of these bytes in an output row, which has `width` bytes.
    left: usize,
    width: usize,
}

impl Piece<'_> {
    /// Copies the rows that overlap `part`, which starts at byte `start` of the output and may cut
    /// rows.
    fn copy(&self, rows: Range<usize>, start: usize, part: &mut [u8]) {
        for row in rows {
            let first = row * self.width + self.left;
            let (from, to) = (first.max(start), (first + self.len).min(start + part.len()));
            if from < to {
                let source = &self.input[row * self.len + from - first..][..to - from];
                part[from - start..to - start].copy_from_slice(source);
            }
        }
    }

    /// Does the same for a common length known at compile time: feature columns are many and
    /// narrow.
    fn copy_fixed<const N: usize>(&self, rows: Range<usize>, start: usize, part: &mut [u8]) {
        if start != rows.start * self.width || !part.len().is_multiple_of(self.width) {
            return self.copy(rows, start, part);
        }
        let values = &self.input.as_chunks::<N>().0[rows];
        for (row, value) in part.chunks_exact_mut(self.width).zip(values) {
            row[self.left..self.left + N].copy_from_slice(value);
        }
    }
}
