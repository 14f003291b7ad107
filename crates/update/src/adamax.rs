//! Adamax: Adam with a decaying maximum in place of the mean square.

use std::sync::Arc;

use crate::bounds::rounded;
use crate::formula::{self, Element, Formula, Reader, ZeroGradient, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

/// `m` is the decaying mean of the gradient, `v = max(beta_2 * v, |g|)`;
/// `w -= rate' * m / (v + epsilon)`, where `rate'` corrects `m` for having started at zero.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adamax {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    newer: bool,
}

impl Default for Adamax {
    fn default() -> Self {
        Adamax { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, newer: false }
    }
}

impl Adamax {
    /// Decay of the mean gradient per step. By default 0.9.
    pub fn beta_1(mut self, beta_1: f64) -> Self {
        self.beta_1 = beta_1;
        self
    }

    /// Decay of the largest gradient per step. By default 0.999.
    pub fn beta_2(mut self, beta_2: f64) -> Self {
        self.beta_2 = beta_2;
        self
    }

    /// A number added to the maximum. By default 1e-7.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// Computes as `tf.keras.optimizers.Adamax` of TensorFlow 2.11 and later does: a sparse
    /// gradient moves all rows. By default as TensorFlow's legacy optimizer, which Estimators use.
    pub fn newer(mut self) -> Self {
        self.newer = true;
        self
    }
}

impl Formula for Adamax {
    compiled_here!();

    fn name(&self) -> &'static str {
        "Adamax"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("m", 0.0), Slot::new("v", 0.0)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("beta_1", self.beta_1), ("beta_2", self.beta_2), ("decay", 0.0)]
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![
            ("beta_1", Setting::Number(self.beta_1)),
            ("beta_2", Setting::Number(self.beta_2)),
            ("epsilon", Setting::Number(self.epsilon)),
        ])
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("beta_1", self.beta_1)?;
        bounds::below_one("beta_2", self.beta_2)?;
        bounds::positive("epsilon", self.epsilon)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Some(Arc::new(Self::newer(*self)))
    }

    fn is_newer(&self) -> bool {
        self.newer
    }

    fn sparse(&self) -> SparseRule {
        if self.newer { SparseRule::DecayWholeTable } else { SparseRule::TouchedRows }
    }

    fn hyper<N: Number>(&self, step: N, rate: N, _carried: N) -> [N; 8] {
        let number = |value: f64| step.number(value);
        let (beta_1, one) = (rounded(self.beta_1), number(1.0));
        let corrected = rate.rounded() / (one - number(beta_1).powf(step + one));
        let rest_1 = number(1.0 - if self.newer { self.beta_1 } else { beta_1 });
        formula::scalars([corrected, number(beta_1), rest_1, number(self.beta_2), number(self.epsilon)])
    }

    #[inline]
    fn update<N: Number>(&self, [rate, beta_1, rest_1, beta_2, epsilon, ..]: [N; 8], reader: impl Reader<N>) {
        reader.read(Step { rate, beta_1, rest_1, beta_2, epsilon })
    }

    #[inline]
    fn decay<N: Number>(&self, [rate, beta_1, rest_1, beta_2, epsilon, ..]: [N; 8], reader: impl Reader<N>) {
        if self.newer {
            reader.read(ZeroGradient(Step { rate, beta_1, rest_1, beta_2, epsilon }))
        }
    }
}

#[derive(Clone, Copy)]
struct Step<N> {
    rate: N,
    beta_1: N,
    rest_1: N,
    beta_2: N,
    epsilon: N,
}

impl<N: Number> Element<N, 2> for Step<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [m, v]: [N; 2]) -> (N, [N; 2]) {
        let m = self.beta_1 * m + self.rest_1 * g;
        let v = (self.beta_2 * v).max(g.abs());
        (w - self.rate * (m / (v + self.epsilon)), [m, v])
    }
}
