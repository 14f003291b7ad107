//! Adam and its variants: AMSGrad, and AdamW with decoupled weight decay.

use crate::bounds::rounded;
use crate::width::{self, Element, ZeroGradient};
use crate::{Hyper, Slot, SparseRule, UpdateRule, bounds};

/// `m` and `v` are decaying means of the gradient and of its square;
/// `w -= rate' * m / (sqrt(v) + epsilon)`, where `rate'` corrects the bias of both, which start at
/// zero.
///
/// A row without a gradient takes the same step with a gradient of zero, so a sparse update equals
/// the dense one bit for bit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adam {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    amsgrad: bool,
    weight_decay: Option<f64>,
}

impl Default for Adam {
    fn default() -> Self {
        Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, amsgrad: false, weight_decay: None }
    }
}

impl Adam {
    /// Decay of the mean gradient per step. By default 0.9.
    pub fn beta_1(mut self, beta_1: f64) -> Self {
        self.beta_1 = beta_1;
        self
    }

    /// Decay of the mean squared gradient per step. By default 0.999.
    pub fn beta_2(mut self, beta_2: f64) -> Self {
        self.beta_2 = beta_2;
        self
    }

    /// A number added to the root. By default 1e-7; 1e-8 in TensorFlow 1.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// Whether to divide by the largest mean square so far instead of the current one. By default
    /// off.
    pub fn amsgrad(mut self, amsgrad: bool) -> Self {
        self.amsgrad = amsgrad;
        self
    }

    /// Turns Adam into AdamW: each step first subtracts `rate * weight_decay` times the weight from
    /// every weight, with or without a gradient. By default off; `tf.keras.optimizers.AdamW` uses
    /// 0.004.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.weight_decay = Some(weight_decay);
        self
    }
}

impl UpdateRule for Adam {
    fn name(&self) -> &'static str {
        if self.weight_decay.is_some() { "AdamW" } else { "Adam" }
    }

    fn slots(&self) -> Vec<Slot> {
        let names: &[_] = if self.amsgrad { &["m", "v", "vhat"] } else { &["m", "v"] };
        names.iter().map(|name| Slot::new(name, 0.0)).collect()
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        let mut scalars = vec![("beta_1", self.beta_1), ("beta_2", self.beta_2), ("decay", 0.0)];
        scalars.extend(self.weight_decay.map(|decay| ("weight_decay", decay)));
        scalars
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("beta_1", self.beta_1)?;
        bounds::below_one("beta_2", self.beta_2)?;
        bounds::positive("epsilon", self.epsilon)?;
        bounds::at_least_zero("weight_decay", self.weight_decay.unwrap_or(0.0))
    }

    fn hyper(&self, step: u64, learning_rate: f64) -> Hyper {
        let t = step as f64 + 1.0;
        let (rate, beta_1, beta_2) = (rounded(learning_rate), rounded(self.beta_1), rounded(self.beta_2));
        let corrected = rate * (1.0 - beta_2.powf(t)).sqrt() / (1.0 - beta_1.powf(t));
        let Some(decay) = self.weight_decay else {
            return Hyper::round([corrected, beta_1, 1.0 - beta_1, beta_2, 1.0 - beta_2, self.epsilon]);
        };
        // TF: AdamW belongs to Keras's newer optimizers, which subtract in f64 and then round:
        // 1 - 0.999 differs by 5e-5. (fixture cases adamw*)
        let complements = (1.0 - self.beta_1, 1.0 - self.beta_2);
        Hyper::round([corrected, beta_1, complements.0, beta_2, complements.1, self.epsilon, rate * decay])
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::DecayWholeTable
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        let step = Step::new(h);
        if self.amsgrad { width::apply(Largest(step), w, g, slots) } else { width::apply(step, w, g, slots) }
    }

    fn decay(&self, h: &Hyper, w: &mut [f32], slots: &mut [&mut [f32]]) {
        let step = Step::new(h);
        if self.amsgrad {
            width::apply(ZeroGradient(Largest(step)), w, &[], slots)
        } else {
            width::apply(ZeroGradient(step), w, &[], slots)
        }
    }
}

#[derive(Clone, Copy)]
struct Step {
    rate: f32,
    beta_1: f32,
    rest_1: f32,
    beta_2: f32,
    rest_2: f32,
    epsilon: f32,
    weight_decay: f32,
}

impl Step {
    fn new(h: &Hyper) -> Step {
        let [rate, beta_1, rest_1, beta_2, rest_2, epsilon, weight_decay, _] = h.0;
        Step { rate, beta_1, rest_1, beta_2, rest_2, epsilon, weight_decay }
    }

    #[inline(always)]
    fn moments(self, g: f32, m: f32, v: f32) -> (f32, f32) {
        (self.beta_1 * m + self.rest_1 * g, self.beta_2 * v + self.rest_2 * (g * g))
    }

    #[inline(always)]
    fn weight(self, w: f32, m: f32, v: f32) -> f32 {
        let w = w - self.weight_decay * w;
        w - self.rate * m / (v.sqrt() + self.epsilon)
    }
}

impl Element<2> for Step {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [m, v]: [f32; 2]) -> (f32, [f32; 2]) {
        let (m, v) = self.moments(g, m, v);
        (self.weight(w, m, v), [m, v])
    }
}

/// AMSGrad.
#[derive(Clone, Copy)]
struct Largest(Step);

impl Element<3> for Largest {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [m, v, vhat]: [f32; 3]) -> (f32, [f32; 3]) {
        let (m, v) = self.0.moments(g, m, v);
        let vhat = vhat.max(v);
        (self.0.weight(w, m, vhat), [m, v, vhat])
    }
}
