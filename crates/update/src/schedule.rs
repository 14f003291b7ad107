//! Learning-rate schedules: the rate as a function of the step, computed in `f64`.
//!
//! The formulas are those of `tf.keras.optimizers.schedules`. They are written for any [`Number`],
//! so a schedule can also become nodes of a graph.

use crate::bounds;
use crate::number::Number;

/// A learning rate that depends on the step. A plain number is a constant schedule.
///
/// ```
/// use estimand_update::Schedule;
/// let schedule = Schedule::Exponential { initial: 0.1, decay_steps: 10, decay_rate: 0.5, staircase: false }.warm_up(5);
/// assert_eq!(schedule.rate(0), 0.0);
/// assert_eq!(schedule.rate(5), 0.1);
/// assert_eq!(schedule.rate(15), 0.05);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Schedule {
    /// The same rate at every step.
    Constant(f64),
    /// `initial * decay_rate^(step / decay_steps)`.
    Exponential {
        /// The rate at step 0.
        initial: f64,
        /// The number of steps after which the rate has decayed once.
        decay_steps: u64,
        /// The factor by which the rate decays.
        decay_rate: f64,
        /// Whether the rate falls at multiples of `decay_steps` instead of at every step.
        staircase: bool,
    },
    /// `initial / (1 + decay_rate * step / decay_steps)`. Keras's old argument `decay` is the
    /// `decay_rate` at `decay_steps` 1.
    InverseTime {
        /// The rate at step 0.
        initial: f64,
        /// The number of steps in a unit of time.
        decay_steps: u64,
        /// The growth of the divisor in a unit of time.
        decay_rate: f64,
        /// Whether the rate falls at multiples of `decay_steps` instead of at every step.
        staircase: bool,
    },
    /// From `initial` to `end` along `(1 - step / decay_steps)^power`.
    Polynomial {
        /// The rate at step 0.
        initial: f64,
        /// The number of steps until `end` is reached.
        decay_steps: u64,
        /// The last rate.
        end: f64,
        /// The exponent; 1 is a straight line.
        power: f64,
        /// Whether `decay_steps` grows to its next multiple each time it is passed, instead of the
        /// rate staying at `end`.
        cycle: bool,
    },
    /// Half a cosine wave from `initial` to `alpha * initial`.
    Cosine {
        /// The rate at step 0.
        initial: f64,
        /// The number of steps until the lowest rate.
        decay_steps: u64,
        /// The lowest rate as a fraction of `initial`.
        alpha: f64,
    },
    /// Cosine waves one after the other, each `t_mul` times as long and `m_mul` times as high as
    /// the one before.
    CosineRestarts {
        /// The rate at step 0.
        initial: f64,
        /// The number of steps of the first wave.
        first_decay_steps: u64,
        /// The growth of a wave's length; at least 1.
        t_mul: f64,
        /// The growth of a wave's height.
        m_mul: f64,
        /// The lowest rate as a fraction of `initial`.
        alpha: f64,
    },
    /// `values[i]` up to and including step `boundaries[i]`, and the last value after the last
    /// boundary.
    Piecewise {
        /// The last step of each value except the last; ascending.
        boundaries: Vec<u64>,
        /// The rates; one more than there are boundaries.
        values: Vec<f64>,
    },
    /// A linear rise to the first rate of `then`, followed by `then`.
    WarmUp {
        /// The number of steps of the rise.
        steps: u64,
        /// The rate at step 0.
        from: f64,
        /// The schedule after the rise. It counts its steps from 0.
        then: Box<Schedule>,
    },
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Self {
        Schedule::Constant(rate)
    }
}

impl Schedule {
    /// Puts a linear rise from zero over `steps` before this schedule.
    pub fn warm_up(self, steps: u64) -> Schedule {
        Schedule::WarmUp { steps, from: 0.0, then: Box::new(self) }
    }

    /// The learning rate at a step, counted from 0.
    pub fn rate(&self, step: u64) -> f64 {
        self.rate_at(step as f64)
    }

