//! NPY and NPZ: any input gives arrays or an error, and the arrays can be written and read again.

use estimand_data::{npy, npz};
use estimand_tensor::Array;

/// Reads the bytes as one array and as an archive.
pub fn check(input: &[u8]) {
    if let Ok(array) = npy::from_bytes(input) {
        round_trip(&array);
    }
    if let Ok(arrays) = npz::from_bytes(input) {
        arrays.iter().for_each(|(_, array)| round_trip(array));
    }
}

fn round_trip(array: &Array) {
    let bytes = npy::to_bytes(array).expect("what was read can be written");
    let again = npy::from_bytes(&bytes).expect("what was written can be read");
    let same = match (array.strings(), again.strings()) {
        (Ok(first), Ok(second)) => first.eq(second),
        _ => array.bytes() == again.bytes(),
    };
    assert!(same && array.dims() == again.dims() && array.dtype() == again.dtype());
}
