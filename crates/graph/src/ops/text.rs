//! Strings and categories.

use std::panic::Location;

use crate::host::{HostOp, text};
use crate::op::Op;
use crate::tensor::Tensor;

impl Tensor {
    /// The number of bytes of each string.
    #[track_caller]
    pub fn string_length(&self) -> Tensor {
        self.then(Op::Host(HostOp::new(text::StringLength)), &[], Location::caller())
    }

    /// The hash bucket of each string or integer, below `n`: TensorFlow's `to_hash_bucket_fast`. Integers are hashed by their
    /// decimal text, as its feature columns do.
    #[track_caller]
    pub fn hash_bucket(&self, n: i64) -> Tensor {
        self.then(Op::Host(HostOp::new(text::HashBucket { n, key: None })), &[], Location::caller())
    }

    /// The hash bucket of each string with a secret key, so that nobody can choose strings of one bucket: TensorFlow's
    /// `to_hash_bucket_strong`.
    #[track_caller]
    pub fn hash_bucket_strong(&self, n: i64, key: [u64; 2]) -> Tensor {
        self.then(Op::Host(HostOp::new(text::HashBucket { n, key: Some(key) })), &[], Location::caller())
    }
}
