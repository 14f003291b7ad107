//! The operations, as data. Names and meaning are TensorFlow's, so that a GraphDef is nearly a dump of the graph.
//!
//! Adding an op: a variant here, its shapes in `infer.rs`, its gradient in `gradient.rs`, its kernel in `cpu/` and `reference/`,
//! its TensorFlow spelling in `graph_def/`. Adding an op of the host: one file in `host/`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use estimand_tensor::Reduction;
pub use estimand_tensor::cpu::combine::Combiner;
pub use estimand_tensor::cpu::recurrent::{Cell, CellFunction, Recurrent};
use estimand_tensor::{Array, Binary, DType, Dim, Shape, Unary};

use crate::custom::CustomOp;
use crate::host::HostOp;
use crate::variables::VarId;

/// What a node computes. Attributes are data: comparable, hashable, printable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    // Sources.
    /// A value fed at every run.
    Placeholder,
    /// A value fixed when the graph was built.
    Constant(Constant),
    /// The value of a variable at the beginning of the run.
    Variable(VarId),
    /// The size of an axis as a single number of the given dtype.
    DimSize(Dim, DType),
    /// 0, 1, 2, ... below a size.
    Range(Dim, DType),
    /// Random numbers: a pure function of (seed, key, step, global row).
    Random {
        /// The distribution.
        kind: RandomKind,
        /// The shape of the result; the first axis counts rows.
        shape: Shape,
        /// The name that tells this stream from all others.
        key: Arc<str>,
    },

    // Element-wise, with broadcasting.
    /// One input.
    Unary(Unary),
    /// Two inputs of one dtype.
    Binary(Binary),
    /// (condition, x, y): x where the condition holds, else y.
    Select,
    /// Another dtype.
    Cast(DType),
    /// The input, with no gradient.
    StopGradient,
    /// The input; prints it to the error stream when run.
    Print(Arc<str>),

    // Shapes.
    /// The same elements in another shape.
    Reshape(Shape),
    /// Repeats axes of size 1.
    BroadcastTo(Shape),
    /// (x, like): sums x over the axes along which `like` was broadcast to get x's shape.
    SumTo,
    /// Reorders axes.
    Transpose(Axes),
    /// Joins along an axis.
    Concat(usize),
    /// A box of the input.
    Slice {
        /// First index on each axis.
        begin: Vec<usize>,
        /// Size on each axis.
        size: Shape,
    },
    /// Every `strides[i]`-th element from `begin[i]`; strides may be negative.
    StridedSlice {
        /// First index on each axis.
        begin: Vec<usize>,
        /// Step on each axis, not 0.
        strides: Vec<i64>,
        /// Size of the result.
        size: Vec<usize>,
    },
    /// The gradient of `StridedSlice`: zeros of the given shape with the input put where it was taken from.
    StridedSliceGrad {
        /// As in `StridedSlice`.
        begin: Vec<usize>,
        /// As in `StridedSlice`.
        strides: Vec<i64>,
        /// The shape of the slice's input.
        shape: Shape,
    },
    /// (x, value): x with borders of the scalar `value`.
    Pad {
        /// Elements before each axis.
        before: Shape,
        /// Elements after each axis.
        after: Shape,
    },
    /// x with borders mirrored from its inside.
    MirrorPad {
        /// Elements before and after each axis.
        paddings: Vec<(usize, usize)>,
        /// `SYMMETRIC` repeats the edge, `REFLECT` does not.
        symmetric: bool,
    },
    /// The gradient of `MirrorPad`.
    MirrorPadGrad {
        /// As in `MirrorPad`.
        paddings: Vec<(usize, usize)>,
        /// As in `MirrorPad`.
        symmetric: bool,
    },
    /// Repeats the whole input along each axis.
    Tile(Vec<usize>),
    /// Reverses axes.
    Reverse(AxisSet),

    // Reductions and scans.
    /// Reduces a set of axes.
    Reduce {
        /// Sum, mean, ...
        kind: Reduction,
        /// Which axes.
        axes: AxisSet,
        /// Keeps reduced axes with size 1.
        keep_dims: bool,
    },
    /// The index of the largest (or smallest) element along an axis; the first of equals.
    ArgMax {
        /// The axis.
        axis: usize,
        /// Smallest instead of largest.
        min: bool,
        /// `I32` or `I64`.
        output: DType,
    },
    /// Running sum or product along an axis.
    Cumulate {
        /// Product instead of sum.
        product: bool,
        /// The axis.
        axis: usize,
        /// Starts at 0 (or 1) instead of the first element.
        exclusive: bool,
        /// From the end.
        reverse: bool,
    },
    /// The k largest of the last axis, in falling order, and their indices (I32).
    TopK(usize),

    // Products.
    /// Product of two matrices.
    MatMul {
        /// Uses the transpose of the first.
        transpose_a: bool,
        /// Uses the transpose of the second.
        transpose_b: bool,
    },
    /// Products of matrices in the last two axes; leading axes are broadcast.
    BatchMatMul {
        /// Uses the transposes of the first.
        adjoint_x: bool,
        /// Uses the transposes of the second.
        adjoint_y: bool,
    },
    /// (x NHWC, filter HWIO).
    Conv2d(Window),
    /// (filter, dy) -> dx of the given shape.
    Conv2dBackpropInput(Window, Shape),
    /// (x, dy) -> gradient of a filter of the given shape.
    Conv2dBackpropFilter(Window, Shape),
    /// (x NHWC, filter [h, w, channels, multiplier]).
    DepthwiseConv2d(Window),
    /// (filter, dy) -> dx of the given shape.
    DepthwiseConv2dBackpropInput(Window, Shape),
    /// (x, dy) -> gradient of a filter of the given shape.
    DepthwiseConv2dBackpropFilter(Window, Shape),
    /// The largest element under a window.
    MaxPool(PoolWindow),
    /// (x, y, dy) -> dx; the first maximum of a window takes the gradient.
    MaxPoolGrad(PoolWindow),
    /// The mean of the elements under a window; padding does not count.
    AvgPool(PoolWindow),
    /// dy -> dx of the given shape.
    AvgPoolGrad(PoolWindow, Shape),

    // Soft maxima over the last axis.
    /// `exp(x) / sum(exp(x))`
    Softmax,
    /// `x - log(sum(exp(x)))`
    LogSoftmax,
    /// (logits, labels) of one shape -> (loss per row, gradient of logits).
    SoftmaxCrossEntropy,
    /// (logits `[n, classes]`, labels `[n]` integers) -> (loss per row, gradient of logits).
    SparseSoftmaxCrossEntropy,

    // Indexing.
    /// (params, indices): slices of an axis.
    Gather {
        /// The axis of `params`.
        axis: usize,
        /// Leading axes that params and indices share.
        batch_dims: usize,
    },
    /// (params, indices [..., depth]).
    GatherNd,
    /// (indices [..., depth], updates): zeros of the given shape; updates to one place are added.
    ScatterNd(Shape),
    /// (data, ids): reduces the rows with the same id; ids below 0 are dropped.
    UnsortedSegment {
        /// Sum, max, min or prod.
        kind: Reduction,
        /// Rows of the result.
        num_segments: Dim,
    },
    /// (rows, index `[n]`, row_splits `[b + 1]`, optional weights `[n]`): combines the rows that each ragged row reads.
    SparseSegment(Combiner),
    /// (dy, index, row_splits, optional weights) -> the gradient of as many rows as given.
    SparseSegmentGrad(Combiner, Dim),
    /// (indices, on, off) -> a new axis of the given depth.
    OneHot {
        /// Size of the new axis.
        depth: usize,
        /// Where the new axis stands in the result.
        axis: usize,
    },

    // Sequences.
    /// (x `[batch, time, gates * units]`, recurrent kernel, its bias if the cell has one, first states, mask, dropout) -> (`h` after every
    /// step, the last states, what the gradient needs).
    Recurrent(Recurrent),
    /// (what was kept, then the other inputs of `Recurrent`, `h` after every step, its gradient, the last states' gradients) -> the
    /// gradients of x, kernel, bias and first states.
    RecurrentGrad(Recurrent),

    // Images.
    /// NHWC to another height and width.
    Resize(Resize),
    /// dy -> dx of the given shape.
    ResizeGrad(Resize, Shape),

    // The host's.
    /// Runs before the step: strings, tables, results whose size only the data tells.
    Host(HostOp),

    // What users bring, and what changes state.
    /// Host code.
    Custom(CustomOp),
    /// Writes its input to a variable at the end of the run.
    Assign(VarId),
    /// Applies an optimizer's rule to a variable at the end of the run: input is a dense gradient, or (indices, rows).
    Apply(crate::optimizer::Apply),
    /// Runs its inputs; has no value.
    Group,
}

