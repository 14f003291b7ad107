//! Nadam: Adam with Nesterov momentum, where a schedule warms up the momentum.

use std::sync::Arc;

use crate::bounds::rounded;
use crate::formula::{Element, Formula, Reader, Scale, ZeroGradient, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

/// Step t mixes gradient and mean gradient by
/// `mu(t) = beta_1 * (1 - 0.96^(schedule_decay * t) / 2)`:
/// `w -= rate * ((1 - mu(t)) * g' + mu(t + 1) * m') / (sqrt(v') + epsilon)`. Here `g'`, `m'` and
/// `v'` are corrected for having started at zero, the first two by the product of all `mu` so far.
///
/// A sparse gradient decays the slots of all rows. Unlike Adam, it changes only the weights of its
/// own rows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Nadam {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    schedule_decay: f64,
    newer: bool,
}

impl Default for Nadam {
    fn default() -> Self {
        Nadam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, schedule_decay: 0.004, newer: false }
    }
}

impl Nadam {
    /// The decay of the mean gradient per step, and the final momentum. By default 0.9.
    pub fn beta_1(mut self, beta_1: f64) -> Self {
        self.beta_1 = beta_1;
        self
    }

    /// Decay of the mean squared gradient per step. By default 0.999.
    pub fn beta_2(mut self, beta_2: f64) -> Self {
        self.beta_2 = beta_2;
        self
    }

    /// A number added to the root. By default 1e-7.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// The speed at which the momentum rises from half of `beta_1` to all of it. By default 0.004.
    pub fn schedule_decay(mut self, schedule_decay: f64) -> Self {
        self.schedule_decay = schedule_decay;
        self
    }

    /// TensorFlow's scalar `momentum_cache` after `steps` updates: the product of `mu(1)` to
    /// `mu(steps)`.
    ///
    /// It is computed anew each time. Every factor is below `beta_1`, so the product soon becomes
    /// zero in `f32`: by default after about 130 factors, whatever the number of steps.
    pub fn momentum_cache(&self, steps: u64) -> f64 {
        let beta_1 = rounded(self.beta_1);
        let fall = 0.96f64.powf(self.schedule_decay);
        let (mut product, mut distance) = (1.0, 0.5);
        for _ in 0..steps {
            distance *= fall;
            product *= beta_1 * (1.0 - distance);
            if product as f32 == 0.0 {
                break;
            }
        }
        product
    }

    /// `mu(t)`
    fn momentum<N: Number>(&self, t: N) -> N {
        let number = |value: f64| t.number(value);
        let distance = number(0.5) * number(0.96).powf(number(self.schedule_decay) * t);
        number(rounded(self.beta_1)) * (number(1.0) - distance)
    }

    /// Computes as `tf.keras.optimizers.Nadam` of TensorFlow 2.11 and later does: the momentum
    /// warms up with `schedule_decay` 1, and a sparse gradient moves all rows. By default as
    /// TensorFlow's legacy optimizer, which Estimators use.
    pub fn newer(mut self) -> Self {
        (self.newer, self.schedule_decay) = (true, 1.0);
        self
    }
}

impl Formula for Nadam {
    compiled_here!();

