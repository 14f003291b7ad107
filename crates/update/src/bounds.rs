//! Range checks shared by the `check` of the rules and schedules: what was passed, what was
//! expected.
//!
//! A check looks at the `f32` that the kernels will see: an epsilon of 1e-50 is a zero there.

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

/// Both ends included.
pub(crate) fn zero_to_one(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "between 0 and 1", |x| (0.0..=1.0).contains(&x))
}

/// For decay rates, where 1 would mean that nothing is ever learned.
pub(crate) fn below_one(name: &str, value: f64) -> Result<(), String> {
    check(name, value, "at least 0 and less than 1", |x| (0.0..1.0).contains(&x))
}

/// For numbers of steps.
pub(crate) fn not_none(name: &str, count: u64) -> Result<(), String> {
    if count > 0 { Ok(()) } else { Err(format!("`{name}` must be positive, got 0")) }
}

fn check(name: &str, value: f64, expected: &str, holds: impl Fn(f32) -> bool) -> Result<(), String> {
    let seen = value as f32;
    if seen.is_finite() && holds(seen) { Ok(()) } else { Err(format!("`{name}` must be {expected}, got {value:?}")) }
}

/// A setting as TensorFlow keeps it: a float32 variable. Scalars derived from it are derived from
/// the rounded value; 1 - 0.999 differs by 5e-5 between the two.
pub(crate) fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}
