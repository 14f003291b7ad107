//! Normalizers: functions that columns apply to numbers before a model sees them.

use std::fmt;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_graph::meaning::Listing;
use estimand_tensor::{DType, Error, Result};

/// A function of numbers: a named one, or code.
#[derive(Clone)]
pub(super) enum Normalizer {
    ZScore { mean: f64, stddev: f64 },
    MinMax { low: f64, high: f64 },
    Log,
    Function(Arc<dyn Fn(&Tensor) -> Tensor + Send + Sync>),
}

impl Normalizer {
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Normalizer::ZScore { mean, stddev } if !(mean.is_finite() && stddev.is_finite() && *stddev > 0.0) => {
                Err(Error::config(format!(
                    "the z-score has the mean {mean} and the deviation {stddev}; expected finite numbers and a \
                     deviation above 0"
                ))
                .help("leave out a column whose numbers are all the same"))
            }
            Normalizer::MinMax { low, high } if !(low.is_finite() && high.is_finite() && low < high) => {
                Err(Error::config(format!(
                    "the range goes from {low} to {high}; expected finite numbers, the smaller one first"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Applies the function; the result is f32.
    pub(super) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let float = || x.cast(DType::F32);
        let y = match self {
            Normalizer::ZScore { mean, stddev } => {
                let y = (float() - *mean) / *stddev;
                y.means("mean", *mean);
                y.means("deviation", *stddev);
                y
            }
            Normalizer::MinMax { low, high } => {
                let y = (float() - *low) / (high - low);
                y.means("low end of the range", *low);
                y.means("high end of the range", *high);
                y
            }
            Normalizer::Log => {
                let y = float().log1p();
                y.means("normalisation", "ln(1 + x)");
                y
            }
            Normalizer::Function(function) => {
                // The meaning of code is unknown, but its constants often come from data.
                let (y, constants) = x.graph().constants_of(|| function(x));
                y.means("normalisation", "a function");
                if !constants.is_empty() {
                    y.means("numbers of the normaliser", Listing::of_floats(&constants));
                }
                if !y.is_poisoned() && !x.is_poisoned() && y.shape() != x.shape() {
                    let text =
                        format!("the normalizer returned {} for {}; expected the same shape", y.spec(), x.spec());
                    return Err(Error::shape(text).help("return a tensor with the shape of the input"));
                }
                y
            }
        };
        Ok(if y.dtype() == DType::F32 { y } else { y.cast(DType::F32) })
    }
}

impl fmt::Debug for Normalizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Normalizer::ZScore { mean, stddev } => write!(f, "(x - {mean}) / {stddev}"),
            Normalizer::MinMax { low, high } => write!(f, "(x - {low}) / ({high} - {low})"),
            Normalizer::Log => f.write_str("ln(1 + x)"),
            Normalizer::Function(_) => f.write_str("a function"),
        }
    }
}

/// Normalizes numbers of any dtype; the result is f32.
pub(super) fn normalised(x: &Tensor, normalizer: Option<&Normalizer>) -> Result<Tensor> {
    match normalizer {
        Some(normalizer) => normalizer.apply(x),
        None if x.dtype() == DType::F32 => Ok(x.clone()),
        None => Ok(x.cast(DType::F32)),
    }
}
