//! The element-wise operations, by TensorFlow's names: the dtypes they accept and return.
//!
//! The graph's ops, the tile interpreter in `cpu::elementwise` and the GraphDef writer share this
//! table.

use crate::DType;

macro_rules! catalogue {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $tf:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// Every operation of this kind.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// TensorFlow's name of the operation.
            pub fn tf_name(self) -> &'static str {
                match self { $($name::$variant => $tf),* }
            }
        }
    };
}

catalogue! {
    /// Operations with one input and one output of the same shape.
    Unary {
        /// `-x`
        Neg = "Neg",
        /// `|x|`
        Abs = "Abs",
        /// -1, 0 or 1
        Sign = "Sign",
        /// Largest integer not above x
        Floor = "Floor",
        /// Smallest integer not below x
        Ceil = "Ceil",
        /// Nearest integer, halves to even
        Round = "Round",
        /// `e^x`
        Exp = "Exp",
        /// `e^x - 1`, exact near 0
        Expm1 = "Expm1",
        /// Natural logarithm
        Log = "Log",
        /// `ln(1 + x)`, exact near 0
        Log1p = "Log1p",
        /// Square root
        Sqrt = "Sqrt",
        /// `1 / sqrt(x)`
        Rsqrt = "Rsqrt",
        /// `x * x`
        Square = "Square",
        /// `1 / x`
        Reciprocal = "Reciprocal",
        /// Sine
        Sin = "Sin",
        /// Cosine
        Cos = "Cos",
        /// Hyperbolic tangent
        Tanh = "Tanh",
        /// `1 / (1 + e^-x)`
        Sigmoid = "Sigmoid",
        /// Error function
        Erf = "Erf",
        /// `ln(1 + e^x)`
        Softplus = "Softplus",
        /// `x / (1 + |x|)`
        Softsign = "Softsign",
        /// `max(x, 0)`
        Relu = "Relu",
        /// `min(max(x, 0), 6)`
        Relu6 = "Relu6",
        /// `x` above 0, `e^x - 1` below
        Elu = "Elu",
        /// Scaled exponential linear unit
        Selu = "Selu",
        /// Boolean not
        LogicalNot = "LogicalNot",
        /// Is not a number
        IsNan = "IsNan",
        /// Neither infinite nor NaN
        IsFinite = "IsFinite",
    }
}

catalogue! {
    /// Operations with two inputs of one dtype, broadcast against each other.
    Binary {
        /// `x + y`
        Add = "AddV2",
        /// `x - y`
        Sub = "Sub",
        /// `x * y`
        Mul = "Mul",
        /// `x / y` of floats
        Div = "RealDiv",
        /// `x / y`, 0 where y is 0
        DivNoNan = "DivNoNan",
        /// `floor(x / y)`
        FloorDiv = "FloorDiv",
        /// `x - y * floor(x / y)`
        FloorMod = "FloorMod",
        /// `x^y`
        Pow = "Pow",
        /// The larger; NaN if either is NaN
        Maximum = "Maximum",
        /// The smaller; NaN if either is NaN
        Minimum = "Minimum",
        /// `(x - y)^2`
        SquaredDifference = "SquaredDifference",
        /// `x < y`
        Less = "Less",
        /// `x <= y`
        LessEqual = "LessEqual",
        /// `x > y`
        Greater = "Greater",
        /// `x >= y`
        GreaterEqual = "GreaterEqual",
        /// `x == y`
        Equal = "Equal",
        /// `x != y`
        NotEqual = "NotEqual",
        /// `x && y`
        LogicalAnd = "LogicalAnd",
        /// `x || y`
        LogicalOr = "LogicalOr",
        /// (gradient, relu's input or output): gradient where it is above 0
        ReluGrad = "ReluGrad",
        /// (gradient, relu6's input or output): gradient where it is in (0, 6)
        Relu6Grad = "Relu6Grad",
        /// (gradient, elu's output)
        EluGrad = "EluGrad",
        /// (gradient, selu's output)
        SeluGrad = "SeluGrad",
        /// (gradient, softplus's input)
        SoftplusGrad = "SoftplusGrad",
        /// (gradient, softsign's input)
        SoftsignGrad = "SoftsignGrad",
        /// (tanh's output, gradient): `dy * (1 - y * y)`
        TanhGrad = "TanhGrad",
        /// (sigmoid's output, gradient): `dy * y * (1 - y)`
        SigmoidGrad = "SigmoidGrad",
        /// (sqrt's output, gradient): `dy * 0.5 / y`
        SqrtGrad = "SqrtGrad",
        /// (rsqrt's output, gradient): `dy * -0.5 * y^3`
        RsqrtGrad = "RsqrtGrad",
        /// (reciprocal's output, gradient): `-dy * y * y`
        ReciprocalGrad = "ReciprocalGrad",
    }
}

impl Unary {
    /// Whether TensorFlow and Estimand define the operation on this dtype.
    pub fn accepts(self, dtype: DType) -> bool {
        use Unary::*;
        match self {
            LogicalNot => dtype == DType::Bool,
            Neg | Abs | Sign | Square => dtype.is_float() || matches!(dtype, DType::I32 | DType::I64),
            Relu | Relu6 => dtype.is_float() || matches!(dtype, DType::I32 | DType::I64),
            _ => dtype.is_float(),
        }
    }

    /// The dtype of the result for an accepted input dtype.
    pub fn output(self, input: DType) -> DType {
        match self {
            Unary::LogicalNot | Unary::IsNan | Unary::IsFinite => DType::Bool,
            _ => input,
        }
    }
}

impl Binary {
    /// Whether TensorFlow and Estimand define the operation on this dtype.
    pub fn accepts(self, dtype: DType) -> bool {
        use Binary::*;
        let signed = dtype.is_float() || matches!(dtype, DType::I32 | DType::I64);
        match self {
            LogicalAnd | LogicalOr => dtype == DType::Bool,
            Equal | NotEqual => dtype != DType::Str,
            Add | Sub | Mul | Maximum | Minimum | Less | LessEqual | Greater | GreaterEqual => {
                signed || dtype == DType::U8
            }
            SquaredDifference | FloorDiv | FloorMod => signed,
            _ => dtype.is_float(),
        }
    }

    /// The dtype of the result for an accepted input dtype.
    pub fn output(self, input: DType) -> DType {
        use Binary::*;
        match self {
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual | LogicalAnd | LogicalOr => DType::Bool,
            _ => input,
        }
    }

    /// Whether the operation compares and returns booleans.
    pub fn is_comparison(self) -> bool {
        use Binary::*;
        matches!(self, Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual)
    }
}
