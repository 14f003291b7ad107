//! The losses of `LinearSdca`: the loss of a logit, its conjugate, and the best dual variable of
//! one example.
//!
//! A dual variable `a` of an example with the label `y` belongs to a logit `z` by `a = -loss'(z)`.
//! The sum of a loss and its conjugate at `-a`, and `a * z`, is never negative, and 0 where the two
//! belong together: the duality gap is the sum over all examples.

use estimand_tensor::{Error, Result};

use crate::head::ExampleLoss;

/// The loss that `LinearSdca` minimises. By default, it is that of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdcaLoss {
    /// `ln(1 + exp(z)) - y * z`, for labels from 0 to 1: logistic regression.
    Logistic,
    /// `(z - y)^2 / 2`: linear regression.
    Squared,
    /// `max(0, 1 - s * z)`, where `s` is -1 for the label 0 and 1 for the label 1: the loss of
    /// support vector machines.
    Hinge,
    /// The hinge loss with a parabola in place of its bend: `(1 - s * z)^2 / 2` for `s * z` from 0
    /// to 1, a line below, 0 above.
    SmoothHinge,
    /// `exp(z) - y * z`, for labels from 0: Poisson regression.
    Poisson,
}

/// All losses by their names.
pub(super) const LOSSES: [(&str, SdcaLoss); 5] = [
    ("logistic_loss", SdcaLoss::Logistic),
    ("squared_loss", SdcaLoss::Squared),
    ("hinge_loss", SdcaLoss::Hinge),
    ("smooth_hinge_loss", SdcaLoss::SmoothHinge),
    ("poisson_loss", SdcaLoss::Poisson),
];

/// Steps of Newton's method at most. It needs about five.
const NEWTON_STEPS: usize = 60;

