//! What Keras' newer optimizers do around the step of any rule: weight decay before it, and a
//! moving average of the weights after it.

use std::sync::Arc;

use crate::formula::{Element, Once, Reader, Slices};
use crate::number::{Number, Symbol};
use crate::{Hyper, Setting, Slot, SparseRule, SymbolicRule, UpdateRule, bounds};

/// The scalars of the rule inside.
const INNER: usize = 8;

const AVERAGE: Slot = Slot::new(Extended::AVERAGE, 0.0);

/// A moving average of weights: Keras' `use_ema`, `ema_momentum` and `ema_overwrite_frequency`.
///
/// ```
/// use estimand_update::Ema;
/// let ema = Ema::default().momentum(0.9).overwrite_frequency(100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Ema {
    momentum: f64,
    overwrite_frequency: Option<u64>,
}

impl Default for Ema {
    fn default() -> Ema {
        Ema { momentum: 0.99, overwrite_frequency: None }
    }
}

impl Ema {
    /// The share of the old average in the new one, between 0 and 1. By default 0.99.
    pub fn momentum(mut self, momentum: f64) -> Ema {
        self.momentum = momentum;
        self
    }

    /// Replaces the weights by their average after every `steps` steps. By default this happens at
    /// the end of `fit` alone.
    pub fn overwrite_frequency(mut self, steps: u64) -> Ema {
        self.overwrite_frequency = Some(steps);
        self
    }

    /// The share of the old average, and the number of steps after which weights are replaced.
    pub fn settings(&self) -> (f64, Option<u64>) {
        (self.momentum, self.overwrite_frequency)
    }
}

/// A rule with weight decay, with a moving average of the weights, or with both.
///
/// A step first subtracts `w * weight_decay * rate` from every weight, then runs the rule, then
/// moves the average. Rows without a gradient decay too, and their average moves.
#[derive(Clone, Debug)]
pub struct Extended {
    rule: Arc<dyn UpdateRule>,
    weight_decay: Option<f64>,
    ema: Option<Ema>,
}

impl Extended {
    /// The slot that holds the average.
    pub const AVERAGE: &'static str = "average";

    /// Puts the options around a rule.
    pub fn new(rule: Arc<dyn UpdateRule>, weight_decay: Option<f64>, ema: Option<Ema>) -> Extended {
        Extended { rule, weight_decay, ema }
    }

    /// The scalars of a step beside those of the rule: the decay, whether this is the first step,
    /// whether it replaces the weights.
    fn scalars_of<N: Number>(&self, step: N, rate: N) -> [N; 3] {
        let number = |value: f64| step.number(value);
        let (zero, one) = (number(0.0), number(1.0));
        let decay = number(self.weight_decay.unwrap_or(0.0)).rounded() * rate.rounded();
        let is_first = N::select(step.above(zero), zero, one);
        let overwrites = match self.ema.and_then(|ema| ema.overwrite_frequency) {
            Some(steps) => {
                let turns = (step + one) / number(steps as f64);
                N::select(turns.floor().at_least(turns), one, zero)
            }
            None => zero,
        };
        [decay, is_first, overwrites]
    }

    /// The number of slots of the rule among all of them. The average is the last one.
    fn n_inner(&self, n_slots: usize) -> usize {
        n_slots - usize::from(self.ema.is_some())
    }

    fn average<N: Number>(&self, [_, is_first, overwrites]: [N; 3]) -> Option<(Begin<N>, Average<N>)> {
        self.ema.map(|ema| {
            // TF: Python floats are subtracted before they are rounded.
            let momentum = overwrites.number(ema.momentum);
            let rest = overwrites.number(1.0 - ema.momentum);
            (Begin { is_first }, Average { momentum, rest, overwrites })
        })
    }

    /// Runs a step over slices; `inner` runs that of the rule.
    fn around(
        &self,
        h: &Hyper,
        w: &mut [f32],
        slots: &mut [&mut [f32]],
        inner: impl FnOnce(&mut [f32], &mut [&mut [f32]]),
    ) {
        let [.., decay, is_first, overwrites] = h.0;
        let (own, average) = slots.split_at_mut(self.n_inner(slots.len()));
        let parts = self.average([decay, is_first, overwrites]);
        if let Some((begin, _)) = parts.filter(|_| is_first > 0.0) {
            Slices { w, g: &[], slots: average }.read(begin);
        }
        if self.weight_decay.is_some() {
            Slices { w, g: &[], slots: &mut [] }.read(Shrink { decay });
        }
        inner(w, own);
        if let Some((_, moved)) = parts {
            Slices { w, g: &[], slots: average }.read(moved);
        }
    }

