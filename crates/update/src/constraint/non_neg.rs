//! `NonNeg`: no weight below 0.

use super::{Measure, Scaling};
use crate::Setting;
use crate::number::Number;

/// Sets weights below 0 to 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct NonNeg;

impl Scaling for NonNeg {
    fn name(&self) -> &'static str {
        "NonNeg"
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(Vec::new())
    }

    fn check(&self, _dims: &[usize]) -> Result<(), String> {
        Ok(())
    }

    fn measure(&self) -> Measure<'_> {
        Measure::Weight
    }

    /// TF: a factor, so that NaN stays NaN.
    fn factor<N: Number>(&self, weight: N) -> N {
        let zero = weight.number(0.0);
        N::select(weight.at_least(zero), weight.number(1.0), zero)
    }
}
