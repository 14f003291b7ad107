//! Gradient descent, plain or with (Nesterov) momentum.

use std::sync::Arc;

use crate::formula::{self, Element, Formula, Reader, ZeroGradient, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

/// `velocity = momentum * velocity - rate * g; w += velocity`. Without momentum, `w -= rate * g`
/// and there is no slot.
///
/// [`v1`](Sgd::v1) keeps the rate out of the slot. The two differ once the rate changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Sgd {
    momentum: f64,
    nesterov: bool,
    v1: bool,
    newer: bool,
}

impl Sgd {
    /// TensorFlow 1's `MomentumOptimizer`: `accumulator = momentum * accumulator + g; w -= rate *
    /// accumulator`. There is always a slot.
    pub fn v1(momentum: f64) -> Self {
        Sgd { momentum, v1: true, ..Sgd::default() }
    }

    /// The fraction of the previous step that is repeated, between 0 and 1. By default 0.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// Whether to look one step of momentum ahead: `w += momentum * velocity - rate * g`, in
    /// [`v1`](Sgd::v1) `w -= rate * (g + momentum * accumulator)`. It is the plain rule at momentum
    /// 0. By default off.
    pub fn nesterov(mut self, nesterov: bool) -> Self {
        self.nesterov = nesterov;
        self
    }

    fn has_momentum(&self) -> bool {
        self.v1 || self.momentum > 0.0
    }

    /// Computes as `tf.keras.optimizers.SGD` of TensorFlow 2.11 and later does: momentum moves all
    /// rows of a table. By default as TensorFlow's legacy optimizer, which Estimators use.
    pub fn newer(self) -> Self {
        Sgd { newer: true, v1: false, ..self }
    }
}

impl Formula for Sgd {
    compiled_here!();

    fn name(&self) -> &'static str {
        if self.v1 { "Momentum" } else { "SGD" }
    }

    fn default_learning_rate(&self) -> f64 {
        0.01
    }

    fn slots(&self) -> Vec<Slot> {
        if self.has_momentum() { vec![Slot::new("momentum", 0.0)] } else { Vec::new() }
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("decay", 0.0), ("momentum", self.momentum)]
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![("momentum", Setting::Number(self.momentum)), ("nesterov", Setting::Flag(self.nesterov))])
    }

    fn check(&self) -> Result<(), String> {
        bounds::zero_to_one("momentum", self.momentum)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        (!self.v1).then(|| Arc::new(Self::newer(*self)) as Arc<dyn UpdateRule>)
    }

    fn is_newer(&self) -> bool {
        self.newer
    }

    fn sparse(&self) -> SparseRule {
        // TF: the newer SGD adds the momentum to the whole table. (fixture case newer_sgd_momentum)
        if self.newer && self.has_momentum() { SparseRule::DecayWholeTable } else { SparseRule::TouchedRows }
    }

    fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
        formula::scalars([rate, rate.number(self.momentum)])
    }

    #[inline]
    fn update<N: Number>(&self, [rate, momentum, ..]: [N; 8], reader: impl Reader<N>) {
        if self.v1 {
            reader.read(Accumulated { rate, momentum, nesterov: self.nesterov })
        } else if self.has_momentum() {
            reader.read(Momentum { rate, momentum, nesterov: self.nesterov })
        } else {
            reader.read(Plain { rate })
        }
    }

    #[inline]
    fn decay<N: Number>(&self, [rate, momentum, ..]: [N; 8], reader: impl Reader<N>) {
        if self.newer && self.has_momentum() {
            reader.read(ZeroGradient(Momentum { rate, momentum, nesterov: self.nesterov }))
        }
    }
}

#[derive(Clone, Copy)]
struct Plain<N> {
    rate: N,
}

impl<N: Number> Element<N, 0> for Plain<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, _: [N; 0]) -> (N, [N; 0]) {
        (w - self.rate * g, [])
    }
}

#[derive(Clone, Copy)]
struct Momentum<N> {
    rate: N,
    momentum: N,
    nesterov: bool,
}

impl<N: Number> Element<N, 1> for Momentum<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [velocity]: [N; 1]) -> (N, [N; 1]) {
        let pull = self.rate * g;
        let velocity = self.momentum * velocity - pull;
        let change = if self.nesterov { self.momentum * velocity - pull } else { velocity };
        (w + change, [velocity])
    }
}

/// The form of TensorFlow 1.
#[derive(Clone, Copy)]
struct Accumulated<N> {
    rate: N,
    momentum: N,
    nesterov: bool,
}

impl<N: Number> Element<N, 1> for Accumulated<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [accumulator]: [N; 1]) -> (N, [N; 1]) {
        let accumulator = self.momentum * accumulator + g;
        let change = if self.nesterov { g + self.momentum * accumulator } else { accumulator };
        (w - self.rate * change, [accumulator])
    }
}
