//! RMSprop: divides the gradient by the root of its decaying mean square; optionally centered,
//! optionally with momentum.

use std::sync::Arc;

use crate::bounds::rounded;
use crate::formula::{self, Element, Formula, Reader, Scale, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

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
    newer: bool,
}

impl Default for RmsProp {
    fn default() -> Self {
        RmsProp { rho: 0.9, momentum: 0.0, epsilon: 1e-7, centered: false, v1: false, newer: false }
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

    /// Computes as `tf.keras.optimizers.RMSprop` of TensorFlow 2.11 and later does: epsilon is
    /// always inside of the root, and momentum moves all rows of a table. By default as
    /// TensorFlow's legacy optimizer, which Estimators use.
    pub fn newer(mut self) -> Self {
        self.newer = true;
        self
    }
}

impl Formula for RmsProp {
    compiled_here!();

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

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![
            ("rho", Setting::Number(self.rho)),
            ("momentum", Setting::Number(self.momentum)),
            ("epsilon", Setting::Number(self.epsilon)),
            ("centered", Setting::Flag(self.centered)),
        ])
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("rho", self.rho)?;
        bounds::zero_to_one("momentum", self.momentum)?;
        bounds::positive("epsilon", self.epsilon)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Some(Arc::new(Self::newer(*self)))
    }

    fn is_newer(&self) -> bool {
        self.newer
    }

    fn sparse(&self) -> SparseRule {
        if self.has_momentum() && !self.newer { SparseRule::TouchedRows } else { SparseRule::DecayWholeTable }
    }

    fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
        let setting = |value: f64| rate.number(value);
        let (rho, rest) = (setting(self.rho), setting(1.0 - if self.newer { self.rho } else { rounded(self.rho) }));
        formula::scalars([rate, rho, rest, setting(self.momentum), setting(self.epsilon)])
    }

    #[inline]
    fn update<N: Number>(&self, [rate, rho, rest, momentum, epsilon, ..]: [N; 8], reader: impl Reader<N>) {
        let step = Step { rate, rho, rest, momentum, epsilon };
        match (self.has_momentum(), self.centered) {
            (false, false) if self.newer => reader.read(Inside(step)),
            (false, true) if self.newer => reader.read(CenteredInside(step)),
            (false, false) => reader.read(Plain(step)),
            (false, true) => reader.read(Centered(step)),
            (true, false) => reader.read(Momentum(step)),
            (true, true) => reader.read(CenteredMomentum(step)),
        }
    }

    #[inline]
    fn decay<N: Number>(&self, [_, rho, _, momentum, ..]: [N; 8], reader: impl Reader<N>) {
        match (Formula::sparse(self), self.has_momentum(), self.centered) {
            (SparseRule::TouchedRows, ..) => {}
            (SparseRule::DecayWholeTable, false, false) => reader.read(Scale([rho])),
            (SparseRule::DecayWholeTable, false, true) => reader.read(Scale([rho, rho])),
            (SparseRule::DecayWholeTable, true, false) => reader.read(Rolling([rho, momentum])),
            (SparseRule::DecayWholeTable, true, true) => reader.read(Rolling([rho, momentum, rho])),
        }
    }
}

#[derive(Clone, Copy)]
struct Step<N> {
    rate: N,
    rho: N,
    rest: N,
    momentum: N,
    epsilon: N,
}

impl<N: Number> Step<N> {
    #[inline(always)]
    fn mean(self, old: N, new: N) -> N {
        self.rho * old + self.rest * new
    }

    #[inline(always)]
    fn weight(self, w: N, g: N, variance: N) -> N {
        w - self.rate * g / (variance.sqrt() + self.epsilon)
    }

    #[inline(always)]
    fn velocity(self, old: N, g: N, variance: N) -> N {
        self.momentum * old + self.rate * g / (variance + self.epsilon).sqrt()
    }
}

#[derive(Clone, Copy)]
struct Plain<N>(Step<N>);

impl<N: Number> Element<N, 1> for Plain<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [rms]: [N; 1]) -> (N, [N; 1]) {
        let rms = self.0.mean(rms, g * g);
        (self.0.weight(w, g, rms), [rms])
    }
}

#[derive(Clone, Copy)]
struct Centered<N>(Step<N>);

impl<N: Number> Element<N, 2> for Centered<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [rms, mg]: [N; 2]) -> (N, [N; 2]) {
        let (rms, mg) = (self.0.mean(rms, g * g), self.0.mean(mg, g));
        (self.0.weight(w, g, rms - mg * mg), [rms, mg])
    }
}

/// The newer form without momentum, with epsilon inside of the root.
#[derive(Clone, Copy)]
struct Inside<N>(Step<N>);

impl<N: Number> Element<N, 1> for Inside<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [rms]: [N; 1]) -> (N, [N; 1]) {
        let rms = self.0.mean(rms, g * g);
        (w - self.0.rate * g / (rms + self.0.epsilon).sqrt(), [rms])
    }
}

#[derive(Clone, Copy)]
struct CenteredInside<N>(Step<N>);

impl<N: Number> Element<N, 2> for CenteredInside<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [rms, mg]: [N; 2]) -> (N, [N; 2]) {
        let (rms, mg) = (self.0.mean(rms, g * g), self.0.mean(mg, g));
        (w - self.0.rate * g / (rms - mg * mg + self.0.epsilon).sqrt(), [rms, mg])
    }
}

/// A row without a gradient in the newer form: slots decay, and the momentum, the second slot, goes
/// on moving the weight.
#[derive(Clone, Copy)]
struct Rolling<N, const S: usize>([N; S]);

impl<N: Number, const S: usize> Element<N, S> for Rolling<N, S> {
    const READS_GRADIENT: bool = false;

    #[inline(always)]
    fn step(self, w: N, _: N, slots: [N; S]) -> (N, [N; S]) {
        let slots: [N; S] = std::array::from_fn(|k| slots[k] * self.0[k]);
        (w - slots[1], slots)
    }
}

#[derive(Clone, Copy)]
struct Momentum<N>(Step<N>);

impl<N: Number> Element<N, 2> for Momentum<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [rms, velocity]: [N; 2]) -> (N, [N; 2]) {
        let rms = self.0.mean(rms, g * g);
        let velocity = self.0.velocity(velocity, g, rms);
        (w - velocity, [rms, velocity])
    }
}

#[derive(Clone, Copy)]
struct CenteredMomentum<N>(Step<N>);

impl<N: Number> Element<N, 3> for CenteredMomentum<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [rms, velocity, mg]: [N; 3]) -> (N, [N; 3]) {
        let (rms, mg) = (self.0.mean(rms, g * g), self.0.mean(mg, g));
        let velocity = self.0.velocity(velocity, g, rms - mg * mg);
        (w - velocity, [rms, velocity, mg])
    }
}