impl SdcaLoss {
    /// The name in TensorFlow.
    pub(super) fn name(self) -> &'static str {
        LOSSES.iter().find(|(_, loss)| *loss == self).map_or("", |(name, _)| *name)
    }

    /// The loss of a head.
    pub(super) fn of(loss: ExampleLoss) -> SdcaLoss {
        match loss {
            ExampleLoss::Logistic => SdcaLoss::Logistic,
            ExampleLoss::Squared => SdcaLoss::Squared,
            ExampleLoss::Poisson => SdcaLoss::Poisson,
        }
    }

    /// The loss of the heads that it can be used with.
    pub(super) fn needs(self) -> ExampleLoss {
        match self {
            SdcaLoss::Logistic | SdcaLoss::Hinge | SdcaLoss::SmoothHinge => ExampleLoss::Logistic,
            SdcaLoss::Squared => ExampleLoss::Squared,
            SdcaLoss::Poisson => ExampleLoss::Poisson,
        }
    }

    /// Refuses a label that the loss is not made for.
    pub(super) fn check_label(self, y: f64) -> Result<()> {
        let (is_allowed, expected) = match self {
            SdcaLoss::Logistic => ((0.0..=1.0).contains(&y), "a number from 0 to 1"),
            SdcaLoss::Squared => (y.is_finite(), "a finite number"),
            SdcaLoss::Hinge | SdcaLoss::SmoothHinge => (y == 0.0 || y == 1.0, "0 or 1"),
            SdcaLoss::Poisson => (y >= 0.0 && y.is_finite(), "a number from 0"),
        };
        match is_allowed {
            true => Ok(()),
            false => Err(Error::data(format!("the label is {y}; {} needs {expected}", self.name()))
                .help("correct the row, leave it out with Dataset::filter, or choose another loss")),
        }
    }

    /// The loss of a logit.
    pub(super) fn value(self, y: f64, z: f64) -> f64 {
        match self {
            SdcaLoss::Logistic => z.max(0.0) - y * z + (-z.abs()).exp().ln_1p(),
            SdcaLoss::Squared => 0.5 * (z - y) * (z - y),
            SdcaLoss::Hinge => (1.0 - sign(y) * z).max(0.0),
            SdcaLoss::SmoothHinge => match 1.0 - sign(y) * z {
                short if short <= 0.0 => 0.0,
                short if short >= 1.0 => short - 0.5,
                short => 0.5 * short * short,
            },
            SdcaLoss::Poisson => z.exp() - y * z,
        }
    }

    /// The slope of the loss at a logit.
    pub(super) fn slope(self, y: f64, z: f64) -> f64 {
        match self {
            SdcaLoss::Logistic => sigmoid(z) - y,
            SdcaLoss::Squared => z - y,
            SdcaLoss::Hinge => match sign(y) * z < 1.0 {
                true => -sign(y),
                false => 0.0,
            },
            SdcaLoss::SmoothHinge => -sign(y) * (1.0 - sign(y) * z).clamp(0.0, 1.0),
            SdcaLoss::Poisson => z.exp() - y,
        }
    }

    /// The slopes of the loss differ by at most 1 / this times the difference of their logits; 0 if
    /// there is no such number.
    pub(super) fn smoothness(self) -> f64 {
        match self {
            SdcaLoss::Logistic => 4.0,
            SdcaLoss::Squared | SdcaLoss::SmoothHinge => 1.0,
            SdcaLoss::Hinge | SdcaLoss::Poisson => 0.0,
        }
    }

    /// The conjugate of the loss at `-a`: the largest `-a * z - loss(z)` of all logits `z`.
    pub(super) fn conjugate(self, y: f64, a: f64) -> f64 {
        match self {
            SdcaLoss::Logistic => {
                let p = y - a;
                x_ln_x(p) + x_ln_x(1.0 - p)
            }
            SdcaLoss::Squared => 0.5 * a * (a - 2.0 * y),
            SdcaLoss::Hinge => -sign(y) * a,
            SdcaLoss::SmoothHinge => 0.5 * a * a - sign(y) * a,
            SdcaLoss::Poisson => x_ln_x(y - a) - (y - a),
        }
    }

    /// Returns the nearest dual variable at which the conjugate is finite.
    pub(super) fn nearest_dual(self, y: f64, a: f64) -> f64 {
        match self {
            SdcaLoss::Logistic => a.clamp(y - 1.0, y),
            SdcaLoss::Squared => a,
            SdcaLoss::Hinge | SdcaLoss::SmoothHinge => sign(y) * (sign(y) * a).clamp(0.0, 1.0),
            SdcaLoss::Poisson => a.min(y),
        }
    }

    /// Returns whether the conjugate is finite at a dual variable.
    pub(super) fn is_feasible(self, y: f64, a: f64) -> bool {
        a.is_finite() && self.nearest_dual(y, a) == a
    }

    /// Returns the dual variable that is best for one example while all others stay: the one that
    /// belongs to the logit that it leads to, `z + norm * (result - a)`. `norm` is above 0.
    pub(super) fn best_dual(self, y: f64, a: f64, z: f64, norm: f64) -> f64 {
        match self {
            SdcaLoss::Logistic => {
                let p = y - a;
                // Of probabilities: the logit is z + norm * (p - sigmoid(logit)).
                let excess = |logit: f64| logit - z - norm * (p - sigmoid(logit));
                let (mut low, mut high) = (z + norm * (p - 1.0), z + norm * p);
                let mut logit = z.clamp(low, high);
                for _ in 0..NEWTON_STEPS {
                    let over = excess(logit);
                    match over > 0.0 {
                        true => high = logit,
                        false => low = logit,
                    }
                    let q = sigmoid(logit);
                    let mut next = logit - over / (1.0 + norm * q * (1.0 - q));
                    if !(low..=high).contains(&next) {
                        next = 0.5 * (low + high);
                    }
                    if is_close(next, logit) {
                        logit = next;
                        break;
                    }
                    logit = next;
                }
                y - sigmoid(logit)
            }
            SdcaLoss::Squared => a + (y - z - a) / (1.0 + norm),
            SdcaLoss::Hinge => sign(y) * (sign(y) * a + (1.0 - sign(y) * z) / norm).clamp(0.0, 1.0),
            SdcaLoss::SmoothHinge => {
                let own = sign(y) * a;
                sign(y) * (own + (1.0 - sign(y) * z - own) / (1.0 + norm)).clamp(0.0, 1.0)
            }
            SdcaLoss::Poisson => {
                // The logit solves logit + norm * exp(logit) = whole. The left side is convex and
                // grows, so Newton's method comes down to it from above without overshooting.
                let whole = z + norm * (y - a);
                let mut logit = match whole > 0.0 {
                    true => whole.min((whole / norm).ln()).max(0.0),
                    false => whole,
                };
                for _ in 0..NEWTON_STEPS {
                    let rate = norm * logit.exp();
                    let next = logit - (logit + rate - whole) / (1.0 + rate);
                    if is_close(next, logit) {
                        logit = next;
                        break;
                    }
                    logit = next;
                }
                y - logit.exp()
            }
        }
    }
}

