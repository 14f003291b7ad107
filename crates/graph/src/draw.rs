//! Random numbers of the `Random` op: the same bits in every executor.

use estimand_tensor::random::{Key, Stream};

use crate::op::RandomKind;

/// The position of a run in the sequence of all random numbers.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The seed of all randomness.
    pub seed: u64,
    /// The number of the step.
    pub step: u64,
    /// The number of the first row in the global batch.
    pub row_offset: u64,
}

impl Position {
    /// Returns the stream of a key, its first row, and the count of numbers in one row. The first
    /// axis counts rows.
    fn rows(self, key: &str, dims: &[usize]) -> (Stream, u64, usize) {
        let stream = Stream::new(Key::new(self.seed, key), self.step);
        match dims {
            // A scalar belongs to no row: all workers draw the same number.
            [] => (stream, 0, 1),
            [_, row @ ..] => (stream, self.row_offset, row.iter().product()),
        }
    }

    /// Fills an array of `dims` with floats. For integers use `draw_integers`.
    pub fn draw_floats(self, kind: RandomKind, key: &str, dims: &[usize], out: &mut [f32]) {
        let (stream, first, width) = self.rows(key, dims);
        match kind {
            RandomKind::Normal => stream.fill_normal_f32(first, width, out),
            RandomKind::TruncatedNormal => stream.fill_truncated_normal_f32(first, width, out),
            RandomKind::Uniform | RandomKind::Integers { .. } => stream.fill_uniform_f32(first, width, out),
        }
    }

    /// Fills an array of `dims` with integers in [low, high).
    pub fn draw_integers(self, low: i64, high: i64, key: &str, dims: &[usize], out: &mut [i64]) {
        let (stream, first, width) = self.rows(key, dims);
        stream.fill_integers_i64(first, width, low, high, out);
    }
}
