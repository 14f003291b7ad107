//! Snappy-packed blocks of a checkpoint's index: any input gives a block or an error.

use crate::bundle;

/// Reads the bytes as the only block of an index.
pub fn check(input: &[u8]) {
    bundle::check(&[&[bundle::SNAPPY], input].concat());
}
