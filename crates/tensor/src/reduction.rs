//! The reductions, by TensorFlow's names. The graph's op, the kernels and the GraphDef writer share
//! this list.

use crate::DType;

/// What a reduction computes of its elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// The sum; 0 of nothing. Integers wrap.
    Sum,
    /// The sum divided by the number of elements; NaN of nothing. Integers truncate.
    Mean,
    /// The largest; NaN if one is. Minus infinity or the smallest integer of nothing.
    Max,
    /// The smallest; NaN if one is. Infinity or the largest integer of nothing.
    Min,
    /// The product; 1 of nothing. Integers wrap.
    Prod,
    /// Whether all are true.
    All,
    /// Whether one is true.
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

    /// TensorFlow's name.
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