/// A constant's value; compared bit by bit.
#[derive(Clone, Debug)]
pub struct Constant(pub Array);

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        let (a, b) = (&self.0, &other.0);
        a.dtype() == b.dtype()
            && a.dims() == b.dims()
            && match a.dtype() {
                DType::Str => a == b,
                _ => a.bytes() == b.bytes(),
            }
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.dtype().hash(state);
        self.0.dims().hash(state);
        self.0.bytes().hash(state);
    }
}

/// An ordered list of axes.
pub type Axes = smallvec::SmallVec<[u8; 8]>;

/// A set of axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AxisSet(pub u32);

impl AxisSet {
    /// The axes 0 to `rank`.
    pub fn all(rank: usize) -> AxisSet {
        AxisSet((1 << rank) - 1)
    }

    /// Whether an axis is in the set.
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }

    /// The axes in rising order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&a| self.contains(a))
    }
}

impl FromIterator<usize> for AxisSet {
    fn from_iter<I: IntoIterator<Item = usize>>(axes: I) -> AxisSet {
        AxisSet(axes.into_iter().fold(0, |set, a| set | 1 << a))
    }
}

/// Distributions of `Random`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RandomKind {
    /// In [0, 1).
    Uniform,
    /// Mean 0, deviation 1.
    Normal,
    /// Normal, re-drawn until within two deviations.
    TruncatedNormal,
    /// Integers (I64) in [low, high).
    Integers {
        /// Smallest.
        low: i64,
        /// One above the largest.
        high: i64,
    },
}

