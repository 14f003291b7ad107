//! The limit on the text that one call may produce.

use crate::{Error, Result};

/// The largest number of bytes that one call may produce if its output can be many times its input:
/// half a gigabyte.
pub const MAX_TEXT_BYTES: usize = 1 << 29;

/// Returns an error if a result has, or would have, more bytes than [`MAX_TEXT_BYTES`].
#[inline(always)]
pub(super) fn check_size(what: &str, n_bytes: usize) -> Result<()> {
    if n_bytes <= MAX_TEXT_BYTES { Ok(()) } else { Err(too_large(what)) }
}

#[cold]
fn too_large(what: &str) -> Error {
    Error::shape(format!("{what} makes more than {MAX_TEXT_BYTES} bytes of text"))
        .help("use smaller batches or shorter strings")
}
