//! The dtype and shape of a tensor, which are known before it has a value.

use std::fmt;

use crate::{DType, Shape};

/// Dtype and shape of a symbolic tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorSpec {
    /// Element type.
    pub dtype: DType,
    /// Axes, each known or a symbol.
    pub shape: Shape,
}

impl TensorSpec {
    /// Creates a spec from a dtype and a shape.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> TensorSpec {
        TensorSpec { dtype, shape: shape.into() }
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}
