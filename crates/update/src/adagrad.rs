//! Adagrad: the learning rate of each weight falls with the sum of its squared gradients.

use crate::width::{self, Element};
use crate::{Hyper, Slot, SparseRule, UpdateRule, bounds};

/// `accumulator += g^2; w -= rate * g / (sqrt(accumulator) + epsilon)`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adagrad {
    initial_accumulator: f64,
    epsilon: f64,
}

impl Default for Adagrad {
    fn default() -> Self {
        Adagrad { initial_accumulator: 0.1, epsilon: 1e-7 }
    }
}

impl Adagrad {
    /// The initial sum of squares. By default 0.1.
    pub fn initial_accumulator(mut self, initial_accumulator: f64) -> Self {
        self.initial_accumulator = initial_accumulator;
        self
    }

    /// A number added to the root. By default 1e-7; 0 in TensorFlow 1.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }
}

impl UpdateRule for Adagrad {
    fn name(&self) -> &'static str {
        "Adagrad"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("accumulator", self.initial_accumulator as f32)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("decay", 0.0)]
    }

    fn check(&self) -> Result<(), String> {
        bounds::at_least_zero("initial_accumulator", self.initial_accumulator)?;
        bounds::at_least_zero("epsilon", self.epsilon)?;
        // If both were zero, a zero gradient would divide zero by zero.
        bounds::positive("initial_accumulator + epsilon", self.initial_accumulator + self.epsilon)
    }

    fn hyper(&self, _step: u64, learning_rate: f64) -> Hyper {
        Hyper::round([learning_rate, self.epsilon])
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        let [rate, epsilon, ..] = h.0;
        width::apply(Step { rate, epsilon }, w, g, slots)
    }
}

#[derive(Clone, Copy)]
struct Step {
    rate: f32,
    epsilon: f32,
}

impl Element<1> for Step {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [accumulator]: [f32; 1]) -> (f32, [f32; 1]) {
        let accumulator = accumulator + g * g;
        (w - g * self.rate / (accumulator.sqrt() + self.epsilon), [accumulator])
    }
}
