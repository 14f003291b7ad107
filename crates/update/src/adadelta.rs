//! Adadelta: RMSprop with a rate that is the root mean square of the previous changes.

use crate::bounds::rounded;
use crate::width::{self, Element};
use crate::{Hyper, Slot, SparseRule, UpdateRule, bounds};

/// `change = sqrt(accum_var + epsilon) / sqrt(accum_grad + epsilon) * g; w -= rate * change`, where
/// `accum_grad` and `accum_var` are decaying means of the squares of gradient and change.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adadelta {
    rho: f64,
    epsilon: f64,
}

impl Default for Adadelta {
    fn default() -> Self {
        Adadelta { rho: 0.95, epsilon: 1e-7 }
    }
}

impl Adadelta {
    /// Decay of both means per step. By default 0.95.
    pub fn rho(mut self, rho: f64) -> Self {
        self.rho = rho;
        self
    }

    /// A number added under both roots. It determines the size of the first steps. By default 1e-7.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }
}

impl UpdateRule for Adadelta {
    fn name(&self) -> &'static str {
        "Adadelta"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("accum_grad", 0.0), Slot::new("accum_var", 0.0)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("decay", 0.0), ("rho", self.rho)]
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("rho", self.rho)?;
        bounds::positive("epsilon", self.epsilon)
    }

    fn hyper(&self, _step: u64, learning_rate: f64) -> Hyper {
        Hyper::round([learning_rate, self.rho, 1.0 - rounded(self.rho), self.epsilon])
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        let [rate, rho, rest, epsilon, ..] = h.0;
        width::apply(Step { rate, rho, rest, epsilon }, w, g, slots)
    }
}

#[derive(Clone, Copy)]
struct Step {
    rate: f32,
    rho: f32,
    rest: f32,
    epsilon: f32,
}

impl Element<2> for Step {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [gradients, changes]: [f32; 2]) -> (f32, [f32; 2]) {
        let gradients = self.rho * gradients + self.rest * (g * g);
        let change = (changes + self.epsilon).sqrt() / (gradients + self.epsilon).sqrt() * g;
        let changes = self.rho * changes + self.rest * (change * change);
        (w - self.rate * change, [gradients, changes])
    }
}
