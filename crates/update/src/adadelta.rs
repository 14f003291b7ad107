//! Adadelta: RMSprop with a rate that is the root mean square of the previous changes.

use std::sync::Arc;

use crate::bounds::rounded;
use crate::formula::{self, Element, Formula, Reader, Scale, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

/// `change = sqrt(accum_var + epsilon) / sqrt(accum_grad + epsilon) * g; w -= rate * change`, where
/// `accum_grad` and `accum_var` are decaying means of the squares of gradient and change.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adadelta {
    rho: f64,
    epsilon: f64,
    newer: bool,
}

impl Default for Adadelta {
    fn default() -> Self {
        Adadelta { rho: 0.95, epsilon: 1e-7, newer: false }
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

    /// Computes as `tf.keras.optimizers.Adadelta` of TensorFlow 2.11 and later does: a sparse
    /// gradient decays the slots of all rows. By default as TensorFlow's legacy optimizer, which
    /// Estimators use.
    pub fn newer(mut self) -> Self {
        self.newer = true;
        self
    }
}

impl Formula for Adadelta {
    compiled_here!();

    fn name(&self) -> &'static str {
        "Adadelta"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("accum_grad", 0.0), Slot::new("accum_var", 0.0)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("decay", 0.0), ("rho", self.rho)]
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![("rho", Setting::Number(self.rho)), ("epsilon", Setting::Number(self.epsilon))])
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("rho", self.rho)?;
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

    fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
        let setting = |value: f64| rate.number(value);
        let rest = 1.0 - if self.newer { self.rho } else { rounded(self.rho) };
        formula::scalars([rate, setting(self.rho), setting(rest), setting(self.epsilon)])
    }

    #[inline]
    fn update<N: Number>(&self, [rate, rho, rest, epsilon, ..]: [N; 8], reader: impl Reader<N>) {
        reader.read(Step { rate, rho, rest, epsilon })
    }

    #[inline]
    fn decay<N: Number>(&self, [_, rho, ..]: [N; 8], reader: impl Reader<N>) {
        if self.newer {
            reader.read(Scale([rho, rho]))
        }
    }
}

#[derive(Clone, Copy)]
struct Step<N> {
    rate: N,
    rho: N,
    rest: N,
    epsilon: N,
}

impl<N: Number> Element<N, 2> for Step<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [gradients, changes]: [N; 2]) -> (N, [N; 2]) {
        let gradients = self.rho * gradients + self.rest * (g * g);
        let change = (changes + self.epsilon).sqrt() / (gradients + self.epsilon).sqrt() * g;
        let changes = self.rho * changes + self.rest * (change * change);
        (w - self.rate * change, [gradients, changes])
    }
}