    fn name(&self) -> &'static str {
        "Nadam"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("m", 0.0), Slot::new("v", 0.0)]
    }

    fn scalars(&self, steps: u64) -> Vec<(&'static str, f64)> {
        let cache = self.momentum_cache(steps);
        let (beta_1, beta_2) = (self.beta_1, self.beta_2);
        vec![("beta_1", beta_1), ("beta_2", beta_2), ("decay", self.schedule_decay), ("momentum_cache", cache)]
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        let mut settings = vec![
            ("beta_1", Setting::Number(self.beta_1)),
            ("beta_2", Setting::Number(self.beta_2)),
            ("epsilon", Setting::Number(self.epsilon)),
        ];
        // In the newer form it is always 1.
        settings.extend((!self.newer).then_some(("schedule_decay", Setting::Number(self.schedule_decay))));
        Some(settings)
    }

    fn check(&self) -> Result<(), String> {
        bounds::below_one("beta_1", self.beta_1)?;
        bounds::below_one("beta_2", self.beta_2)?;
        bounds::positive("epsilon", self.epsilon)?;
        bounds::at_least_zero("schedule_decay", self.schedule_decay)
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

    fn carried(&self) -> Option<Slot> {
        Some(Slot::new("momentum_cache", 1.0))
    }

    fn carried_after(&self, steps: u64) -> f64 {
        self.momentum_cache(steps)
    }

    fn carry<N: Number>(&self, step: N, product: N) -> N {
        product * self.momentum(step + step.number(1.0))
    }

    fn hyper<N: Number>(&self, step: N, rate: N, product: N) -> [N; 8] {
        let number = |value: f64| step.number(value);
        let (one, rate) = (number(1.0), rate.rounded());
        let (beta_1, beta_2, t) = (rounded(self.beta_1), rounded(self.beta_2), step + one);
        let (now, next) = (self.momentum(t), self.momentum(t + one));
        [
            rate * (one - now) / (one - product),
            rate * next / (one - product * next),
            one - number(beta_2).powf(t),
            number(beta_1),
            number(1.0 - beta_1),
            number(beta_2),
            number(1.0 - beta_2),
            number(self.epsilon),
        ]
    }

    #[inline]
    fn update<N: Number>(&self, h: [N; 8], reader: impl Reader<N>) {
        reader.read(Step::new(h))
    }

    #[inline]
    fn decay<N: Number>(&self, h: [N; 8], reader: impl Reader<N>) {
        let step = Step::new(h);
        // TF: the newer Nadam makes a dense gradient of a sparse one. (fixture case newer_nadam)
        if self.newer { reader.read(ZeroGradient(step)) } else { reader.read(Scale([step.beta_1, step.beta_2])) }
    }
}

#[derive(Clone, Copy)]
struct Step<N> {
    /// The factor of the gradient.
    of_gradient: N,
    /// The factor of the mean gradient.
    of_mean: N,
    /// The bias of the mean square.
    correction: N,
    beta_1: N,
    rest_1: N,
    beta_2: N,
    rest_2: N,
    epsilon: N,
}

impl<N: Number> Step<N> {
    #[inline(always)]
    fn new([of_gradient, of_mean, correction, beta_1, rest_1, beta_2, rest_2, epsilon]: [N; 8]) -> Step<N> {
        Step { of_gradient, of_mean, correction, beta_1, rest_1, beta_2, rest_2, epsilon }
    }
}

impl<N: Number> Element<N, 2> for Step<N> {
    #[inline(always)]
    fn step(self, w: N, g: N, [m, v]: [N; 2]) -> (N, [N; 2]) {
        let m = self.beta_1 * m + self.rest_1 * g;
        let v = self.beta_2 * v + self.rest_2 * (g * g);
        let change = self.of_gradient * g + self.of_mean * m;
        (w - change / ((v / self.correction).sqrt() + self.epsilon), [m, v])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: mu(1) = 0.9 * (1 - 0.96^0.004 / 2) = 0.4500734718, mu(2) = 0.9 * (1 - 0.96^0.008 /
    /// 2) = 0.4501469315.
    #[test]
    fn momentum_cache_is_the_product_of_the_momenta() {
        let rule = Nadam::default();
        assert_eq!(rule.momentum_cache(0), 1.0);
        assert!((rule.momentum_cache(1) - 0.4500734718).abs() < 1e-7);
        assert!((rule.momentum_cache(2) - 0.4500734718 * 0.4501469315).abs() < 1e-7);
        assert_eq!(rule.momentum_cache(10_000), rule.momentum_cache(u64::MAX));
    }
}