/// -1 for the label 0, 1 for the label 1.
fn sign(y: f64) -> f64 {
    2.0 * y - 1.0
}

fn sigmoid(z: f64) -> f64 {
    match z >= 0.0 {
        true => 1.0 / (1.0 + (-z).exp()),
        false => z.exp() / (1.0 + z.exp()),
    }
}

/// `x ln x`, which is 0 at 0. Rounding may lead slightly below 0.
fn x_ln_x(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x * x.ln() }
}

/// Whether another step of Newton's method would change rounding errors only.
fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 4.0 * f64::EPSILON * a.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples with labels that each loss allows.
    fn examples() -> impl Iterator<Item = (SdcaLoss, f64)> {
        LOSSES.into_iter().flat_map(|(_, loss)| {
            let labels = [0.0, 1.0, 0.25, 7.0, -3.0];
            labels.into_iter().filter(move |y| loss.check_label(*y).is_ok()).map(move |y| (loss, y))
        })
    }

    #[test]
    fn a_loss_and_its_conjugate_meet_where_the_dual_variable_is_the_slope() {
        for (loss, y) in examples() {
            for z in [-30.0, -1.5, -0.1, 0.0, 0.4, 0.9, 1.7, 12.0] {
                let a = -loss.slope(y, z);
                assert!(loss.is_feasible(y, a), "{loss:?} {y} {z}");
                let (apart, size) =
                    (loss.value(y, z) + loss.conjugate(y, a) + a * z, loss.value(y, z).abs() + (a * z).abs());
                assert!(apart.abs() <= 1e-10 * (1.0 + size), "{loss:?} {y} {z}: {apart}");
            }
        }
    }

    #[test]
    fn the_best_dual_variable_belongs_to_its_logit() {
        for (loss, y) in examples() {
            for first in [-4.0, -0.5, 0.0, 0.8, 2.0] {
                let a = -loss.slope(y, first);
                for z in [-50.0, -2.0, 0.0, 0.3, 1.0, 40.0, 700.0] {
                    for norm in [1e-6, 0.1, 1.0, 35.0, 1e6] {
                        let best = loss.best_dual(y, a, z, norm);
                        assert!(loss.is_feasible(y, best), "{loss:?} {y} {a} {z} {norm}: {best}");
                        let logit = z + norm * (best - a);
                        // The smallest of all sums of the conjugate and the squared way to it.
                        let cost = |b: f64| loss.conjugate(y, b) + z * (b - a) + 0.5 * norm * (b - a) * (b - a);
                        let least = cost(best);
                        for other in [best - 1e-3, best + 1e-3, a, 0.5 * (a + best)] {
                            if loss.is_feasible(y, other) {
                                let close = 1e-9 * (1.0 + least.abs() + (z * (best - a)).abs() + logit.abs());
                                assert!(least <= cost(other) + close, "{loss:?} {y} {a} {z} {norm}: {best} {other}");
                            }
                        }
                    }
                }
            }
        }
    }
}