/// How a window is laid over an image's border.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Padding {
    /// The result has `ceil(size / stride)` positions; zeros are added around the image.
    Same,
    /// Only positions where the window lies inside the image.
    Valid,
}

impl Padding {
    /// TensorFlow's spelling.
    pub fn tf_name(self) -> &'static str {
        match self {
            Padding::Same => "SAME",
            Padding::Valid => "VALID",
        }
    }

    /// Output size and padding before and after, for one axis. `None` if the window does not fit at all.
    pub fn place(self, size: usize, window: usize, stride: usize, dilation: usize) -> Option<(usize, usize, usize)> {
        let span = (window.checked_sub(1)?).checked_mul(dilation)?.checked_add(1)?;
        match self {
            // TF: an image smaller than the window has no position, not a negative number of them.
            Padding::Valid => Some((size.saturating_add(stride).saturating_sub(span) / stride, 0, 0)),
            Padding::Same => {
                let out = size.div_ceil(stride);
                let total = (out.saturating_sub(1) * stride).saturating_add(span).saturating_sub(size);
                Some((out, total / 2, total - total / 2))
            }
        }
    }
}

/// How a filter moves over an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// Vertical and horizontal step.
    pub strides: (usize, usize),
    /// Vertical and horizontal distance between filter taps.
    pub dilations: (usize, usize),
    /// What happens at the border.
    pub padding: Padding,
}

/// How a pooling window moves over an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PoolWindow {
    /// Height and width.
    pub size: (usize, usize),
    /// Vertical and horizontal step.
    pub strides: (usize, usize),
    /// What happens at the border.
    pub padding: Padding,
}

/// How an image is resized.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resize {
    /// Interpolates between the four neighbours; otherwise takes the nearest.
    pub bilinear: bool,
    /// Height and width of the result.
    pub size: (usize, usize),
    /// TensorFlow 2's rule for where pixel centres lie.
    pub half_pixel_centers: bool,
}

