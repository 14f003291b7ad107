//! `NonNeg`: no weight below 0.

use super::Constraint;
use crate::Setting;

/// Sets weights below 0 to 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct NonNeg;

impl Constraint for NonNeg {
    fn name(&self) -> &'static str {
        "NonNeg"
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Some(Vec::new())
    }

    fn project(&self, _dims: &[usize], weights: &mut [f32]) {
        for w in weights {
            // TF: a product, so that NaN stays NaN.
            *w *= if *w >= 0.0 { 1.0 } else { 0.0 };
        }
    }
}
