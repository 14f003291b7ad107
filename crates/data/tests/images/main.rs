//! Images against TensorFlow's, and their folders.

#[cfg(feature = "image")]
mod decode;
#[cfg(feature = "image")]
mod folder;
mod functions;

use estimand_fixture::Case;
use estimand_tensor::{Array, Result};

/// Pixels of a case.
fn pixels(case: &Case, key: &str) -> Result<Array> {
    let values = case.array(key);
    Array::from_vec(&values.dims, values.numbers::<u8>())
}
