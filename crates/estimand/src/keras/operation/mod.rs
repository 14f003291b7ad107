//! Operations between the layers of a functional model, such as `x + 1` and `x[:, -1]`.
//!
//! Keras 2 writes them as layers of the classes `TFOpLambda` and `SlicingOpLambda`, Keras 3 as
//! operations of `keras.ops`. They have no weights, and what they compute carries no mask.

mod apply;
mod json;
mod slice;

use estimand_nn::config::Dialect;
use estimand_tensor::DType;

pub(super) use json::{Arguments, call_of_keras_2, call_of_keras_3, read, takes_list, write};
use slice::Part;

/// An operation with its constants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operation {
    pub name: Option<String>,
    pub function: Function,
    /// What it is applied to, in the order of its arguments.
    pub operands: Vec<Operand>,
    /// The generation of Keras whose rules for whole numbers hold.
    pub rules: Dialect,
}

/// An argument of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    /// The next of the values that the operation is called with.
    Value,
    Number(Number),
}

/// A number of a document. Beside a value of whole numbers, 2 and 2.0 are not the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Whole(i64),
    Float(f64),
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

/// Whether values of a type are whole numbers.
fn is_whole(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64 | DType::U8)
}

impl Elementwise {
    /// Whether Keras 3 computes floats of whole numbers.
    fn makes_floats(self) -> bool {
        matches!(self, Elementwise::Sqrt | Elementwise::Exp | Elementwise::Log | Elementwise::Tanh)
    }
}

impl Operation {
    /// The class in Keras 3, whose name in small letters is the kind of layer.
    pub fn class(&self) -> &'static str {
        json::row_of(&self.function).class
    }

    pub fn kind(&self) -> &'static str {
        json::row_of(&self.function).kind
    }

    /// Whether Keras 3 writes settings of it.
    pub fn has_settings(&self) -> bool {
        !matches!(self.function, Function::Elementwise(_) | Function::GetItem { .. })
    }

    /// Whether JSON has all its numbers.
    pub fn is_finite(&self) -> bool {
        let is_finite = |operand: &Operand| !matches!(operand, Operand::Number(Number::Float(x)) if !x.is_finite());
        let limits = match self.function {
            Function::Clip { low, high } => low.is_finite() && high.is_finite(),
            _ => true,
        };
        limits && self.operands.iter().all(is_finite)
    }

    /// Whether the versions of Keras compute different things with values of these types. Keras 3
    /// takes the mean of whole numbers as a float, and a float beside whole numbers makes them
    /// floats.
    pub fn depends_on_version(&self, dtypes: &[DType]) -> bool {
        let is_whole = |dtype: &DType| is_whole(*dtype);
        let has_float = self.operands.iter().any(|operand| matches!(operand, Operand::Number(Number::Float(_))))
            || !dtypes.iter().all(is_whole);
        dtypes.iter().any(is_whole)
            && match &self.function {
                Function::Reduce { how, .. } => matches!(how, Reduction::Mean | Reduction::Sum),
                Function::Elementwise(Elementwise::Divide) => false,
                Function::Elementwise(function) => has_float || function.makes_floats(),
                _ => false,
            }
    }

    /// The class as `summary` of Keras 2 shows it.
    pub fn class_of_keras_2(&self) -> &'static str {
        if matches!(self.function, Function::GetItem { .. }) { "SlicingOpLambda" } else { "TFOpLambda" }
    }
}
