//! Range checks for the `check` functions of rules and schedules. Messages say what was passed and
//! what was expected.
//!
//! A check uses the `f32` value that the kernels see: an epsilon of 1e-50 is zero there.

pub(crate) fn at_least_zero(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "zero or positive", |x| x >= 0.0)
}

pub(crate) fn positive(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "positive", |x| x > 0.0)
}

pub(crate) fn at_least_one(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "at least 1", |x| x >= 1.0)
}

pub(crate) fn at_most_zero(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "zero or negative", |x| x <= 0.0)
}

/// Checks that a value is between 0 and 1, both included.
pub(crate) fn zero_to_one(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "between 0 and 1", |x| (0.0..=1.0).contains(&x))
}

/// Checks a decay rate. A rate of 1 is refused, since nothing would ever be learned.
pub(crate) fn below_one(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "at least 0 and less than 1", |x| (0.0..1.0).contains(&x))
}

/// Checks that a number of steps is not 0.
pub(crate) fn not_none(name: &str, count: u64) -> Result<(), String> {
    if count > 0 { Ok(()) } else { Err(format!("`{name}` must be positive, got 0")) }
}

fn check(name: &str, value: f64, expected: &str, holds: impl Fn(f32) -> bool) -> Result<(), String> {
    let seen = value as f32;
    if seen.is_finite() && holds(seen) { Ok(()) } else { Err(format!("`{name}` must be {expected}, got {value:?}")) }
}

/// Rounds a setting to float32, as TensorFlow stores it in a variable. Scalars are derived from the
/// rounded value; 1 - 0.999 differs by 5e-5 between the two.
pub(crate) fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}
