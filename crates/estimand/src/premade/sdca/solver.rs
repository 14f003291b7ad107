//! Stochastic dual coordinate ascent: one pass over the examples of a batch.
//!
//! Minimises the weighted sum of the losses of all examples plus `l1 * |w| + l2 / 2 * |w|^2`. Each
//! example has a dual variable `a`, and the weights follow from all of them: `w = shrink(v)`, where
//! `v` is the sum of `weight * a * example / l2`, and `shrink` moves each number towards 0 by
//! `l1 / l2`. A step moves the dual variables of a batch one after another to their best values.
//!
//! All numbers are f64 and all sums have a fixed order, so the result does not depend on threads.

use estimand_tensor::random::{Key as Random, Stream};
use estimand_tensor::{Error, Result};

use super::loss::SdcaLoss;
use super::rows::Rows;
use super::table::{Key, Place, Table};

/// A dual variable of TensorFlow may be this far from those that its label allows: it is an f32.
const ROUNDED: f64 = 1e-6;
/// Bits of a random number.
const BITS: u32 = 52;

/// What is minimised, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) loss: SdcaLoss,
    pub(super) l1: f64,
    pub(super) l2: f64,
    /// Steps are as careful as if this number of workers changed the weights at the same time.
    pub(super) n_partitions: f64,
    pub(super) adaptive: bool,
}

/// The examples of a batch.
#[derive(Default)]
pub(super) struct Examples {
    pub(super) rows: Rows,
    pub(super) keys: Vec<Key>,
    pub(super) labels: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

/// How far a training with [`LinearSdca`](super::LinearSdca) has come. All numbers are divided by
/// the sum of the weights of the examples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SdcaProgress {
    /// The objective less its lower bound by the dual variables: the objective is at most this far
    /// from its minimum. The losses in it are those at the last step that saw each example, so it
    /// is exact if each batch holds all examples, and an estimate otherwise.
    pub duality_gap: f64,
    /// The objective: the mean loss with the regularization.
    pub primal_objective: f64,
    /// The number of different examples.
    pub examples_seen: usize,
}

/// An example that cannot be used, by its row in the batch.
pub(super) struct Refused {
    pub(super) row: usize,
    pub(super) error: Error,
}

/// The weights before L1 regularization, and the dual variables that they follow from.
pub(super) struct Solver {
    pub(super) problem: Problem,
    pub(super) unshrunk: Vec<f64>,
    pub(super) table: Table,
    /// Working memory of a step.
    places: Vec<Place>,
    order: Vec<u64>,
    before: Vec<f64>,
}

impl Solver {
    pub(super) fn new(problem: Problem, n_weights: usize, n_shards: usize) -> Solver {
        Solver {
            problem,
            unshrunk: vec![0.0; n_weights],
            table: Table::new(n_shards),
            places: Vec::new(),
            order: Vec::new(),
            before: Vec::new(),
        }
    }

    /// A weight of the model.
    pub(super) fn weight(&self, i: usize) -> f64 {
        self.problem.shrink(self.unshrunk[i])
    }

    /// The logit of a row.
    fn logit(&self, rows: &Rows, row: usize) -> f64 {
        let (indices, values) = rows.row(row);
        let pairs = indices.iter().zip(values);
        match self.problem.l1 > 0.0 {
            true => pairs.map(|(i, x)| self.weight(*i as usize) * f64::from(*x)).sum(),
            false => pairs.map(|(i, x)| self.unshrunk[*i as usize] * f64::from(*x)).sum(),
        }
    }

