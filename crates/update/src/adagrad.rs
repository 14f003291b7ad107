//! Adagrad: the learning rate of each weight falls with the sum of its squared gradients.

use std::sync::Arc;

use crate::formula::{self, Element, Formula, Reader, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

/// `accumulator += g^2; w -= rate * g / (sqrt(accumulator) + epsilon)`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adagrad {
    initial_accumulator: f64,
    epsilon: f64,
    newer: bool,
}

impl Default for Adagrad {
    fn default() -> Self {
        Adagrad { initial_accumulator: 0.1, epsilon: 1e-7, newer: false }
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

    /// Computes as `tf.keras.optimizers.Adagrad` of TensorFlow 2.11 and later does: epsilon is
    /// inside of the root. By default as TensorFlow's legacy optimizer, which Estimators use.
    pub fn newer(mut self) -> Self {
        self.newer = true;
        self
    }
}

impl Formula for Adagrad {
    compiled_here!();

    fn name(&self) -> &'static str {
        "Adagrad"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("accumulator", self.initial_accumulator as f32)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("decay", 0.0)]
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![
            ("initial_accumulator_value", Setting::Number(self.initial_accumulator)),
            ("epsilon", Setting::Number(self.epsilon)),
        ])
    }

    fn check(&self) -> Result<(), String> {
        bounds::at_least_zero("initial_accumulator", self.initial_accumulator)?;
        bounds::at_least_zero("epsilon", self.epsilon)?;
        // If both were zero, a zero gradient would divide zero by zero.
        bounds::positive("initial_accumulator + epsilon", self.initial_accumulator + self.epsilon)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Some(Arc::new(Self::newer(*self)))
    }

    fn is_newer(&self) -> bool {
        self.newer
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }

    fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
        formula::scalars([rate, rate.number(self.epsilon)])
    }

    #[inline]
    fn update<N: Number>(&self, [rate, epsilon, ..]: [N; 8], reader: impl Reader<N>) {
        if self.newer { reader.read(Inside { rate, epsilon }) } else { reader.read(Step { rate, epsilon }) }
    }
}

#[derive(Clone, Copy)]
struct Step<N> {
    rate: N,
    epsilon: N,
}

impl<N: Number> Element<N, 1> for Step<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [accumulator]: [N; 1]) -> (N, [N; 1]) {
        let accumulator = accumulator + g * g;
        (w - g * self.rate / (accumulator.sqrt() + self.epsilon), [accumulator])
    }
}

/// The newer form, with epsilon inside of the root.
#[derive(Clone, Copy)]
struct Inside<N> {
    rate: N,
    epsilon: N,
}

impl<N: Number> Element<N, 1> for Inside<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [accumulator]: [N; 1]) -> (N, [N; 1]) {
        let accumulator = accumulator + g * g;
        (w - self.rate * g / (accumulator + self.epsilon).sqrt(), [accumulator])
    }
}
