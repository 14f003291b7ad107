//! Lion: moves every weight by the learning rate, against the sign of a mean gradient.

use std::sync::Arc;

use crate::bounds::rounded;
use crate::formula::{self, Element, Formula, Reader, ZeroGradient, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

/// `w -= rate * sign(beta_1 * m + (1 - beta_1) * g); m = beta_2 * m + (1 - beta_2) * g`.
///
/// Keras has it in the newer generation alone. A row without a gradient takes the same step with a
/// gradient of zero.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Lion {
    beta_1: f64,
    beta_2: f64,
}

impl Default for Lion {
    fn default() -> Self {
        Lion { beta_1: 0.9, beta_2: 0.99 }
    }
}

impl Lion {
    /// The share of the mean gradient in the direction of a step. By default 0.9.
    pub fn beta_1(mut self, beta_1: f64) -> Self {
        self.beta_1 = beta_1;
        self
    }

    /// Decay of the mean gradient per step. By default 0.99.
    pub fn beta_2(mut self, beta_2: f64) -> Self {
        self.beta_2 = beta_2;
        self
    }
}

impl Formula for Lion {
    compiled_here!();

    fn name(&self) -> &'static str {
        "Lion"
    }

    fn default_learning_rate(&self) -> f64 {
        0.0001
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("m", 0.0)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("beta_1", self.beta_1), ("beta_2", self.beta_2), ("decay", 0.0)]
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![("beta_1", Setting::Number(self.beta_1)), ("beta_2", Setting::Number(self.beta_2))])
    }

    fn check(&self) -> Result<(), String> {
        // TF: with a beta_1 of 0 there is no mean, and Keras refuses it.
        bounds::positive("beta_1", self.beta_1)?;
        bounds::zero_to_one("beta_1", self.beta_1)?;
        bounds::below_one("beta_2", self.beta_2)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Some(Arc::new(*self))
    }

    fn is_newer(&self) -> bool {
        true
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::DecayWholeTable
    }

    fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
        let number = |value: f64| rate.number(value);
        let (beta_1, beta_2) = (rounded(self.beta_1), rounded(self.beta_2));
        formula::scalars([rate, number(beta_1), number(1.0 - beta_1), number(beta_2), number(1.0 - beta_2)])
    }

    #[inline]
    fn update<N: Number>(&self, h: [N; 8], reader: impl Reader<N>) {
        reader.read(Step::new(h))
    }

    #[inline]
    fn decay<N: Number>(&self, h: [N; 8], reader: impl Reader<N>) {
        reader.read(ZeroGradient(Step::new(h)))
    }
}

#[derive(Clone, Copy)]
struct Step<N> {
    rate: N,
    beta_1: N,
    rest_1: N,
    beta_2: N,
    rest_2: N,
}

impl<N: Number> Step<N> {
    #[inline(always)]
    fn new([rate, beta_1, rest_1, beta_2, rest_2, ..]: [N; 8]) -> Step<N> {
        Step { rate, beta_1, rest_1, beta_2, rest_2 }
    }
}

impl<N: Number> Element<N, 1> for Step<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [m]: [N; 1]) -> (N, [N; 1]) {
        let (direction, zero) = (m * self.beta_1 + g * self.rest_1, w.number(0.0));
        // A direction of zero does not move the weight.
        let change = N::select(direction.abs().above(zero), self.rate.copysign(direction), zero);
        (w - change, [m * self.beta_2 + g * self.rest_2])
    }
}
