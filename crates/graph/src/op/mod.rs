//! The ops, one file each. Names and semantics are TensorFlow's, so that a GraphDef is nearly a
//! dump of the graph.
//!
//! An op is a small struct whose fields are its attributes. Its file contains everything that does
//! not depend on the executor (`OpRules`): its name, dtypes and shapes, gradient, cost, and how it
//! is written to and read from TensorFlow graphs. If the gradient needs an op of its own, that op
//! is in the same file. The list below makes one enum of all ops. Executors match it without
//! wildcards: an op that an executor does not handle is a compile error.
//!
//! To add an op: its file, a line in the list, a kernel in each executor (`cpu/`, `reference/`), a
//! case in the generator of random programs (`testing/`). To add a host op: one file in `host/`.

mod apply;
mod arg_max;
mod attribute;
mod avg_pool;
mod band_part;
mod binary;
mod broadcast_to;
mod cast;
pub mod composed;
mod concat;
mod constant;
mod conv2d;
mod cross_entropy;
mod cumulate;
mod custom;
mod depthwise_conv2d;
mod dim_size;
pub(crate) mod expect;
pub mod function;
mod gather;
mod gather_nd;
mod group;
mod matmul;
mod max_pool;
mod mirror_pad;
mod one_hot;
mod pad;
mod placeholder;
mod print;
mod random;
mod range;
pub mod reading;
pub(crate) mod recurrent;
pub mod recurrent_loop;
mod reduce;
mod reshape;
mod resize;
mod reverse;
pub(crate) mod rules;
mod select;
pub mod shape;
mod slice;
mod softmax;
pub mod sparse_segment;
pub mod spelling;
mod stop_gradient;
mod strided_slice;
mod sum_to;
mod tile;
mod top_k;
mod transpose;
mod unary;
mod unsorted_segment;
mod variable;
pub(crate) mod window;

pub use estimand_tensor::{Binary, Reduction, Unary};

pub use arg_max::ArgMax;
pub use attribute::{Axes, AxisSet, Padding, PoolWindow, Window};
pub use avg_pool::{AvgPool, AvgPoolGrad};
pub use band_part::BandPart;
pub use broadcast_to::BroadcastTo;
pub use cast::Cast;
pub use concat::Concat;
pub use constant::Constant;
pub use conv2d::{Conv2d, Conv2dBackpropFilter, Conv2dBackpropInput};
pub use cross_entropy::{SoftmaxCrossEntropy, SparseSoftmaxCrossEntropy};
pub use cumulate::Cumulate;
pub use depthwise_conv2d::{DepthwiseConv2d, DepthwiseConv2dBackpropFilter, DepthwiseConv2dBackpropInput};
pub use dim_size::DimSize;
pub use gather::Gather;
pub use gather_nd::{GatherNd, ScatterNd};
pub use group::Group;
pub use matmul::{BatchMatMul, MatMul};
pub use max_pool::{MaxPool, MaxPoolGrad};
pub use mirror_pad::{MirrorPad, MirrorPadGrad};
pub use one_hot::OneHot;
pub use pad::Pad;
pub use placeholder::Placeholder;
pub use print::Print;
pub use random::{Random, RandomKind};
pub use range::Range;
pub use recurrent::{Cell, CellFunction, Recurrent, RecurrentGrad};
pub use reduce::Reduce;
pub use reshape::Reshape;
pub use resize::{Resize, ResizeGrad};
pub use reverse::Reverse;
pub use select::Select;
pub use slice::Slice;
pub use softmax::{LogSoftmax, Softmax};
pub use sparse_segment::{Combiner, SparseSegment, SparseSegmentGrad};
pub use stop_gradient::StopGradient;
pub use strided_slice::{StridedSlice, StridedSliceGrad};
pub use sum_to::SumTo;
pub use tile::Tile;
pub use top_k::TopK;
pub use transpose::Transpose;
pub use unsorted_segment::UnsortedSegment;
pub use variable::{Assign, Variable};

use crate::custom::CustomOp;
use crate::host::HostOp;
use crate::optimizer::Apply;
use reading::ReadRule;
use rules::OpRules;

/// Makes the enum of all ops, with access to their rules.
macro_rules! ops {
    ($($name:ident($attributes:ty) $doc:literal,)*) => {
        /// The operation of a node. Attributes are data: comparable, hashable, printable.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Op {
            $(#[doc = $doc] $name($attributes),)*
        }

        impl Op {
            /// Everything about the op that does not depend on the executor.
            pub fn rules(&self) -> &dyn OpRules {
                match self {
                    $(Op::$name(op) => op,)*
                }
            }

            /// The name of the variant: one of [`ALL_OPS`].
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Op::$name(_) => stringify!($name),)*
                }
            }
        }

        /// The names of all variants of [`Op`].
        pub const ALL_OPS: &[&str] = &[$(stringify!($name)),*];

        /// The rules of TensorFlow's ops that are one of ours.
        pub fn readers() -> impl Iterator<Item = (&'static str, ReadRule)> {
            std::iter::empty()$(.chain(<$attributes as OpRules>::readers()))*
        }

        $(impl From<$attributes> for Op {
            fn from(op: $attributes) -> Op {
                Op::$name(op)
            }
        })*
    };
}