    /// The learning rate at a step, counted from 0, read with the step's kind of number. Use double
    /// precision.
    pub fn rate_at<N: Number>(&self, step: N) -> N {
        let number = |value: f64| step.number(value);
        match *self {
            Schedule::Constant(rate) => number(rate),
            Schedule::Exponential { initial, decay_steps, decay_rate, staircase } => {
                number(initial) * number(decay_rate).powf(time(step, decay_steps, staircase))
            }
            Schedule::InverseTime { initial, decay_steps, decay_rate, staircase } => {
                number(initial) / (number(1.0) + number(decay_rate) * time(step, decay_steps, staircase))
            }
            Schedule::Polynomial { initial, decay_steps, end, power, cycle } => {
                let (time, one) = (fraction(step, decay_steps), number(1.0));
                let length = if cycle { time.ceil().max(one) } else { one };
                let left = (one - (time / length).min(one)).powf(number(power));
                number(initial - end) * left + number(end)
            }
            Schedule::Cosine { initial, decay_steps, alpha } => {
                let place = fraction(step.min(number(decay_steps as f64)), decay_steps);
                number(initial) * wave(place, number(1.0), alpha)
            }
            Schedule::CosineRestarts { initial, first_decay_steps, t_mul, m_mul, alpha } => {
                let (restarts, place) = restart(fraction(step, first_decay_steps), t_mul);
                number(initial) * wave(place, number(m_mul).powf(restarts), alpha)
            }
            Schedule::Piecewise { ref boundaries, ref values } => {
                let later = boundaries.iter().zip(&values[1..]);
                later.fold(number(values[0]), |rate, (&boundary, &value)| {
                    N::select(step.above(number(boundary as f64)), number(value), rate)
                })
            }
            Schedule::WarmUp { steps, from, ref then } => {
                let (zero, end) = (number(0.0), number(steps as f64));
                let rise = number(then.rate(0) - from) * fraction(step, steps) + number(from);
                N::select(step.at_least(end), then.rate_at((step - end).max(zero)), rise)
            }
        }
    }

    /// The rate and `decay` of Keras's optimizers, if they describe this schedule completely. A
    /// constant rate has decay 0.
    pub fn rate_and_decay(&self) -> Option<(f64, f64)> {
        match *self {
            Schedule::Constant(rate) => Some((rate, 0.0)),
            Schedule::InverseTime { initial, decay_steps: 1, decay_rate, .. } => Some((initial, decay_rate)),
            _ => None,
        }
    }

    /// Checks that settings are in their range. The error message is written for the user. A
    /// schedule that passes never panics.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Schedule::Constant(rate) => bounds::at_least_zero("learning_rate", *rate),
            Schedule::Exponential { initial, decay_steps, decay_rate, .. }
            | Schedule::InverseTime { initial, decay_steps, decay_rate, .. } => {
                bounds::at_least_zero("initial", *initial)?;
                bounds::not_none("decay_steps", *decay_steps)?;
                bounds::at_least_zero("decay_rate", *decay_rate)
            }
            Schedule::Polynomial { initial, decay_steps, end, power, .. } => {
                bounds::at_least_zero("initial", *initial)?;
                bounds::not_none("decay_steps", *decay_steps)?;
                bounds::at_least_zero("end", *end)?;
                bounds::at_least_zero("power", *power)
            }
            Schedule::Cosine { initial, decay_steps, alpha } => {
                bounds::at_least_zero("initial", *initial)?;
                bounds::not_none("decay_steps", *decay_steps)?;
                bounds::zero_to_one("alpha", *alpha)
            }
            Schedule::CosineRestarts { initial, first_decay_steps, t_mul, m_mul, alpha } => {
                bounds::at_least_zero("initial", *initial)?;
                bounds::not_none("first_decay_steps", *first_decay_steps)?;
                bounds::at_least_one("t_mul", *t_mul)?;
                bounds::at_least_zero("m_mul", *m_mul)?;
                bounds::zero_to_one("alpha", *alpha)
            }
            Schedule::Piecewise { boundaries, values } => {
                if values.len() != boundaries.len() + 1 {
                    let (n_values, n_boundaries) = (values.len(), boundaries.len());
                    return Err(format!(
                        "`values` must be one more than `boundaries`, got {n_values} and {n_boundaries}"
                    ));
                }
                if !boundaries.is_sorted_by(|a, b| a < b) {
                    return Err(format!("`boundaries` must ascend, got {boundaries:?}"));
                }
                values.iter().try_for_each(|value| bounds::at_least_zero("values", *value))
            }
            Schedule::WarmUp { from, then, .. } => {
                bounds::at_least_zero("from", *from)?;
                then.check()
            }
        }
    }
}

