//! IDX and CIFAR-10's rows: any input gives arrays or an error.

use estimand_data::{cifar10, idx};

/// Reads the bytes in both formats; no array has more bytes than eight times the file.
pub fn check(input: &[u8]) {
    if let Ok(array) = idx::from_bytes(input) {
        assert!(array.bytes().len() <= 8 * input.len());
    }
    if let Ok(batch) = cifar10::from_bytes(input) {
        assert_eq!(batch.n_rows(), input.len() / 3073);
    }
}