ops! {
    // Sources.
    Placeholder(Placeholder) "A value fed at every run.",
    Constant(Constant) "A value fixed when the graph was built.",
    Variable(Variable) "The value of a variable at the beginning of the run.",
    DimSize(DimSize) "The size of an axis as a number.",
    Range(Range) "0, 1, 2, ... below a size.",
    Random(Random) "Random numbers.",

    // Element-wise, with broadcasting.
    Unary(Unary) "A function of one input.",
    Binary(Binary) "A function of two inputs of one dtype.",
    Select(Select) "One or the other, where a condition holds.",
    Cast(Cast) "Another dtype.",
    StopGradient(StopGradient) "The input, with no gradient.",
    Print(Print) "The input; prints it.",

    // Shapes.
    Reshape(Reshape) "The same elements in another shape.",
    BroadcastTo(BroadcastTo) "Repeats axes of size 1.",
    SumTo(SumTo) "Sums over the axes along which another tensor was broadcast.",
    Transpose(Transpose) "Reorders axes.",
    Concat(Concat) "Joins along an axis.",
    Slice(Slice) "A box of the input.",
    StridedSlice(StridedSlice) "Every n-th element.",
    StridedSliceGrad(StridedSliceGrad) "The gradient of a strided slice.",
    Pad(Pad) "Borders of one value.",
    MirrorPad(MirrorPad) "Borders mirrored from the inside.",
    MirrorPadGrad(MirrorPadGrad) "The gradient of mirrored borders.",
    Tile(Tile) "Repeats the whole input along each axis.",
    Reverse(Reverse) "Reverses axes.",
    BandPart(BandPart) "Matrices without what lies outside of a band.",

    // Reductions and scans.
    Reduce(Reduce) "Reduces a set of axes.",
    ArgMax(ArgMax) "The index of the largest element along an axis.",
    Cumulate(Cumulate) "Running sum or product along an axis.",
    TopK(TopK) "The k largest of the last axis, and their indices.",

    // Products.
    MatMul(MatMul) "Product of two matrices.",
    BatchMatMul(BatchMatMul) "Products of matrices in the last two axes.",
    Conv2d(Conv2d) "Convolution of images.",
    Conv2dBackpropInput(Conv2dBackpropInput) "The gradient of the images.",
    Conv2dBackpropFilter(Conv2dBackpropFilter) "The gradient of the filter.",
    DepthwiseConv2d(DepthwiseConv2d) "Convolution with filters for each channel.",
    DepthwiseConv2dBackpropInput(DepthwiseConv2dBackpropInput) "The gradient of the images.",
    DepthwiseConv2dBackpropFilter(DepthwiseConv2dBackpropFilter) "The gradient of the filter.",
    MaxPool(MaxPool) "The largest element under a window.",
    MaxPoolGrad(MaxPoolGrad) "The gradient of max pooling.",
    AvgPool(AvgPool) "The mean under a window.",
    AvgPoolGrad(AvgPoolGrad) "The gradient of mean pooling.",

    // Softmax over the last axis.
    Softmax(Softmax) "Soft maximum.",
    LogSoftmax(LogSoftmax) "The logarithm of the soft maximum.",
    SoftmaxCrossEntropy(SoftmaxCrossEntropy) "Cross entropy with probabilities.",
    SparseSoftmaxCrossEntropy(SparseSoftmaxCrossEntropy) "Cross entropy with classes.",

    // Indexing.
    Gather(Gather) "Slices of an axis.",
    GatherNd(GatherNd) "Elements and slices at coordinates.",
    ScatterNd(ScatterNd) "Zeros with elements added at coordinates.",
    UnsortedSegment(UnsortedSegment) "Reduces the rows with the same id.",
    SparseSegment(SparseSegment) "Combines the rows that each ragged row reads.",
    SparseSegmentGrad(SparseSegmentGrad) "The gradient of combined rows.",
    OneHot(OneHot) "Indices as rows of a unit matrix.",

    // Sequences.
    Recurrent(Recurrent) "A recurrent network over sequences.",
    RecurrentGrad(RecurrentGrad) "Its gradient.",

    // Images.
    Resize(Resize) "Another height and width.",
    ResizeGrad(ResizeGrad) "The gradient of resizing.",

    // Host ops: strings, tables, results whose size depends on the data.
    Host(HostOp) "Runs before the step, or after it.",

    // User code, and ops that change state.
    Custom(CustomOp) "Rust code.",
    Assign(Assign) "Writes its input to a variable at the end of the run.",
    Apply(Apply) "Applies an optimizer's rule to a variable at the end of the run: input is a dense gradient, or (indices, rows).",
    Group(Group) "Runs its inputs; has no value.",
}

impl Op {
    /// A short name for messages and text forms: TensorFlow's, except for our own ops.
    pub fn name(&self) -> &'static str {
        self.rules().name()
    }

    /// Whether running it changes state or the outside world, so that equal nodes must not be
    /// merged.
    pub fn has_effect(&self) -> bool {
        self.rules().has_effect()
    }

    /// Whether its value is fed at every run.
    pub fn is_placeholder(&self) -> bool {
        matches!(self, Op::Placeholder(_))
    }
}
