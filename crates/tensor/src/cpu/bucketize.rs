//! Puts numbers into buckets between boundaries: `Bucketize`, which bucketized columns use.

use crate::{Error, Result};

/// Up to this many boundaries, counting the boundaries passed is faster than searching, since the
/// loop over values vectorises.
const FEW: usize = 32;

/// Boundaries in ascending order, equal ones allowed. Bucket `i` is from boundary `i - 1`,
/// included, to boundary `i`, excluded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Boundaries<'a>(&'a [f32]);

impl Boundaries<'_> {
    /// Checks that the boundaries are numbers and never decrease.
    pub fn new(boundaries: &[f32]) -> Result<Boundaries<'_>> {
        if let Some(i) = boundaries.iter().position(|b| b.is_nan()) {
            return Err(Error::config(format!("boundary {i} of {boundaries:?} is not a number")));
        }
        match boundaries.windows(2).position(|w| w[0] > w[1]) {
            Some(i) => Err(Error::config(format!(
                "the boundaries fall from {} to {} at {i}; expected ascending order",
                boundaries[i],
                boundaries[i + 1]
            ))
            .help("sort the boundaries")),
            None => Ok(Boundaries(boundaries)),
        }
    }

    /// The number of buckets.
    pub fn n_buckets(&self) -> usize {
        self.0.len() + 1
    }
}

/// The bucket of each value: the number of boundaries that the value is not below.
///
/// NaN is below nothing, so it goes to the last bucket, as in TensorFlow.
pub fn bucketize<T: Bucketed>(values: &[T], boundaries: Boundaries<'_>, out: &mut [i32]) {
    assert_eq!(values.len(), out.len(), "one bucket for each value");
    let boundaries = boundaries.0;
    if boundaries.len() <= FEW {
        out.fill(0);
        for (values, out) in values.chunks(1024).zip(out.chunks_mut(1024)) {
            for &boundary in boundaries {
                for (&value, out) in values.iter().zip(out.iter_mut()) {
                    *out += i32::from(!value.is_below(boundary));
                }
            }
        }
    } else {
        for (&value, out) in values.iter().zip(out) {
            *out = boundaries.partition_point(|&boundary| !value.is_below(boundary)) as i32;
        }
    }
}

/// A number that can be compared with boundaries: `f32`, `f64`, `i32` or `i64`.
pub trait Bucketed: Copy {
    /// Whether the value is less than a boundary.
    fn is_below(self, boundary: f32) -> bool;
}

impl Bucketed for f32 {
    #[inline(always)]
    fn is_below(self, boundary: f32) -> bool {
        self < boundary
    }
}

impl Bucketed for f64 {
    #[inline(always)]
    fn is_below(self, boundary: f32) -> bool {
        self < f64::from(boundary)
    }
}

// TF: integers are rounded to f32 first, so large ones may pass a boundary just above them.
impl Bucketed for i32 {
    #[inline(always)]
    fn is_below(self, boundary: f32) -> bool {
        (self as f32) < boundary
    }
}

impl Bucketed for i64 {
    #[inline(always)]
    fn is_below(self, boundary: f32) -> bool {
        (self as f32) < boundary
    }
}