impl Op {
    /// A short name for messages and text forms: TensorFlow's, except for our own ops.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Placeholder => "Placeholder",
            Op::Constant(_) => "Const",
            Op::Variable(_) => "Variable",
            Op::DimSize(..) => "DimSize",
            Op::Range(..) => "Range",
            Op::Random { kind, .. } => match kind {
                RandomKind::Uniform => "RandomUniform",
                RandomKind::Normal => "RandomNormal",
                RandomKind::TruncatedNormal => "TruncatedNormal",
                RandomKind::Integers { .. } => "RandomIntegers",
            },
            Op::Unary(u) => u.tf_name(),
            Op::Binary(b) => b.tf_name(),
            Op::Select => "SelectV2",
            Op::Cast(_) => "Cast",
            Op::StopGradient => "StopGradient",
            Op::Print(_) => "Print",
            Op::Reshape(_) => "Reshape",
            Op::BroadcastTo(_) => "BroadcastTo",
            Op::SumTo => "SumTo",
            Op::Transpose(_) => "Transpose",
            Op::Concat(_) => "ConcatV2",
            Op::Slice { .. } => "Slice",
            Op::StridedSlice { .. } => "StridedSlice",
            Op::StridedSliceGrad { .. } => "StridedSliceGrad",
            Op::Pad { .. } => "PadV2",
            Op::MirrorPad { .. } => "MirrorPad",
            Op::MirrorPadGrad { .. } => "MirrorPadGrad",
            Op::Tile(_) => "Tile",
            Op::Reverse(_) => "ReverseV2",
            Op::Reduce { kind, .. } => kind.tf_name(),
            Op::ArgMax { min: false, .. } => "ArgMax",
            Op::ArgMax { min: true, .. } => "ArgMin",
            Op::Cumulate { product: false, .. } => "Cumsum",
            Op::Cumulate { product: true, .. } => "Cumprod",
            Op::TopK(_) => "TopKV2",
            Op::MatMul { .. } => "MatMul",
            Op::BatchMatMul { .. } => "BatchMatMulV2",
            Op::Conv2d(_) => "Conv2D",
            Op::Conv2dBackpropInput(..) => "Conv2DBackpropInput",
            Op::Conv2dBackpropFilter(..) => "Conv2DBackpropFilter",
            Op::DepthwiseConv2d(_) => "DepthwiseConv2dNative",
            Op::DepthwiseConv2dBackpropInput(..) => "DepthwiseConv2dNativeBackpropInput",
            Op::DepthwiseConv2dBackpropFilter(..) => "DepthwiseConv2dNativeBackpropFilter",
            Op::MaxPool(_) => "MaxPool",
            Op::MaxPoolGrad(_) => "MaxPoolGrad",
            Op::AvgPool(_) => "AvgPool",
            Op::AvgPoolGrad(..) => "AvgPoolGrad",
            Op::Softmax => "Softmax",
            Op::LogSoftmax => "LogSoftmax",
            Op::SoftmaxCrossEntropy => "SoftmaxCrossEntropyWithLogits",
            Op::SparseSoftmaxCrossEntropy => "SparseSoftmaxCrossEntropyWithLogits",
            Op::Gather { .. } => "GatherV2",
            Op::GatherNd => "GatherNd",
            Op::ScatterNd(_) => "ScatterNd",
            Op::UnsortedSegment { kind, .. } => match kind {
                Reduction::Max => "UnsortedSegmentMax",
                Reduction::Min => "UnsortedSegmentMin",
                Reduction::Prod => "UnsortedSegmentProd",
                _ => "UnsortedSegmentSum",
            },
            Op::SparseSegment(Combiner::Sum) => "SparseSegmentSum",
            Op::SparseSegment(Combiner::Mean) => "SparseSegmentMean",
            Op::SparseSegment(Combiner::SqrtN) => "SparseSegmentSqrtN",
            Op::SparseSegmentGrad(Combiner::Sum, _) => "SparseSegmentSumGrad",
            Op::SparseSegmentGrad(Combiner::Mean, _) => "SparseSegmentMeanGrad",
            Op::SparseSegmentGrad(Combiner::SqrtN, _) => "SparseSegmentSqrtNGrad",
            Op::OneHot { .. } => "OneHot",
            Op::Recurrent(Recurrent { cell: Cell::Simple, .. }) => "SimpleRnn",
            Op::Recurrent(Recurrent { cell: Cell::Lstm, .. }) => "Lstm",
            Op::Recurrent(Recurrent { cell: Cell::Gru { .. }, .. }) => "Gru",
            Op::RecurrentGrad(Recurrent { cell: Cell::Simple, .. }) => "SimpleRnnGrad",
            Op::RecurrentGrad(Recurrent { cell: Cell::Lstm, .. }) => "LstmGrad",
            Op::RecurrentGrad(Recurrent { cell: Cell::Gru { .. }, .. }) => "GruGrad",
            Op::Resize(Resize { bilinear: true, .. }) => "ResizeBilinear",
            Op::Resize(_) => "ResizeNearestNeighbor",
            Op::ResizeGrad(Resize { bilinear: true, .. }, _) => "ResizeBilinearGrad",
            Op::ResizeGrad(..) => "ResizeNearestNeighborGrad",
            Op::Host(op) => op.rules().name(),
            Op::Custom(_) => "Custom",
            Op::Assign(_) => "Assign",
            Op::Apply(_) => "Apply",
            Op::Group => "NoOp",
        }
    }

    /// Whether running it changes state or the outside world, so that equal nodes are not one.
    pub fn has_effect(&self) -> bool {
        matches!(self, Op::Assign(_) | Op::Apply(_) | Op::Print(_) | Op::Custom(_) | Op::Group | Op::Placeholder)
    }
}
