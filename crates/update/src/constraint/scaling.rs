//! Constraints that multiply weights by a factor: written once, read as kernels and as nodes of a
//! graph.

use super::Constraint;
use crate::Setting;
use crate::number::{Number, Symbol};

/// The number that decides on the factor of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure<'a> {
    /// The weight itself.
    Weight,
    /// The Euclidean length of the weight's vector along these axes, which are counted from the end
    /// if negative. Squares are summed in double precision, and the length is rounded to `f32`.
    Length(&'a [i64]),
}

/// A constraint that multiplies every weight by a factor. Every scaling is a [`Constraint`].
pub trait Scaling: Send + Sync + std::fmt::Debug {
    /// The constraint's name in the text of a program, in Keras's words.
    fn name(&self) -> &'static str;

    /// Checks settings and the variable's shape. The error message is written for the user.
    fn check(&self, dims: &[usize]) -> Result<(), String>;

    /// The settings under Keras's names, with which it can be written down. By default it cannot.
    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        None
    }

    /// The number that decides on the factor.
    fn measure(&self) -> Measure<'_>;

    /// The factor of weights with this measure.
    fn factor<N: Number>(&self, measure: N) -> N;
}

/// A constraint read with symbols. Every [`Scaling`] is one.
pub trait SymbolicConstraint {
    /// As [`Scaling::measure`].
    fn measure(&self) -> Measure<'_>;

    /// As [`Scaling::factor`].
    fn factor<'t>(&self, measure: Symbol<'t>) -> Symbol<'t>;
}

impl<S: Scaling> Constraint for S {
    fn name(&self) -> &'static str {
        Scaling::name(self)
    }

    fn check(&self, dims: &[usize]) -> Result<(), String> {
        Scaling::check(self, dims)
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Scaling::settings(self)
    }

    fn project(&self, dims: &[usize], weights: &mut [f32]) {
        match Scaling::measure(self) {
            Measure::Weight => weights.iter_mut().for_each(|w| *w *= Scaling::factor(self, *w)),
            Measure::Length(axes) => rescale(dims, axes, weights, |length| Scaling::factor(self, length)),
        }
    }

    fn symbolic(&self) -> Option<&dyn SymbolicConstraint> {
        Some(self)
    }
}

impl<S: Scaling> SymbolicConstraint for S {
    fn measure(&self) -> Measure<'_> {
        Scaling::measure(self)
    }

    fn factor<'t>(&self, measure: Symbol<'t>) -> Symbol<'t> {
        Scaling::factor(self, measure)
    }
}

/// The number of adjacent vectors whose lengths are computed together.
const BLOCK: usize = 64;

/// Multiplies every vector along some axes by a factor that depends on its length.
fn rescale(dims: &[usize], axes: &[i64], weights: &mut [f32], factor: impl Fn(f32) -> f32) {
    let along = axes.iter().fold(0u32, |set, &a| set | 1 << if a < 0 { a + dims.len() as i64 } else { a });
    let is_along = |axis: usize| along >> axis & 1 == 1;
    // Trailing axes that all lie along vectors, or all across them, form contiguous runs in memory.
    let across_last = !is_along(dims.len() - 1);
    let n_front = (0..dims.len()).rev().find(|&axis| is_along(axis) == across_last).map_or(0, |axis| axis + 1);
    let (front, run) = (&dims[..n_front], dims[n_front..].iter().product::<usize>());
    let count = |of_vectors: bool| -> usize {
        front.iter().enumerate().filter(|(axis, _)| is_along(*axis) == of_vectors).map(|(_, n)| n).product()
    };
    // The position of a run, given its number over the leading axes along or across vectors.
    let place = |mut number: usize, of_vectors: bool| {
        let (mut stride, mut at) = (run, 0);
        for (axis, &n) in front.iter().enumerate().rev() {
            if is_along(axis) == of_vectors {
                at += number % n * stride;
                number /= n;
            }
            stride *= n;
        }
        at
    };
    let (n_vectors, n_runs) = (count(false), count(true));
    for vector in 0..n_vectors {
        let base = place(vector, false);
        if across_last {
            for first in (0..run).step_by(BLOCK) {
                let len = BLOCK.min(run - first);
                let part = |i: usize| base + place(i, true) + first;
                let mut squares = [0f64; BLOCK];
                for at in (0..n_runs).map(part) {
                    for (square, w) in squares.iter_mut().zip(&weights[at..at + len]) {
                        *square += f64::from(*w) * f64::from(*w);
                    }
                }
                let factors = squares.map(|square| factor(square.sqrt() as f32));
                for at in (0..n_runs).map(part) {
                    weights[at..at + len].iter_mut().zip(&factors).for_each(|(w, factor)| *w *= factor);
                }
            }
        } else {
            let part = |i: usize| base + place(i, true);
            let squares = |at: usize| weights[at..at + run].iter().map(|&w| f64::from(w) * f64::from(w)).sum::<f64>();
            let square: f64 = (0..n_runs).map(part).map(squares).sum();
            let factor = factor(square.sqrt() as f32);
            for at in (0..n_runs).map(part) {
                weights[at..at + run].iter_mut().for_each(|w| *w *= factor);
            }
        }
    }
}