fn fraction<N: Number>(step: N, steps: u64) -> N {
    step / step.number(steps as f64)
}

fn time<N: Number>(step: N, decay_steps: u64, staircase: bool) -> N {
    let time = fraction(step, decay_steps);
    if staircase { time.floor() } else { time }
}

/// Half a cosine wave from `height` down to zero, scaled so that zero becomes `alpha`.
fn wave<N: Number>(place: N, height: N, alpha: f64) -> N {
    let number = |value: f64| place.number(value);
    let cosine = (number(std::f64::consts::PI) * place).cos();
    number((1.0 - alpha) * 0.5) * height * (number(1.0) + cosine) + number(alpha)
}

/// The number of waves that have ended at `time`, which is measured in lengths of the first wave,
/// and the position inside the current wave, from 0 to 1.
fn restart<N: Number>(time: N, t_mul: f64) -> (N, N) {
    let number = |value: f64| time.number(value);
    if t_mul == 1.0 {
        return (time.floor(), time - time.floor());
    }
    let (one, growth) = (number(1.0), number(t_mul - 1.0));
    let start = |waves: N| (number(t_mul).powf(waves) - one) / growth;
    let near = ((one + time * growth).ln() / number(t_mul.ln())).floor();
    // The logarithm at a boundary may round to either side of the whole number, so compare exactly.
    let (before, after) = (near - one, near + one);
    let waves = N::select(time.at_least(start(near)), near, before);
    let waves = N::select(time.at_least(start(after)), after, waves);
    (waves, (time - start(waves)) / number(t_mul).powf(waves))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restarts(t_mul: f64) -> Schedule {
        Schedule::CosineRestarts { initial: 0.1, first_decay_steps: 10, t_mul, m_mul: 1.0, alpha: 0.0 }
    }

    /// Waves of 10, 30, 90, ... steps begin at 10 times 0, 1, 4, 13, 40, 121, 364; log3(243) is
    /// 4.999... in floating point.
    #[test]
    fn a_wave_begins_exactly_at_its_first_step() {
        for start in [0, 1, 4, 13, 40, 121, 364] {
            assert!((restarts(3.0).rate(10 * start) - 0.1).abs() < 1e-12, "{start}");
        }
        assert!(restarts(3.0).rate(1209) < 1e-6);
    }

    #[test]
    fn every_schedule_is_finite_at_any_step() {
        let cycle = Schedule::Polynomial { initial: 0.1, decay_steps: 3, end: 0.01, power: 0.5, cycle: true };
        for schedule in [cycle, restarts(1.0), restarts(2.0), Schedule::from(0.3).warm_up(0)] {
            for step in [0, 1, u64::from(u32::MAX), u64::MAX] {
                let rate = schedule.rate(step);
                assert!((0.0..=1.0).contains(&rate), "{schedule:?} at {step}: {rate}");
            }
        }
    }

    #[test]
    fn bad_settings_are_refused_in_words() {
        let exponential = Schedule::Exponential { initial: 0.1, decay_steps: 0, decay_rate: 0.5, staircase: true };
        let short = Schedule::Piecewise { boundaries: vec![1, 2], values: vec![0.1, 0.2] };
        let unsorted = Schedule::Piecewise { boundaries: vec![2, 2], values: vec![0.1, 0.2, 0.3] };
        for (schedule, message) in [
            (Schedule::from(-0.1), "`learning_rate` must be zero or positive, got -0.1"),
            (Schedule::from(f64::NAN).warm_up(3), "`learning_rate` must be zero or positive, got NaN"),
            (exponential, "`decay_steps` must be positive, got 0"),
            (restarts(0.5), "`t_mul` must be at least 1, got 0.5"),
            (short, "`values` must be one more than `boundaries`, got 2 and 2"),
            (unsorted, "`boundaries` must ascend, got [2, 2]"),
        ] {
            assert_eq!(schedule.check(), Err(message.to_string()));
        }
    }
}
