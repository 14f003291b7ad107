//! Constraints: what weights are like after every update, as `tf.keras.constraints` has them.
//!
//! An update is free to go anywhere; a constraint then takes the weights to where they may be, in
//! the same step. Unlike a rule it sees a whole variable with its shape: also after an update of
//! single rows, all of it is looked at, as in Keras.

mod non_neg;
mod norm;

pub use non_neg::NonNeg;
pub use norm::{MaxNorm, MinMaxNorm, UnitNorm};

/// What weights must be like.
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
    /// What it is called in the text of a program, in Keras's words.
    fn name(&self) -> &'static str;

    /// Refuses settings outside their range, and shapes that it is not for, in words for the user.
    fn check(&self, dims: &[usize]) -> Result<(), String> {
        let _ = dims;
        Ok(())
    }

    /// Changes the weights of a variable, row by row, whose sizes have passed `check`. It runs
    /// in every step: it must not allocate.
    fn project(&self, dims: &[usize], weights: &mut [f32]);
}

/// Every constraint with Keras's defaults.
pub const ALL_CONSTRAINTS: [fn() -> Box<dyn Constraint>; 4] = [
    || Box::new(MaxNorm::new(2.0)),
    || Box::new(MinMaxNorm::new(0.0, 1.0)),
    || Box::new(NonNeg),
    || Box::new(UnitNorm::new()),
];
