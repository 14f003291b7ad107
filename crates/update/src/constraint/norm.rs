//! `MaxNorm`, `UnitNorm` and `MinMaxNorm`: limits on the lengths of a variable's vectors.

use super::{Measure, Scaling};
use crate::number::Number;
use crate::{Setting, bounds};

/// The number that Keras adds to a length before it divides by it.
const EPSILON: f64 = 1e-7;

/// The setter of the axes, for a constraint with a field `axes`.
macro_rules! axes_setter {
    ($constraint:ty) => {
        impl $constraint {
            /// The axes along which lengths are computed, counted from the end if negative. By
            /// default 0: the weights of each unit of a dense layer. Use `[0, 1, 2]` for each
            /// filter of a convolution, 1 for the rows of an embedding.
            pub fn axes(mut self, axes: impl Into<Vec<i64>>) -> Self {
                self.axes = axes.into();
                self
            }
        }
    };
}

/// Limits the length of vectors.
#[derive(Clone, Debug)]
#[must_use]
pub struct MaxNorm {
    max_value: f64,
    axes: Vec<i64>,
}

impl MaxNorm {
    /// Scales vectors longer than `max_value` down to this length. Keras's default is 2.
    pub fn new(max_value: f64) -> MaxNorm {
        MaxNorm { max_value, axes: vec![0] }
    }
}

axes_setter!(MaxNorm);

impl Scaling for MaxNorm {
    fn name(&self) -> &'static str {
        "MaxNorm"
    }

    fn check(&self, dims: &[usize]) -> Result<(), String> {
        check_max(self.max_value)?;
        check_axes(&self.axes, dims)
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![("max_value", Setting::Number(self.max_value)), ("axis", Setting::Integers(self.axes.clone()))])
    }

    fn measure(&self) -> Measure<'_> {
        Measure::Length(&self.axes)
    }

    fn factor<N: Number>(&self, length: N) -> N {
        length.min(length.number(self.max_value)) / (length.number(EPSILON) + length)
    }
}

/// Scales every vector to length 1.
#[derive(Clone, Debug)]
#[must_use]
pub struct UnitNorm {
    axes: Vec<i64>,
}

impl UnitNorm {
    /// Vectors along the first axis.
    pub fn new() -> UnitNorm {
        UnitNorm { axes: vec![0] }
    }
}

impl Default for UnitNorm {
    fn default() -> UnitNorm {
        UnitNorm::new()
    }
}

axes_setter!(UnitNorm);

impl Scaling for UnitNorm {
    fn name(&self) -> &'static str {
        "UnitNorm"
    }

    fn check(&self, dims: &[usize]) -> Result<(), String> {
        check_axes(&self.axes, dims)
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(vec![("axis", Setting::Integers(self.axes.clone()))])
    }

    fn measure(&self) -> Measure<'_> {
        Measure::Length(&self.axes)
    }

    fn factor<N: Number>(&self, length: N) -> N {
        length.number(1.0) / (length.number(EPSILON) + length)
    }
}

/// Keeps the length of vectors between two numbers.
#[derive(Clone, Debug)]
#[must_use]
pub struct MinMaxNorm {
    min_value: f64,
    max_value: f64,
    rate: f64,
    axes: Vec<i64>,
}

impl MinMaxNorm {
    /// Scales shorter vectors up to `min_value` and longer ones down to `max_value`. Keras's
    /// defaults are 0 and 1.
    pub fn new(min_value: f64, max_value: f64) -> MinMaxNorm {
        MinMaxNorm { min_value, max_value, rate: 1.0, axes: vec![0] }
    }

    /// The fraction of the way to the allowed length that a step moves. By default 1: all the way.
    pub fn rate(mut self, rate: f64) -> MinMaxNorm {
        self.rate = rate;
        self
    }
}

axes_setter!(MinMaxNorm);

impl Scaling for MinMaxNorm {
    fn name(&self) -> &'static str {
        "MinMaxNorm"
    }

    fn check(&self, dims: &[usize]) -> Result<(), String> {
        bounds::at_least_zero("min_value", self.min_value)?;
        check_max(self.max_value)?;
        bounds::zero_to_one("rate", self.rate)?;
        if self.min_value > self.max_value {
            return Err(format!("`min_value` {} is above `max_value` {}", self.min_value, self.max_value));
        }
        check_axes(&self.axes, dims)
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        let numbers = [("min_value", self.min_value), ("max_value", self.max_value), ("rate", self.rate)];
        let numbers = numbers.map(|(name, value)| (name, Setting::Number(value)));
        Some(numbers.into_iter().chain([("axis", Setting::Integers(self.axes.clone()))]).collect())
    }

    fn measure(&self) -> Measure<'_> {
        Measure::Length(&self.axes)
    }

    fn factor<N: Number>(&self, length: N) -> N {
        let number = |value: f64| length.number(value);
        let (rate, rest) = (number(self.rate), number(1.0) - number(self.rate));
        let allowed = length.max(number(self.min_value)).min(number(self.max_value));
        (rate * allowed + rest * length) / (number(EPSILON) + length)
    }
}

