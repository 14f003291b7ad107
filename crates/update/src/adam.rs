//! Adam and its variants: AMSGrad, and AdamW with decoupled weight decay.

use std::sync::Arc;

use crate::bounds::rounded;
use crate::formula::{self, Element, Formula, Reader, ZeroGradient, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

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
    newer: bool,
}

impl Default for Adam {
    fn default() -> Self {
        Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, amsgrad: false, weight_decay: None, newer: false }
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
        // Only the newer generation has it.
        (self.weight_decay, self.newer) = (Some(weight_decay), true);
        self
    }

    /// Computes as `tf.keras.optimizers.Adam` of TensorFlow 2.11 and later does. By default as
    /// TensorFlow's legacy optimizer, which Estimators use.
    pub fn newer(mut self) -> Self {
        self.newer = true;
        self
    }
}

impl Formula for Adam {
    compiled_here!();

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

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        let mut settings = vec![
            ("beta_1", Setting::Number(self.beta_1)),
            ("beta_2", Setting::Number(self.beta_2)),
            ("epsilon", Setting::Number(self.epsilon)),
            ("amsgrad", Setting::Flag(self.amsgrad)),
        ];
        settings.extend(self.weight_decay.map(|decay| ("weight_decay", Setting::Number(decay))));
        Some(settings)
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("beta_1", self.beta_1)?;
        bounds::below_one("beta_2", self.beta_2)?;
        bounds::positive("epsilon", self.epsilon)?;
        bounds::at_least_zero("weight_decay", self.weight_decay.unwrap_or(0.0))
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Some(Arc::new(Self::newer(*self)))
    }

    fn is_newer(&self) -> bool {
        self.newer
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::DecayWholeTable
    }

    fn hyper<N: Number>(&self, step: N, rate: N, _carried: N) -> [N; 8] {
        let number = |value: f64| step.number(value);
        let (t, rate) = (step + number(1.0), rate.rounded());
        let (beta_1, beta_2) = (rounded(self.beta_1), rounded(self.beta_2));
        let bias = |beta: f64| number(1.0) - number(beta).powf(t);
        let corrected = rate * bias(beta_2).sqrt() / bias(beta_1);
        // TF: Keras's newer optimizers, also AdamW, subtract in f64 and then round: 1 - 0.999
        // differs by 5e-5. (fixture cases newer_adam*)
        let (rest_1, rest_2) =
            if self.newer { (1.0 - self.beta_1, 1.0 - self.beta_2) } else { (1.0 - beta_1, 1.0 - beta_2) };
        let decay = self.weight_decay.map_or(number(0.0), |decay| rate * number(decay));
        let [beta_1, rest_1, beta_2, rest_2, epsilon] = [beta_1, rest_1, beta_2, rest_2, self.epsilon].map(number);
        formula::scalars([corrected, beta_1, rest_1, beta_2, rest_2, epsilon, decay])
    }

    #[inline]
    fn update<N: Number>(&self, h: [N; 8], reader: impl Reader<N>) {
        let step = Step::new(h);
        if self.amsgrad { reader.read(Largest(step)) } else { reader.read(step) }
    }

    #[inline]
    fn decay<N: Number>(&self, h: [N; 8], reader: impl Reader<N>) {
        let step = Step::new(h);
        if self.amsgrad { reader.read(ZeroGradient(Largest(step))) } else { reader.read(ZeroGradient(step)) }
    }
}

#[derive(Clone, Copy)]
struct Step<N> {
    rate: N,
    beta_1: N,
    rest_1: N,
    beta_2: N,
    rest_2: N,
    epsilon: N,
    weight_decay: N,
}

impl<N: Number> Step<N> {
    #[inline(always)]
    fn new([rate, beta_1, rest_1, beta_2, rest_2, epsilon, weight_decay, _]: [N; 8]) -> Step<N> {
        Step { rate, beta_1, rest_1, beta_2, rest_2, epsilon, weight_decay }
    }

    #[inline(always)]
    fn moments(self, g: N, m: N, v: N) -> (N, N) {
        (self.beta_1 * m + self.rest_1 * g, self.beta_2 * v + self.rest_2 * (g * g))
    }

    #[inline(always)]
    fn weight(self, w: N, m: N, v: N) -> N {
        let w = w - self.weight_decay * w;
        w - self.rate * m / (v.sqrt() + self.epsilon)
    }
}

impl<N: Number> Element<N, 2> for Step<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [m, v]: [N; 2]) -> (N, [N; 2]) {
        let (m, v) = self.moments(g, m, v);
        (self.weight(w, m, v), [m, v])
    }
}

/// AMSGrad.
#[derive(Clone, Copy)]
struct Largest<N>(Step<N>);

impl<N: Number> Element<N, 3> for Largest<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [m, v, vhat]: [N; 3]) -> (N, [N; 3]) {
        let (m, v) = self.0.moments(g, m, v);
        let vhat = vhat.max(v);
        (self.0.weight(w, m, vhat), [m, v, vhat])
    }
}
