//! Blocks of a checkpoint's index that are packed by snappy: any bytes are a block or an error.

use crate::bundle;

/// Reads the bytes as the only block of an index.
pub fn check(input: &[u8]) {
    bundle::check(&[&[bundle::SNAPPY], input].concat());
}