/// Checks the largest length. An infinite one allows all lengths, as in Keras.
fn check_max(max_value: f64) -> Result<(), String> {
    if max_value == f64::INFINITY { Ok(()) } else { bounds::at_least_zero("max_value", max_value) }
}

/// Checks that the shape has these axes, and that none occurs twice.
fn check_axes(axes: &[i64], dims: &[usize]) -> Result<(), String> {
    let rank = dims.len() as i64;
    let resolved = |axis: i64| if axis < 0 { axis + rank } else { axis };
    for (i, &axis) in axes.iter().enumerate() {
        if !(0..rank.min(32)).contains(&resolved(axis)) {
            return Err(format!("axis {axis} of weights {dims:?}, which have {rank} axes"));
        }
        if axes[..i].iter().any(|&other| resolved(other) == resolved(axis)) {
            return Err(format!("axis {axis} of weights {dims:?} is named twice in {axes:?}"));
        }
    }
    if axes.is_empty() { Err("no axes to take lengths along".to_string()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constraint;

    /// Every set of axes of `[2, 3, 4, 5]` against the definition: each element divided by the
    /// length of its vector.
    #[test]
    fn any_axes_are_those_of_the_definition() {
        let dims = [2usize, 3, 4, 5];
        let n: usize = dims.iter().product();
        let weights: Vec<f32> = (0..n).map(|i| (i * 37 % 23) as f32 - 11.3).collect();
        let index = |mut i: usize| {
            let mut index = [0; 4];
            for (axis, &n) in dims.iter().enumerate().rev() {
                (index[axis], i) = (i % n, i / n);
            }
            index
        };
        for set in 1..16u32 {
            let axes: Vec<i64> = (0..4).filter(|axis| set >> axis & 1 == 1).collect();
            let across =
                |i: usize| (0..4).filter(|axis| set >> axis & 1 == 0).map(|axis| index(i)[axis]).collect::<Vec<_>>();
            let norm = |i: usize| {
                let same = (0..n).filter(|&j| across(j) == across(i));
                same.map(|j| f64::from(weights[j]).powi(2)).sum::<f64>().sqrt()
            };
            let mut scaled = weights.clone();
            UnitNorm::new().axes(axes.clone()).project(&dims, &mut scaled);
            for i in 0..n {
                let expected = f64::from(weights[i]) / (1e-7 + norm(i));
                assert!((f64::from(scaled[i]) - expected).abs() < 1e-6, "{axes:?}: element {i}");
            }
        }
    }

    #[test]
    fn empty_and_long_weights() {
        MaxNorm::new(1.0).project(&[0, 3], &mut []);
        MaxNorm::new(1.0).axes([1]).project(&[3, 0], &mut []);
        // 100 columns, more than a block: each (3, 4) becomes (0.6, 0.8).
        let mut weights: Vec<f32> = [[3.0f32; 100], [4.0; 100]].concat();
        MaxNorm::new(1.0).project(&[2, 100], &mut weights);
        assert!(weights[..100].iter().all(|w| (w - 0.6).abs() < 1e-6));
        assert!(weights[100..].iter().all(|w| (w - 0.8).abs() < 1e-6));
    }

    #[test]
    fn an_infinite_limit_allows_all_lengths() {
        for constraint in [&MaxNorm::new(f64::INFINITY) as &dyn Constraint, &MinMaxNorm::new(0.0, f64::INFINITY)] {
            constraint.check(&[2, 2]).unwrap();
            let mut weights = [3e4f32, 0.0, -4e4, 0.0];
            constraint.project(&[2, 2], &mut weights);
            // The length is 5e4, and 5e4 / (5e4 + 1e-7) is 1 in f32. A length of 0 stays.
            assert_eq!(weights, [3e4, 0.0, -4e4, 0.0]);
        }
        assert!(Constraint::check(&MaxNorm::new(f64::NAN), &[2]).is_err());
        assert!(Constraint::check(&MinMaxNorm::new(f64::INFINITY, f64::INFINITY), &[2]).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |c: &dyn Constraint, dims: &[usize]| c.check(dims).unwrap_err();
        assert_eq!(error(&MaxNorm::new(-1.0), &[2]), "`max_value` must be zero or positive, got -1.0");
        assert_eq!(error(&UnitNorm::new().axes([2]), &[3, 4]), "axis 2 of weights [3, 4], which have 2 axes");
        assert_eq!(error(&UnitNorm::new(), &[]), "axis 0 of weights [], which have 0 axes");
        assert_eq!(
            error(&UnitNorm::new().axes([0, -2]), &[3, 4]),
            "axis -2 of weights [3, 4] is named twice in [0, -2]"
        );
        assert_eq!(error(&UnitNorm::new().axes([]), &[3]), "no axes to take lengths along");
        assert_eq!(error(&MinMaxNorm::new(2.0, 1.0), &[3]), "`min_value` 2 is above `max_value` 1");
        assert_eq!(error(&MinMaxNorm::new(0.0, 1.0).rate(1.5), &[3]), "`rate` must be between 0 and 1, got 1.5");
    }
}
