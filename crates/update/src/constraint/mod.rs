//! Constraints: conditions that weights meet after every update, as in `tf.keras.constraints`.
//!
//! An update may move weights anywhere. In the same step, a constraint then moves them into the
//! allowed range. Unlike a rule, a constraint sees a whole variable with its shape, even after an
//! update of single rows, as in Keras.

mod non_neg;
mod norm;
mod scaling;

pub use non_neg::NonNeg;
pub use norm::{MaxNorm, MinMaxNorm, UnitNorm};
pub use scaling::{Measure, Scaling, SymbolicConstraint};

use crate::Setting;

/// A condition that weights must meet.
///
/// ```
/// use estimand_update::Constraint;
///
/// /// No weight is further from 0 than this.
/// #[derive(Debug)]
/// struct Within(f32);
///
/// impl Constraint for Within {
///     fn name(&self) -> &'static str {
///         "Within"
///     }
///     fn project(&self, _dims: &[usize], weights: &mut [f32]) {
///         weights.iter_mut().for_each(|w| *w = w.clamp(-self.0, self.0));
///     }
/// }
///
/// let mut weights = [0.5, -2.0];
/// Within(1.0).project(&[2], &mut weights);
/// assert_eq!(weights, [0.5, -1.0]);
/// ```
pub trait Constraint: Send + Sync + std::fmt::Debug {
    /// The constraint's name in the text of a program, in Keras's words.
    fn name(&self) -> &'static str;

    /// Checks settings and the variable's shape. The error message is written for the user.
    fn check(&self, dims: &[usize]) -> Result<(), String> {
        let _ = dims;
        Ok(())
    }

    /// The settings under Keras's names, with which it can be written down. By default it cannot.
    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        None
    }

    /// Changes the weights of a variable, given in row-major order, so that they meet the
    /// condition. The sizes have passed `check`. This runs in every step and must not allocate.
    fn project(&self, dims: &[usize], weights: &mut [f32]);

    /// The constraint read with symbols. `None` for a constraint that is written for slices alone:
    /// it holds in trainings, but it cannot be exported or run on a device. A [`Scaling`] has both
    /// readings.
    fn symbolic(&self) -> Option<&dyn SymbolicConstraint> {
        None
    }
}

/// Every constraint with Keras's defaults.
pub const ALL_CONSTRAINTS: [fn() -> Box<dyn Constraint>; 4] = [
    || Box::new(MaxNorm::new(2.0)),
    || Box::new(MinMaxNorm::new(0.0, 1.0)),
    || Box::new(NonNeg),
    || Box::new(UnitNorm::new()),
];
