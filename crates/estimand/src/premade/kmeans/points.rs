//! Points of batches, and the random numbers that choose among them.

use estimand_tensor::random::{Key, Stream};
use estimand_tensor::{Array, Error, Result};

/// Random numbers, one after another.
pub(super) struct Draws {
    stream: Stream,
    n: u64,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Draws {
        Draws { stream: Stream::new(Key::new(seed, "kmeans/initial_clusters"), 0), n: 0 }
    }

    /// A number in [0, n).
    pub(super) fn below(&mut self, n: usize) -> usize {
        let mut drawn = [0];
        self.stream.fill_integers_i64(self.n, 1, 0, n as i64, &mut drawn);
        self.n += 1;
        drawn[0] as usize
    }

    /// A number in (0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        const BITS: usize = 1 << 52;
        (self.below(BITS) as f64 + 0.5) / BITS as f64
    }
}

/// Points of a batch, row by row.
#[derive(Clone, Copy)]
pub(super) struct Points<'a> {
    pub(super) values: &'a [f32],
    pub(super) width: usize,
}

impl<'a> Points<'a> {
    pub(super) fn len(&self) -> usize {
        self.values.len() / self.width
    }

    pub(super) fn row(&self, i: usize) -> &'a [f32] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    /// The rows of a batch. Numbers that are not finite are refused: no distance to them is known.
    pub(super) fn of(batch: &'a Array) -> Result<Points<'a>> {
        let points = Points { values: batch.as_slice()?, width: batch.dims()[1] };
        if points.width == 0 {
            return Err(Error::shape("the points of k-means have no features")
                .help("give KMeans a column of at least one number"));
        }
        match points.values.iter().position(|value| !value.is_finite()) {
            Some(i) => {
                let (value, row, feature) = (points.values[i], i / points.width, i % points.width);
                let text = format!("a point is {value} in row {row}, feature {feature} of its batch");
                Err(Error::data(text).help("fill such rows in the input (map), or leave them out (filter)"))
            }
            None => Ok(points),
        }
    }
}
