//! Operations between the layers of a functional model, such as `x + 1` and `x[:, -1]`.
//!
//! Keras 2 writes them as layers of the classes `TFOpLambda` and `SlicingOpLambda`, Keras 3 as
//! operations of `keras.ops`. They have no weights, and what they compute carries no mask.

mod apply;
mod json;
mod slice;

pub(super) use json::{Arguments, call_of_keras_2, call_of_keras_3, read, write};
use slice::Part;

/// An operation with its constants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operation {
    pub name: Option<String>,
    pub function: Function,
    /// What it is applied to, in the order of its arguments.
    pub operands: Vec<Operand>,
}

/// An argument of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    /// The next of the values that the operation is called with.
    Value,
    Number(f64),
}

/// What an operation computes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Function {
    Elementwise(Elementwise),
    /// Over all axes if none are named.
    Reduce {
        how: Reduction,
        axes: Option<Vec<i64>>,
        keep_dims: bool,
    },
    Softmax {
        axis: i64,
    },
    Clip {
        low: f64,
        high: f64,
    },
    Reshape {
        sizes: Vec<i64>,
    },
    ExpandDims {
        axis: i64,
    },
    /// All axes of size 1 if none are named.
    Squeeze {
        axes: Option<Vec<i64>>,
    },
    /// All axes reversed if none are named.
    Transpose {
        axes: Option<Vec<usize>>,
    },
    Concatenate {
        axis: i64,
    },
    GetItem {
        parts: Vec<Part>,
    },
}

/// Functions of each element, of one value or of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elementwise {
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
    Power,
    Negative,
    Absolute,
    Square,
    Sqrt,
    Exp,
    Log,
    Relu,
    Relu6,
    Sigmoid,
    Tanh,
    Silu,
    Softplus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduction {
    Mean,
    Sum,
    Max,
    Min,
}

impl Operation {
    /// The class in Keras 3, whose name in small letters is the kind of layer.
    pub fn class(&self) -> &'static str {
        json::row_of(&self.function).class
    }

    pub fn kind(&self) -> &'static str {
        json::row_of(&self.function).kind
    }

    /// The class as `summary` of Keras 2 shows it.
    pub fn class_of_keras_2(&self) -> &'static str {
        if matches!(self.function, Function::GetItem { .. }) { "SlicingOpLambda" } else { "TFOpLambda" }
    }
}
