//! Adafactor: second moments as the product of a row and a column, and steps relative to the
//! weights.

use std::sync::Arc;

use crate::formula::{self, N_SCALARS};
use crate::number::{Number, Symbol};
use crate::{Hyper, Setting, Slot, SparseRule, SymbolicRule, UpdateRule, bounds};

/// `w -= max(epsilon_2, rms(w)) * min(rate, 1 / sqrt(t)) * u / max(1, rms(u) / clip_threshold)`,
/// where `u = g / sqrt(v)`.
///
/// `v` is a mean of `g^2 + epsilon_1`. A variable of two or more axes keeps its means along the
/// last axis (`r`) and along the one before (`c`), and `v = r / mean(r) * c`. The step needs the
/// whole variable ([`UpdateRule::is_whole`]), and a sparse gradient counts as a dense one.
///
/// Keras has it in the newer generation alone.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adafactor {
    beta_2_decay: f64,
    epsilon_1: f64,
    epsilon_2: f64,
    clip_threshold: f64,
    relative_step: bool,
}

impl Default for Adafactor {
    fn default() -> Self {
        Adafactor { beta_2_decay: -0.8, epsilon_1: 1e-30, epsilon_2: 1e-3, clip_threshold: 1.0, relative_step: true }
    }
}

impl Adafactor {
    /// The exponent of the means: step `t` has the share `t^beta_2_decay` in them. By default -0.8.
    pub fn beta_2_decay(mut self, beta_2_decay: f64) -> Self {
        self.beta_2_decay = beta_2_decay;
        self
    }

    /// Added to every squared gradient. By default 1e-30.
    pub fn epsilon_1(mut self, epsilon_1: f64) -> Self {
        self.epsilon_1 = epsilon_1;
        self
    }

    /// The least size of weights that steps are relative to. By default 0.001.
    pub fn epsilon_2(mut self, epsilon_2: f64) -> Self {
        self.epsilon_2 = epsilon_2;
        self
    }

    /// The limit of the root mean square of `u`. By default 1.
    pub fn clip_threshold(mut self, clip_threshold: f64) -> Self {
        self.clip_threshold = clip_threshold;
        self
    }

    /// Whether the learning rate is at most `1 / sqrt(t)`. By default it is.
    ///
    /// TF: it is so without this setting too. Keras takes the same minimum a second time.
    pub fn relative_step(mut self, relative_step: bool) -> Self {
        self.relative_step = relative_step;
        self
    }

    /// The rate of a step, and the shares of the old and the new numbers in the means.
    fn scalars_of<N: Number>(&self, step: N, rate: N) -> [N; N_SCALARS] {
        let number = |value: f64| step.number(value);
        let one = number(1.0);
        let t = step + one;
        // TF: the shares are computed and rounded in f32, one from the other.
        let beta_2 = (one - t.powf(number(bounds::rounded(self.beta_2_decay))).rounded()).rounded();
        formula::scalars([rate.min(one / t.sqrt()), beta_2, one - beta_2])
    }

    /// New means, from the slots of a variable: `r`, `c`, `v`, or `v` alone.
    fn means<'t>(&self, [beta_2, rest]: [Symbol<'t>; 2], g: Symbol<'t>, slots: &[Symbol<'t>]) -> Vec<Symbol<'t>> {
        let square = g * g + g.number(self.epsilon_1);
        let moved = |mean: Symbol<'t>, new: Symbol<'t>| beta_2 * mean + rest * new;
        match *slots {
            [r, c, _] => {
                let (r, c) = (moved(r, square.mean_along(-1)), moved(c, square.mean_along(-2)));
                let v = (r / r.mean_along(-1).with_axis(-1)).with_axis(-1) * c.with_axis(-2);
                vec![r, c, v]
            }
            [v] => vec![moved(v, square)],
            _ => unreachable!("Adafactor with {} slots", slots.len()),
        }
    }
}

fn root_mean_square(x: Symbol<'_>) -> Symbol<'_> {
    (x * x).mean().sqrt()
}

const R: Slot = Slot::new("r", 0.0);
const C: Slot = Slot::new("c", 0.0);
const V: Slot = Slot::new("v", 0.0);

impl UpdateRule for Adafactor {
    fn name(&self) -> &'static str {
        "Adafactor"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![R, C, V]
    }

    fn slots_of(&self, dims: &[usize]) -> Vec<(Slot, Vec<usize>)> {
        let whole = (V, dims.to_vec());
        match dims {
            [front @ .., rows, columns] => {
                let with = |last: usize| front.iter().copied().chain([last]).collect();
                vec![(R, with(*rows)), (C, with(*columns)), whole]
            }
            _ => vec![whole],
        }
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![
            ("beta_2_decay", Setting::Number(self.beta_2_decay)),
            ("epsilon_1", Setting::Number(self.epsilon_1)),
            ("epsilon_2", Setting::Number(self.epsilon_2)),
            ("clip_threshold", Setting::Number(self.clip_threshold)),
            ("relative_step", Setting::Flag(self.relative_step)),
        ])
    }

    fn check(&self) -> Result<(), String> {
        bounds::at_most_zero("beta_2_decay", self.beta_2_decay)?;
        bounds::at_least_zero("epsilon_1", self.epsilon_1)?;
        bounds::at_least_zero("epsilon_2", self.epsilon_2)?;
        bounds::positive("clip_threshold", self.clip_threshold)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Some(Arc::new(*self))
    }

    fn is_newer(&self) -> bool {
        true
    }

    fn is_whole(&self) -> bool {
        true
    }

    fn hyper(&self, step: u64, learning_rate: f64) -> Hyper {
        formula::hyper(self.scalars_of(step as f64, learning_rate))
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::DecayWholeTable
    }

    fn update(&self, _: &Hyper, _: &mut [f32], _: &[f32], _: &mut [&mut [f32]]) {
        unreachable!("Adafactor runs as nodes: a part of a variable does not have the means of the whole")
    }

    fn symbolic(&self) -> Option<&dyn SymbolicRule> {
        Some(self)
    }
}

impl SymbolicRule for Adafactor {
    fn carried(&self) -> Option<Slot> {
        None
    }

    fn carry<'t>(&self, _step: Symbol<'t>, carried: Symbol<'t>) -> Symbol<'t> {
        carried
    }

    fn hyper<'t>(&self, step: Symbol<'t>, rate: Symbol<'t>, _carried: Symbol<'t>) -> Vec<Symbol<'t>> {
        self.scalars_of(step, rate).to_vec()
    }

    fn update<'t>(
        &self,
        h: &[Symbol<'t>],
        w: Symbol<'t>,
        g: Symbol<'t>,
        slots: &[Symbol<'t>],
    ) -> (Symbol<'t>, Vec<Symbol<'t>>) {
        let [rate, beta_2, rest, ..] = formula::inner(h);
        let slots = self.means([beta_2, rest], g, slots);
        let u = g / slots[slots.len() - 1].sqrt();
        let excess = root_mean_square(u) / u.number(self.clip_threshold);
        let size = root_mean_square(w).max(w.number(self.epsilon_2));
        (w - size * rate * (u / excess.max(excess.number(1.0))), slots)
    }

    /// There are no rows without a gradient.
    fn decay<'t>(&self, _: &[Symbol<'t>], w: Symbol<'t>, slots: &[Symbol<'t>]) -> (Symbol<'t>, Vec<Symbol<'t>>) {
        (w, slots.to_vec())
    }
}
