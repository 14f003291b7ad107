//! Adamax: Adam with a decaying maximum in place of the mean square.

use crate::bounds::rounded;
use crate::width::{self, Element};
use crate::{Hyper, Slot, SparseRule, UpdateRule, bounds};

/// `m` is the decaying mean of the gradient, `v = max(beta_2 * v, |g|)`;
/// `w -= rate' * m / (v + epsilon)`, where `rate'` corrects `m` for having started at zero.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adamax {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
}

impl Default for Adamax {
    fn default() -> Self {
        Adamax { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
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
}

impl UpdateRule for Adamax {
    fn name(&self) -> &'static str {
        "Adamax"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("m", 0.0), Slot::new("v", 0.0)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("beta_1", self.beta_1), ("beta_2", self.beta_2), ("decay", 0.0)]
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("beta_1", self.beta_1)?;
        bounds::below_one("beta_2", self.beta_2)?;
        bounds::positive("epsilon", self.epsilon)
    }

    fn hyper(&self, step: u64, learning_rate: f64) -> Hyper {
        let beta_1 = rounded(self.beta_1);
        let corrected = rounded(learning_rate) / (1.0 - beta_1.powf(step as f64 + 1.0));
        Hyper::round([corrected, beta_1, 1.0 - beta_1, self.beta_2, self.epsilon])
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        let [rate, beta_1, rest_1, beta_2, epsilon, ..] = h.0;
        width::apply(Step { rate, beta_1, rest_1, beta_2, epsilon }, w, g, slots)
    }
}

#[derive(Clone, Copy)]
struct Step {
    rate: f32,
    beta_1: f32,
    rest_1: f32,
    beta_2: f32,
    epsilon: f32,
}

impl Element<2> for Step {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [m, v]: [f32; 2]) -> (f32, [f32; 2]) {
        let m = self.beta_1 * m + self.rest_1 * g;
        let v = (self.beta_2 * v).max(g.abs());
        (w - self.rate * (m / (v + self.epsilon)), [m, v])
    }
}
