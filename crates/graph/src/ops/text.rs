//! Strings.

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
}
