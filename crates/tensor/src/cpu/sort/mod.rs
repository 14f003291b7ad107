//! The k largest values of each row: `TopKV2`.

use super::number::Number;
use super::split::grain;
use crate::parallel::{DisjointMut, Pool};

/// Finds the `k` largest of each row of `n` values, largest first, and their positions in the row.
///
/// Of equal values the one with the lower index comes first, as in TensorFlow; a NaN comes after
/// every number. `values` and `indices` hold `k` per row, and `k` is at most `n`.
pub fn top_k<T: Number>(pool: &Pool, n: usize, k: usize, x: &[T], values: &mut [T], indices: &mut [i32]) {
    assert!(k <= n, "the {k} largest of {n} values");
    if k == 0 || x.is_empty() {
        return;
    }
    let n_rows = x.len() / n;
    assert!(values.len() == n_rows * k && indices.len() == n_rows * k, "{n_rows} rows of {k} values and indices");
    let per_task = (grain(size_of::<T>()) / n).max(1);
    let (values, indices) = (DisjointMut::new(values), DisjointMut::new(indices));
    pool.run(n_rows.div_ceil(per_task), &|task| {
        for row in task * per_task..n_rows.min((task + 1) * per_task) {
            // SAFETY: each row belongs to one task.
            let mut heap = unsafe { Heap { values: values.slice(row * k, k), indices: indices.slice(row * k, k) } };
            heap.select(&x[row * n..(row + 1) * n]);
        }
    });
}

/// The best values so far, as a heap with the worst on top, stored in the output itself.
struct Heap<'a, T> {
    values: &'a mut [T],
    indices: &'a mut [i32],
}

impl<T: Number> Heap<'_, T> {
    fn select(&mut self, row: &[T]) {
        let k = self.values.len();
        self.values.copy_from_slice(&row[..k]);
        (0..).zip(self.indices.iter_mut()).for_each(|(i, index)| *index = i);
        for parent in (0..k / 2).rev() {
            self.sink(parent, k);
        }
        for (i, &value) in row.iter().enumerate().skip(k) {
            // An equal value further right is worse than the top, so comparing the value is enough.
            if value > self.values[0] || self.values[0].is_nan() && !value.is_nan() {
                (self.values[0], self.indices[0]) = (value, i as i32);
                self.sink(0, k);
            }
        }
        // The worst of the remaining values goes last, and so on: the best ends up first.
        for end in (1..k).rev() {
            self.swap(0, end);
            self.sink(0, end);
        }
    }

    /// Moves an element down until both its children are better.
    fn sink(&mut self, mut at: usize, len: usize) {
        loop {
            let mut child = 2 * at + 1;
            if child >= len {
                return;
            }
            if child + 1 < len && self.is_worse(child + 1, child) {
                child += 1;
            }
            if !self.is_worse(child, at) {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn is_worse(&self, a: usize, b: usize) -> bool {
        let (x, y) = (self.values[a], self.values[b]);
        match (x.is_nan(), y.is_nan()) {
            (false, false) if x != y => x < y,
            (true, false) => true,
            (false, true) => false,
            _ => self.indices[a] > self.indices[b],
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.values.swap(a, b);
        self.indices.swap(a, b);
    }
}

#[cfg(test)]
mod tests;
