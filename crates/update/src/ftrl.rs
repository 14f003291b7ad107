//! FTRL (follow the regularized leader, proximal): for sparse linear models; L1 makes weights
//! exactly zero.

use crate::bounds::rounded;
use crate::width::{self, Element};
use crate::{Hyper, Slot, SparseRule, UpdateRule, bounds};

/// With `p(n) = n^-power`, a square root by default, each step changes the slots by
/// `z += g + 2 * l2_shrinkage * w - (p(n + g^2) - p(n)) / rate * w; n += g^2`. The weight is then a
/// function of the slots alone:
/// `w = |z| > l1 ? (sign(z) * l1 - z) / (p(n) / rate + 2 * l2 + beta / rate) : 0`.
///
/// A weight that does not start at zero is therefore mostly forgotten in the first step. If the
/// learning rate is zero, where the formula would divide by zero, nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Ftrl {
    learning_rate_power: f64,
    initial_accumulator: f64,
    l1: f64,
    l2: f64,
    l2_shrinkage: f64,
    beta: f64,
}

impl Default for Ftrl {
    fn default() -> Self {
        Ftrl { learning_rate_power: -0.5, initial_accumulator: 0.1, l1: 0.0, l2: 0.0, l2_shrinkage: 0.0, beta: 0.0 }
    }
}

impl Ftrl {
    /// The exponent with which the rate falls with the sum of squared gradients; 0 keeps the rate
    /// fixed. By default -0.5.
    pub fn learning_rate_power(mut self, learning_rate_power: f64) -> Self {
        self.learning_rate_power = learning_rate_power;
        self
    }

    /// The initial sum of squared gradients. By default 0.1.
    pub fn initial_accumulator(mut self, initial_accumulator: f64) -> Self {
        self.initial_accumulator = initial_accumulator;
        self
    }

    /// The L1 strength. Weights with `|z|` up to it are zero. By default 0.
    pub fn l1(mut self, l1: f64) -> Self {
        self.l1 = l1;
        self
    }

    /// The L2 strength, a penalty at the solution. By default 0.
    pub fn l2(mut self, l2: f64) -> Self {
        self.l2 = l2;
        self
    }

    /// The L2 strength as a penalty on the current weight. It is added to the gradient but not to
    /// its square. By default 0.
    pub fn l2_shrinkage(mut self, l2_shrinkage: f64) -> Self {
        self.l2_shrinkage = l2_shrinkage;
        self
    }

    /// Dampens the first steps. By default 0.
    pub fn beta(mut self, beta: f64) -> Self {
        self.beta = beta;
        self
    }
}

impl UpdateRule for Ftrl {
    fn name(&self) -> &'static str {
        "Ftrl"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new("accumulator", self.initial_accumulator as f32), Slot::new("linear", 0.0)]
    }

    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        // TF: the shrinkage is not a hyper-parameter in TensorFlow and not in its files.
        vec![
            ("beta", self.beta),
            ("decay", 0.0),
            ("l1_regularization_strength", self.l1),
            ("l2_regularization_strength", self.l2),
            ("learning_rate_power", self.learning_rate_power),
        ]
    }

    fn check(&self) -> Result<(), String> {
        bounds::at_most_zero("learning_rate_power", self.learning_rate_power)?;
        bounds::at_least_zero("initial_accumulator", self.initial_accumulator)?;
        bounds::at_least_zero("l1", self.l1)?;
        bounds::at_least_zero("l2", self.l2)?;
        bounds::at_least_zero("l2_shrinkage", self.l2_shrinkage)?;
        bounds::at_least_zero("beta", self.beta)
    }

    fn hyper(&self, _step: u64, learning_rate: f64) -> Hyper {
        let rate = rounded(learning_rate);
        let l2 = rounded(self.l2) + rounded(self.beta) / (2.0 * rate);
        Hyper::round([rate, self.l1, 2.0 * l2, 2.0 * rounded(self.l2_shrinkage), -self.learning_rate_power])
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        let [rate, l1, twice_l2, twice_shrinkage, power, ..] = h.0;
        if rate == 0.0 {
            return;
        }
        // TF: the usual power has its own branch; powf is slower and rounds differently. (fixture
        // case ftrl_power)
        if power == 0.5 {
            width::apply(Step { rate, l1, twice_l2, twice_shrinkage, power: f32::sqrt }, w, g, slots)
        } else {
            let power = move |n: f32| n.powf(power);
            width::apply(Step { rate, l1, twice_l2, twice_shrinkage, power }, w, g, slots)
        }
    }
}

#[derive(Clone, Copy)]
struct Step<P> {
    rate: f32,
    l1: f32,
    twice_l2: f32,
    twice_shrinkage: f32,
    power: P,
}

impl<P: Fn(f32) -> f32 + Copy> Element<2> for Step<P> {
    #[inline(always)]
    fn step(self, w: f32, g: f32, [n, z]: [f32; 2]) -> (f32, [f32; 2]) {
        let grown = n + g * g;
        let power = (self.power)(grown);
        let sigma = (power - (self.power)(n)) / self.rate;
        let z = z + (g + self.twice_shrinkage * w) - sigma * w;
        let quadratic = power / self.rate + self.twice_l2;
        let w = if z.abs() > self.l1 { (self.l1.copysign(z) - z) / quadratic } else { 0.0 };
        (w, [grown, z])
    }
}
