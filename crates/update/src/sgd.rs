//! Gradient descent, plain or with (Nesterov) momentum.

use crate::width::{self, Element};
use crate::{Hyper, Slot, SparseRule, UpdateRule, bounds};

/// `velocity = momentum * velocity - rate * g; w += velocity`. Without momentum, `w -= rate * g`
/// and there is no slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Sgd {
    momentum: f64,
    nesterov: bool,
}

impl Sgd {
    /// The fraction of the previous step that is repeated, between 0 and 1. By default 0.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// Whether to look one step of momentum ahead: `w += momentum * velocity - rate * g`, which is
    /// the plain rule at momentum 0. By default off.
    pub fn nesterov(mut self, nesterov: bool) -> Self {
        self.nesterov = nesterov;
        self
    }

    fn has_momentum(&self) -> bool {
        self.momentum > 0.0
    }
}

impl UpdateRule for Sgd {
    fn name(&self) -> &'static str {
        "SGD"
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

    fn check(&self) -> Result<(), String> {
        bounds::zero_to_one("momentum", self.momentum)
    }

    fn hyper(&self, _step: u64, learning_rate: f64) -> Hyper {
        Hyper::round([learning_rate, self.momentum])
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        let [rate, momentum, ..] = h.0;
        if self.has_momentum() {
            width::apply(Momentum { rate, momentum, nesterov: self.nesterov }, w, g, slots)
        } else {
            width::apply(Plain { rate }, w, g, slots)
        }
    }
}

#[derive(Clone, Copy)]
struct Plain {
    rate: f32,
}

impl Element<0> for Plain {
    #[inline(always)]
    fn step(self, w: f32, g: f32, _: [f32; 0]) -> (f32, [f32; 0]) {
        (w - self.rate * g, [])
    }
}

#[derive(Clone, Copy)]
struct Momentum {
    rate: f32,
    momentum: f32,
    nesterov: bool,
}

impl Element<1> for Momentum {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [velocity]: [f32; 1]) -> (f32, [f32; 1]) {
        let pull = self.rate * g;
        let velocity = self.momentum * velocity - pull;
        let change = if self.nesterov { self.momentum * velocity - pull } else { velocity };
        (w + change, [velocity])
    }
}
