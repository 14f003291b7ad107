//! FTRL (follow the regularized leader, proximal): for sparse linear models; L1 makes weights
//! exactly zero.

use std::sync::Arc;

use crate::bounds::rounded;
use crate::formula::{self, Element, Formula, Reader, ZeroGradient, compiled_here};
use crate::number::Number;
use crate::{Setting, Slot, SparseRule, UpdateRule, bounds};

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
    newer: bool,
}

impl Default for Ftrl {
    fn default() -> Self {
        Ftrl {
            learning_rate_power: -0.5,
            initial_accumulator: 0.1,
            l1: 0.0,
            l2: 0.0,
            l2_shrinkage: 0.0,
            beta: 0.0,
            newer: false,
        }
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

    /// Computes as `tf.keras.optimizers.Ftrl` of TensorFlow 2.11 and later does: a sparse gradient
    /// computes all rows anew. By default as TensorFlow's legacy optimizer, which Estimators use.
    pub fn newer(mut self) -> Self {
        self.newer = true;
        self
    }
}

impl Formula for Ftrl {
    compiled_here!();

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

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![
            ("learning_rate_power", Setting::Number(self.learning_rate_power)),
            ("initial_accumulator_value", Setting::Number(self.initial_accumulator)),
            ("l1_regularization_strength", Setting::Number(self.l1)),
            ("l2_regularization_strength", Setting::Number(self.l2)),
            ("l2_shrinkage_regularization_strength", Setting::Number(self.l2_shrinkage)),
            ("beta", Setting::Number(self.beta)),
        ])
    }

    fn check(&self) -> Result<(), String> {
        bounds::at_most_zero("learning_rate_power", self.learning_rate_power)?;
        bounds::at_least_zero("initial_accumulator", self.initial_accumulator)?;
        bounds::at_least_zero("l1", self.l1)?;
        bounds::at_least_zero("l2", self.l2)?;
        bounds::at_least_zero("l2_shrinkage", self.l2_shrinkage)?;
        bounds::at_least_zero("beta", self.beta)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Some(Arc::new(Self::newer(*self)))
    }

    fn is_newer(&self) -> bool {
        self.newer
    }

    fn sparse(&self) -> SparseRule {
        if self.newer { SparseRule::DecayWholeTable } else { SparseRule::TouchedRows }
    }

    fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
        let number = |value: f64| rate.number(value);
        let (rate, two) = (rate.rounded(), number(2.0));
        let l2 = number(rounded(self.l2)) + number(rounded(self.beta)) / (two * rate);
        let twice_shrinkage = number(2.0 * rounded(self.l2_shrinkage));
        formula::scalars([rate, number(self.l1), two * l2, twice_shrinkage, number(-self.learning_rate_power)])
    }

    #[inline]
    fn update<N: Number>(&self, [rate, l1, twice_l2, twice_shrinkage, power, ..]: [N; 8], reader: impl Reader<N>) {
        // TF: the usual power has its own branch; powf is slower and rounds differently. (fixture
        // case ftrl_power)
        if self.learning_rate_power as f32 == -0.5 {
            reader.read(Step { rate, l1, twice_l2, twice_shrinkage, power: N::sqrt })
        } else {
            reader.read(Step { rate, l1, twice_l2, twice_shrinkage, power: move |n: N| n.powf(power) })
        }
    }

    #[inline]
    fn decay<N: Number>(&self, [rate, l1, twice_l2, twice_shrinkage, power, ..]: [N; 8], reader: impl Reader<N>) {
        if !self.newer {
            return;
        }
        if self.learning_rate_power as f32 == -0.5 {
            reader.read(ZeroGradient(Step { rate, l1, twice_l2, twice_shrinkage, power: N::sqrt }))
        } else {
            let power = move |n: N| n.powf(power);
            reader.read(ZeroGradient(Step { rate, l1, twice_l2, twice_shrinkage, power }))
        }
    }
}

#[derive(Clone, Copy)]
struct Step<N, P> {
    rate: N,
    l1: N,
    twice_l2: N,
    twice_shrinkage: N,
    power: P,
}

impl<N: Number, P: Fn(N) -> N + Copy> Element<N, 2> for Step<N, P> {
    #[inline(always)]
    fn step(self, w: N, g: N, [n, z]: [N; 2]) -> (N, [N; 2]) {
        let grown = n + g * g;
        let power = (self.power)(grown);
        let sigma = (power - (self.power)(n)) / self.rate;
        let pulled = z + (g + self.twice_shrinkage * w) - sigma * w;
        let quadratic = power / self.rate + self.twice_l2;
        let leader = (self.l1.copysign(pulled) - pulled) / quadratic;
        let zero = w.number(0.0);
        let leader = N::select(pulled.abs().above(self.l1), leader, zero);
        // At a rate of zero, the numbers above are infinite or NaN.
        let rests = zero.at_least(self.rate.abs());
        (N::select(rests, w, leader), [N::select(rests, n, grown), N::select(rests, z, pulled)])
    }
}
