//! RMSprop: divides the gradient by the root of its decaying mean square; optionally centered,
//! optionally with momentum.

use crate::bounds::rounded;
use crate::width::{self, Element, Scale};
use crate::{Hyper, Slot, SparseRule, UpdateRule, bounds};

/// `rms = rho * rms + (1 - rho) * g^2`. In the centered form, `mg` is the mean gradient, and the
/// variance `rms - mg^2` replaces `rms`.
///
/// TensorFlow has two forms. The settings decide which one runs:
/// - Keras without momentum: `w -= rate * g / (sqrt(rms) + epsilon)`. A sparse gradient decays the
///   slots of all rows.
/// - With momentum, and always in [`v1`](RmsProp::v1): `momentum' = momentum * momentum' + rate * g
///   / sqrt(rms + epsilon); w -= momentum'`, with epsilon inside the root. A sparse gradient
///   changes its own rows only.
///
/// In the centered form without momentum, a gradient that hardly varies may let rounding push the
/// variance below zero. The weight then becomes NaN, as in TensorFlow. Momentum avoids this.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct RmsProp {
    rho: f64,
    momentum: f64,
    epsilon: f64,
    centered: bool,
    v1: bool,
}

impl Default for RmsProp {
    fn default() -> Self {
        RmsProp { rho: 0.9, momentum: 0.0, epsilon: 1e-7, centered: false, v1: false }
    }
}

impl RmsProp {
    /// The optimizer of TensorFlow 1: epsilon is 1e-10, `rms` starts at one, and there is always a
    /// momentum slot.
    pub fn v1() -> Self {
        RmsProp { epsilon: 1e-10, v1: true, ..RmsProp::default() }
    }

    /// Decay of the mean square per step. By default 0.9.
    pub fn rho(mut self, rho: f64) -> Self {
        self.rho = rho;
        self
    }

    /// The fraction of the previous step that is repeated, between 0 and 1. By default 0.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// A number that keeps the denominator away from zero. By default 1e-7; 1e-10 in
    /// [`v1`](RmsProp::v1).
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// Whether to divide by the root of the gradient's variance instead of its mean square. By
    /// default off.
    pub fn centered(mut self, centered: bool) -> Self {
        self.centered = centered;
        self
    }

    fn has_momentum(&self) -> bool {
        self.v1 || self.momentum > 0.0
    }
}

impl UpdateRule for RmsProp {
    fn name(&self) -> &'static str {
        if self.v1 { "RMSProp" } else { "RMSprop" }
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::new("rms", if self.v1 { 1.0 } else { 0.0 })];
        if self.has_momentum() {
            slots.push(Slot::new("momentum", 0.0));
        }
        if self.centered {
            slots.push(Slot::new("mg", 0.0));
        }
        slots
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        vec![("decay", 0.0), ("momentum", self.momentum), ("rho", self.rho)]
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("rho", self.rho)?;
        bounds::zero_to_one("momentum", self.momentum)?;
        bounds::positive("epsilon", self.epsilon)
    }

    fn hyper(&self, _step: u64, learning_rate: f64) -> Hyper {
        Hyper::round([learning_rate, self.rho, 1.0 - rounded(self.rho), self.momentum, self.epsilon])
    }

    fn sparse(&self) -> SparseRule {
        if self.has_momentum() { SparseRule::TouchedRows } else { SparseRule::DecayWholeTable }
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        let [rate, rho, rest, momentum, epsilon, ..] = h.0;
        let step = Step { rate, rho, rest, momentum, epsilon };
        match (self.has_momentum(), self.centered) {
            (false, false) => width::apply(Plain(step), w, g, slots),
            (false, true) => width::apply(Centered(step), w, g, slots),
            (true, false) => width::apply(Momentum(step), w, g, slots),
            (true, true) => width::apply(CenteredMomentum(step), w, g, slots),
        }
    }

    fn decay(&self, h: &Hyper, w: &mut [f32], slots: &mut [&mut [f32]]) {
        let rho = h.0[1];
        match (self.sparse(), self.centered) {
            (SparseRule::TouchedRows, _) => {}
            (SparseRule::DecayWholeTable, false) => width::apply(Scale([rho]), w, &[], slots),
            (SparseRule::DecayWholeTable, true) => width::apply(Scale([rho, rho]), w, &[], slots),
        }
    }
}

#[derive(Clone, Copy)]
struct Step {
    rate: f32,
    rho: f32,
    rest: f32,
    momentum: f32,
    epsilon: f32,
}

impl Step {
    #[inline(always)]
    fn mean(self, old: f32, new: f32) -> f32 {
        self.rho * old + self.rest * new
    }

    #[inline(always)]
    fn weight(self, w: f32, g: f32, variance: f32) -> f32 {
        w - self.rate * g / (variance.sqrt() + self.epsilon)
    }

    #[inline(always)]
    fn velocity(self, old: f32, g: f32, variance: f32) -> f32 {
        self.momentum * old + self.rate * g / (variance + self.epsilon).sqrt()
    }
}

#[derive(Clone, Copy)]
struct Plain(Step);

impl Element<1> for Plain {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [rms]: [f32; 1]) -> (f32, [f32; 1]) {
        let rms = self.0.mean(rms, g * g);
        (self.0.weight(w, g, rms), [rms])
    }
}

#[derive(Clone, Copy)]
struct Centered(Step);

impl Element<2> for Centered {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [rms, mg]: [f32; 2]) -> (f32, [f32; 2]) {
        let (rms, mg) = (self.0.mean(rms, g * g), self.0.mean(mg, g));
        (self.0.weight(w, g, rms - mg * mg), [rms, mg])
    }
}

#[derive(Clone, Copy)]
struct Momentum(Step);

impl Element<2> for Momentum {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [rms, velocity]: [f32; 2]) -> (f32, [f32; 2]) {
        let rms = self.0.mean(rms, g * g);
        let velocity = self.0.velocity(velocity, g, rms);
        (w - velocity, [rms, velocity])
    }
}

#[derive(Clone, Copy)]
struct CenteredMomentum(Step);

impl Element<3> for CenteredMomentum {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [rms, velocity, mg]: [f32; 3]) -> (f32, [f32; 3]) {
        let (rms, mg) = (self.0.mean(rms, g * g), self.0.mean(mg, g));
        let velocity = self.0.velocity(velocity, g, rms - mg * mg);
        (w - velocity, [rms, velocity, mg])
    }
}
