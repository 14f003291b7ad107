//! The reductions, by TensorFlow's names. The graph's op, the kernels and the GraphDef writer share
//! this list.

use crate::DType;

/// The function that a reduction computes of its elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// The sum; 0 for no elements. Integers wrap.
    Sum,
    /// The sum divided by the number of elements; NaN for no elements. Integers truncate.
    Mean,
    /// The largest element; NaN if one is NaN. For no elements, minus infinity or the smallest
    /// integer.
    Max,
    /// The smallest element; NaN if one is NaN. For no elements, infinity or the largest integer.
    Min,
    /// The product; 1 for no elements. Integers wrap.
    Prod,
    /// Whether all elements are true.
    All,
    /// Whether any element is true.
    Any,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Reduction; 7] = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Max,
        Reduction::Min,
        Reduction::Prod,
        Reduction::All,
        Reduction::Any,
    ];

    /// TensorFlow's name of the reduction.
    pub fn tf_name(self) -> &'static str {
        match self {
            Reduction::Sum => "Sum",
            Reduction::Mean => "Mean",
            Reduction::Max => "Max",
            Reduction::Min => "Min",
            Reduction::Prod => "Prod",
            Reduction::All => "All",
            Reduction::Any => "Any",
        }
    }

    /// Whether the reduction is defined on this dtype.
    pub fn accepts(self, dtype: DType) -> bool {
        match self {
            Reduction::All | Reduction::Any => dtype == DType::Bool,
            _ => dtype.is_number(),
        }
    }
}