    /// Moves the dual variables of a batch. The seed and the number of the step decide the order.
    pub(super) fn step(&mut self, batch: &Examples, seed: u64, step: u64) -> Result<(), Refused> {
        self.find(batch)?;
        self.choose_order(batch, Stream::new(Random::new(seed, "linear_sdca"), step))?;
        let k = self.problem.n_partitions;
        if k > 1.0 {
            self.before.clear();
            self.before.extend(batch.rows.indices().iter().map(|i| self.unshrunk[*i as usize]));
        }
        for i in 0..self.order.len() {
            self.ascend(batch, self.order[i] as usize)?;
        }
        if k > 1.0 {
            // During the batch, weights move by the steps of all workers. Afterwards, only those of
            // this one remain.
            let indices = batch.rows.indices();
            for (before, i) in self.before.iter_mut().zip(indices) {
                *before += (self.unshrunk[*i as usize] - *before) / k;
            }
            for (after, i) in self.before.iter().zip(indices) {
                self.unshrunk[*i as usize] = *after;
            }
        }
        for (row, place) in self.places.iter().enumerate() {
            let (loss, label) = (self.problem.loss, batch.labels[row]);
            let value = loss.value(label, self.logit(&batch.rows, row));
            let example = self.table.at_mut(*place);
            (example.loss, example.conjugate) = (value, loss.conjugate(label, example.dual));
        }
        Ok(())
    }

    /// Finds the examples of a batch in the table, or adds them.
    fn find(&mut self, batch: &Examples) -> Result<(), Refused> {
        self.places.clear();
        for (row, key) in batch.keys.iter().enumerate() {
            let (label, weight) = (batch.labels[row], batch.weights[row]);
            let refused = |error: Error| Refused { row, error };
            self.problem.loss.check_label(label).map_err(refused)?;
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(refused(
                    Error::data(format!("the weight is {weight}; expected a finite number from 0")).help(
                        "correct the row, or leave it out with Dataset::filter; a row of weight 0 does not count",
                    ),
                ));
            }
            let place = self.table.place(*key, label, weight);
            let known = self.table.at_mut(place);
            if known.label.is_nan() {
                let nearest = self.problem.loss.nearest_dual(label, known.dual);
                if (nearest - known.dual).abs() <= ROUNDED {
                    (known.label, known.dual) = (label, nearest);
                }
            }
            if (known.label, known.weight) != (label, weight) {
                let was = match known.label.is_nan() {
                    true => format!("the dual variable {} and weight {}", known.dual, known.weight),
                    false => format!("label {} and weight {}", known.label, known.weight),
                };
                let text = format!("the example came before with {was}, now with label {label} and weight {weight}");
                return Err(refused(
                    Error::data(text).help("give each example an id of its own, the same in each epoch"),
                ));
            }
            let sketch = batch.rows.sketch(row);
            if known.sketch.is_nan() {
                known.sketch = sketch;
            }
            // A value that is not finite has no sketch; it is refused where its logit is computed.
            if !sketch.is_nan() && !batch.rows.is_same_sketch(row, known.sketch, sketch) {
                let error = Error::data("the example came before with other features").help(
                    "give each example an id of its own, not one of a user or a group, and the same features in \
                     each epoch: the weights are sums over the examples as they were",
                );
                return Err(refused(error));
            }
            self.places.push(place);
        }
        Ok(())
    }

    /// Chooses the examples of the step: each once in random order, or by their importance.
    fn choose_order(&mut self, batch: &Examples, stream: Stream) -> Result<(), Refused> {
        let n = self.places.len();
        self.order.clear();
        self.order.resize(n, 0);
        if self.problem.adaptive {
            let mut sums = Vec::with_capacity(n);
            let mut total = 0.0;
            for row in 0..n {
                total += self.importance(batch, row)?;
                sums.push(total);
            }
            if total > 0.0 && total.is_finite() {
                let mut drawn = vec![0; n];
                stream.fill_integers_i64(0, 1, 0, 1 << BITS, &mut drawn);
                for (chosen, drawn) in self.order.iter_mut().zip(drawn) {
                    let at = (drawn as f64 + 0.5) / (1u64 << BITS) as f64 * total;
                    *chosen = sums.partition_point(|sum| *sum <= at).min(n - 1) as u64;
                }
                return Ok(());
            }
        }
        stream.permutation(n as u64).fill(0, &mut self.order);
        Ok(())
    }

    /// How much an example can gain: its weight and length, and the distance of its dual variable
    /// from the slope of its loss.
    fn importance(&self, batch: &Examples, row: usize) -> Result<f64, Refused> {
        let logit = finite(self.logit(&batch.rows, row), row)?;
        let example = self.table.at(self.places[row]);
        let Problem { loss, l2, .. } = self.problem;
        let apart = (example.dual + loss.slope(example.label, logit)).abs();
        Ok(example.weight * apart * (batch.rows.squared_norm(row) + l2 * loss.smoothness()).sqrt())
    }

    /// Moves the dual variable of one example to its best value, and the weights with it.
    fn ascend(&mut self, batch: &Examples, row: usize) -> Result<(), Refused> {
        let Problem { loss, l2, n_partitions, .. } = self.problem;
        let logit = finite(self.logit(&batch.rows, row), row)?;
        let squared_norm = finite(batch.rows.squared_norm(row), row)?;
        let example = self.table.at_mut(self.places[row]);
        let share = example.weight / l2;
        let norm = n_partitions * share * squared_norm;
        // An example without weight has no part in the objective.
        if norm <= 0.0 {
            return Ok(());
        }
        let dual = loss.best_dual(example.label, example.dual, logit, norm);
        if !(dual.is_finite() && norm.is_finite()) {
            let text = format!("the dual variable of the example is {dual}: its logit {logit} or length is too large");
            return Err(Refused { row, error: Error::data(text).help("scale the features, or make l2 larger") });
        }
        let change = n_partitions * share * (dual - example.dual);
        example.dual = dual;
        let (indices, values) = batch.rows.row(row);
        for (i, x) in indices.iter().zip(values) {
            self.unshrunk[*i as usize] += change * f64::from(*x);
        }
        Ok(())
    }

    /// How far the training has come; `None` before the first example with a weight.
    pub(super) fn progress(&self) -> Option<SdcaProgress> {
        let Problem { l1, l2, .. } = self.problem;
        let (mut losses, mut conjugates, mut weights) = (0.0, 0.0, 0.0);
        for (_, example) in self.table.iter() {
            losses += example.weight * example.loss;
            conjugates += example.weight * example.conjugate;
            weights += example.weight;
        }
        let (mut absolute, mut squares) = (0.0, 0.0);
        for i in 0..self.unshrunk.len() {
            let weight = self.weight(i);
            absolute += weight.abs();
            squares += weight * weight;
        }
        (weights > 0.0).then(|| SdcaProgress {
            duality_gap: (losses + conjugates + l1 * absolute + l2 * squares) / weights,
            primal_objective: (losses + l1 * absolute + 0.5 * l2 * squares) / weights,
            examples_seen: self.table.len(),
        })
    }
}

