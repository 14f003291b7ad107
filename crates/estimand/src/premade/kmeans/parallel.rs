//! k-means||: candidates from a few passes over the input, then k-means++ among them.
//!
//! A pass keeps the rows with the largest `ln(u) / d`, where `u` is uniform in (0, 1) and `d` the
//! squared distance to the candidates so far. That draws rows without repetition, by their
//! distance, and needs no sum of distances before the pass.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use estimand_tensor::{Error, Result};

use super::plus_plus::{plus_plus, squared_distance};
use super::points::{Draws, Points};

/// The passes of k-means||.
pub(super) struct Parallel {
    n_clusters: usize,
    /// The number of candidates that a round draws.
    n_drawn: usize,
    max_rows: usize,
    width: usize,
    rounds_left: usize,
    /// Rows of this pass so far.
    n_rows: usize,
    candidates: Vec<f32>,
    /// The nearest of the candidates that earlier passes compared, and its squared distance; by
    /// row.
    nearest: Vec<(u32, f64)>,
    /// The number of candidates that `nearest` knows.
    n_known: usize,
    drawn: BinaryHeap<Drawn>,
}

/// A row that may become a candidate. The heap's top is the row with the smallest key.
struct Drawn {
    key: f64,
    row: usize,
    point: Vec<f32>,
}

impl Ord for Drawn {
    fn cmp(&self, other: &Drawn) -> Ordering {
        other.key.total_cmp(&self.key).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Drawn {
    fn partial_cmp(&self, other: &Drawn) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Drawn {
    fn eq(&self, other: &Drawn) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Drawn {}

impl Parallel {
    pub(super) fn new(n_clusters: usize, rounds: usize, max_rows: usize) -> Parallel {
        Parallel {
            n_clusters,
            n_drawn: 2 * n_clusters,
            max_rows,
            width: 1,
            rounds_left: rounds,
            n_rows: 0,
            candidates: Vec::new(),
            nearest: Vec::new(),
            n_known: 0,
            drawn: BinaryHeap::new(),
        }
    }

    /// Looks at a batch. Returns whether the pass has read enough rows.
    pub(super) fn batch(&mut self, points: Points<'_>, draws: &mut Draws) -> Result<bool> {
        self.width = points.width;
        if self.candidates.is_empty() && points.len() > 0 {
            self.candidates.extend_from_slice(points.row(draws.below(points.len())));
        }
        for i in 0..points.len().min(self.max_rows - self.n_rows) {
            let (row, point) = (self.n_rows, points.row(i));
            if row == self.nearest.len() {
                self.nearest.push((0, f64::INFINITY));
            }
            let known = &mut self.nearest[row];
            for (c, candidate) in self.candidates.chunks_exact(self.width).enumerate().skip(self.n_known) {
                let distance = squared_distance(point, candidate);
                if distance < known.1 {
                    *known = (c as u32, distance);
                }
            }
            self.n_rows += 1;
            if self.rounds_left > 0 && known.1 > 0.0 {
                let key = draws.uniform().ln() / known.1;
                if self.drawn.len() < self.n_drawn || self.drawn.peek().is_some_and(|least| key > least.key) {
                    self.drawn.push(Drawn { key, row, point: point.to_vec() });
                    if self.drawn.len() > self.n_drawn {
                        self.drawn.pop();
                    }
                }
            }
        }
        Ok(self.n_rows == self.max_rows)
    }

    /// Ends a pass. Returns the centers after the last one.
    pub(super) fn end_of_pass(&mut self, num_retries: i64, draws: &mut Draws) -> Result<Option<Vec<f32>>> {
        if self.n_rows < self.n_clusters {
            let (n, k) = (self.n_rows, self.n_clusters);
            return Err(Error::config(format!("the input has {n} rows, too few for {k} clusters"))
                .help("give more rows, or ask for fewer clusters"));
        }
        self.n_known = self.candidates.len() / self.width;
        if self.rounds_left > 0 {
            let mut drawn = std::mem::take(&mut self.drawn).into_vec();
            drawn.sort_by_key(|drawn| drawn.row);
            drawn.iter().for_each(|drawn| self.candidates.extend_from_slice(&drawn.point));
            // Without new candidates, every row is one already.
            self.rounds_left = if drawn.is_empty() { 0 } else { self.rounds_left - 1 };
            self.n_rows = 0;
            return Ok(None);
        }
        let points = Points { values: &self.candidates, width: self.width };
        if points.len() < self.n_clusters {
            let (n, k) = (points.len(), self.n_clusters);
            return Err(Error::config(format!("the input has {n} different rows, too few for {k} clusters"))
                .help("ask for fewer clusters"));
        }
        let mut weights = vec![0.0; points.len()];
        self.nearest.iter().for_each(|&(candidate, _)| weights[candidate as usize] += 1.0);
        let rows = plus_plus(points, Some(&weights), self.n_clusters, num_retries, draws);
        Ok(Some(rows.into_iter().flat_map(|row| points.row(row).to_vec()).collect()))
    }
}