    /// As `around`, with symbols.
    fn around_symbols<'t>(
        &self,
        h: &[Symbol<'t>],
        w: Symbol<'t>,
        slots: &[Symbol<'t>],
        inner: impl FnOnce(&[Symbol<'t>], Symbol<'t>, &[Symbol<'t>]) -> (Symbol<'t>, Vec<Symbol<'t>>),
    ) -> (Symbol<'t>, Vec<Symbol<'t>>) {
        let (h, own) = h.split_at(INNER);
        let (slots, average) = slots.split_at(self.n_inner(slots.len()));
        let parts = self.average([own[0], own[1], own[2]]);
        let mut kept = (w, average.to_vec());
        if let Some((begin, _)) = parts {
            Once { state: &mut kept, g: w }.read(begin);
        }
        let mut shrunk = (w, Vec::new());
        if self.weight_decay.is_some() {
            Once { state: &mut shrunk, g: w }.read(Shrink { decay: own[0] });
        }
        let (w, mut slots) = inner(h, shrunk.0, slots);
        kept.0 = w;
        if let Some((_, moved)) = parts {
            Once { state: &mut kept, g: w }.read(moved);
        }
        slots.extend(kept.1);
        (kept.0, slots)
    }
}

impl UpdateRule for Extended {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn default_learning_rate(&self) -> f64 {
        self.rule.default_learning_rate()
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = self.rule.slots();
        slots.extend(self.ema.map(|_| AVERAGE));
        slots
    }

    fn slots_of(&self, dims: &[usize]) -> Vec<(Slot, Vec<usize>)> {
        let mut slots = self.rule.slots_of(dims);
        slots.extend(self.ema.map(|_| (AVERAGE, dims.to_vec())));
        slots
    }

    fn scalars(&self, steps: u64) -> Vec<(&'static str, f64)> {
        self.rule.scalars(steps)
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        self.rule.settings()
    }

    fn check(&self) -> Result<(), String> {
        self.rule.check()?;
        bounds::at_least_zero("weight_decay", self.weight_decay.unwrap_or(0.0))?;
        let Some(ema) = self.ema else { return Ok(()) };
        bounds::zero_to_one("ema_momentum", ema.momentum)?;
        bounds::not_none("ema_overwrite_frequency", ema.overwrite_frequency.unwrap_or(1))
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        let rule = self.rule.newer()?;
        Some(Arc::new(Extended { rule, ..self.clone() }))
    }

    fn is_newer(&self) -> bool {
        self.rule.is_newer()
    }

    fn is_whole(&self) -> bool {
        self.rule.is_whole()
    }

    fn hyper(&self, step: u64, learning_rate: f64) -> Hyper {
        let mut hyper = self.rule.hyper(step, learning_rate);
        let own = self.scalars_of(step as f64, learning_rate);
        hyper.0[INNER..].iter_mut().zip(own).for_each(|(place, scalar)| *place = scalar as f32);
        hyper
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::DecayWholeTable
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        self.around(h, w, slots, |w, slots| self.rule.update(h, w, g, slots));
    }

    fn decay(&self, h: &Hyper, w: &mut [f32], slots: &mut [&mut [f32]]) {
        self.around(h, w, slots, |w, slots| self.rule.decay(h, w, slots));
    }

    fn symbolic(&self) -> Option<&dyn SymbolicRule> {
        self.rule.symbolic().map(|_| self as &dyn SymbolicRule)
    }
}

impl Extended {
    /// The symbolic reading of the rule. `symbolic` has checked that there is one.
    fn inner(&self) -> &dyn SymbolicRule {
        self.rule.symbolic().unwrap_or_else(|| unreachable!("a rule without symbols was read with them"))
    }
}

impl SymbolicRule for Extended {
    fn carried(&self) -> Option<Slot> {
        self.inner().carried()
    }

    fn carry<'t>(&self, step: Symbol<'t>, carried: Symbol<'t>) -> Symbol<'t> {
        self.inner().carry(step, carried)
    }

    fn hyper<'t>(&self, step: Symbol<'t>, rate: Symbol<'t>, carried: Symbol<'t>) -> Vec<Symbol<'t>> {
        let mut scalars = self.inner().hyper(step, rate, carried);
        scalars.extend(self.scalars_of(step, rate));
        scalars
    }

    fn update<'t>(
        &self,
        h: &[Symbol<'t>],
        w: Symbol<'t>,
        g: Symbol<'t>,
        slots: &[Symbol<'t>],
    ) -> (Symbol<'t>, Vec<Symbol<'t>>) {
        self.around_symbols(h, w, slots, |h, w, slots| self.inner().update(h, w, g, slots))
    }

    fn decay<'t>(&self, h: &[Symbol<'t>], w: Symbol<'t>, slots: &[Symbol<'t>]) -> (Symbol<'t>, Vec<Symbol<'t>>) {
        self.around_symbols(h, w, slots, |h, w, slots| self.inner().decay(h, w, slots))
    }
}

#[derive(Clone, Copy)]
struct Shrink<N> {
    decay: N,
}

impl<N: Number> Element<N, 0> for Shrink<N> {
    const READS_GRADIENT: bool = false;

    #[inline(always)]
    fn step(self, w: N, _: N, _: [N; 0]) -> (N, [N; 0]) {
        (w - w * self.decay, [])
    }
}

/// TF: the average begins as a copy of the weights before the first step.
#[derive(Clone, Copy)]
struct Begin<N> {
    is_first: N,
}

impl<N: Number> Element<N, 1> for Begin<N> {
    const READS_GRADIENT: bool = false;

    #[inline(always)]
    fn step(self, w: N, _: N, [average]: [N; 1]) -> (N, [N; 1]) {
        (w, [N::select(self.is_first.above(w.number(0.0)), w, average)])
    }
}

#[derive(Clone, Copy)]
struct Average<N> {
    momentum: N,
    rest: N,
    overwrites: N,
}

impl<N: Number> Element<N, 1> for Average<N> {
    const READS_GRADIENT: bool = false;

    #[inline(always)]
    fn step(self, w: N, _: N, [average]: [N; 1]) -> (N, [N; 1]) {
        let average = self.momentum * average + self.rest * w;
        (N::select(self.overwrites.above(w.number(0.0)), average, w), [average])
    }
}