impl Problem {
    /// Moves a weight towards 0 by L1 regularization.
    fn shrink(&self, unshrunk: f64) -> f64 {
        match self.l1 > 0.0 {
            true => unshrunk.signum() * (unshrunk.abs() - self.l1 / self.l2).max(0.0),
            false => unshrunk,
        }
    }
}

/// Refuses an example with numbers that are not finite.
fn finite(number: f64, row: usize) -> Result<f64, Refused> {
    match number.is_finite() {
        true => Ok(number),
        false => Err(Refused {
            row,
            error: Error::data(format!("the weighted sum or the length of the features is {number}"))
                .help("fill such rows in the input (map), leave them out (filter), or scale the features"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Column, Values};
    use super::*;

    /// The first example is at its best already, so all draws are of the second.
    #[test]
    fn adaptive_steps_use_examples_that_can_gain() -> Result<()> {
        let problem = Problem { loss: SdcaLoss::Squared, l1: 0.0, l2: 1.0, n_partitions: 1.0, adaptive: true };
        let mut batch = Examples {
            keys: vec![Key::of(b"a"), Key::of(b"b")],
            labels: vec![0.0, 2.0],
            weights: vec![1.0, 1.0],
            ..Examples::default()
        };
        let columns = [Column { values: Values::Dense(&[1.0, 0.0]), first: 0, n: 1 }];
        batch.rows.fill(2, &columns, 1)?;
        let mut solver = Solver::new(problem, 2, 1);
        for seed in 0..20 {
            solver.find(&batch).ok();
            let stream = Stream::new(Random::new(seed, "linear_sdca"), 1);
            assert!(solver.choose_order(&batch, stream).is_ok());
            assert_eq!(solver.order, [1, 1]);
        }
        Ok(())
    }
}
