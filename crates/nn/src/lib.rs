//! The building blocks of models: feature columns, layers, activations, regularizers, losses and
//! metrics.
//!
//! Every item is a plain value. When it is applied, it adds nodes and variables to a
//! [`Graph`](estimand_graph::Graph); the value itself holds no weights. The modules, in the order a
//! model uses them: `inputs` (features by name), `column` ([`FeatureColumn`](column::FeatureColumn)
//! and one file for each kind), `layer` ([`Layer`] and one file for each kind), `activation`,
//! `regularizer`, `defaults` (options for all layers of a scope), `loss` ([`Loss`] and one file for
//! each), `metric` ([`Metric`](metric::Metric) and a file for each family). `config` writes layers
//! as JSON and reads them. `testing` holds the contract checks for columns, layers, losses and
//! metrics.
//!
//! ```
//! use estimand_engine::Session;
//! use estimand_graph::{Graph, Optimizer};
//! use estimand_nn::{Dense, Layer, Loss, MeanSquaredError};
//! use estimand_tensor::{Array, DType, Dim};
//! use estimand_update::Adam;
//!
//! let g = Graph::new();
//! let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
//! let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
//! let hidden = Dense::new(8).tanh().apply(&x);
//! let loss = MeanSquaredError::new().apply(&y, &Dense::new(1).apply(&hidden));
//! let train = Optimizer::new(Adam::default(), 0.05).minimize(&loss);
//!
//! let xor = Array::from_vec([4, 2], vec![0.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])?;
//! let feeds = [(&x, xor), (&y, Array::from_vec([4, 1], vec![0.0f32, 1.0, 1.0, 0.0])?)];
//! let mut session = Session::new(&g)?;
//! for _ in 0..300 {
//!     session.run(&[&train], &feeds)?;
//! }
//! assert!(session.run(&[&loss], &feeds)?[0].item::<f32>()? < 0.05);
//! assert_eq!(session.value("dense/kernel")?.dims(), [2, 8]);
//! assert_eq!(session.value("dense_1/bias")?.dims(), [1]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

#![warn(clippy::return_self_not_must_use)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod activation;
mod alignment;
mod border;
pub mod column;
pub mod config;
mod defaults;
mod inputs;
pub mod layer;
pub mod loss;
pub mod metric;
pub mod optimizer;
mod regularizer;
mod size;
pub mod testing;

/// A file of this crate. `Graph::line` takes it to tell lines of this crate from a program's.
#[doc(hidden)]
pub const SOURCE: &str = file!();

pub use activation::{ALL_ACTIVATIONS, Activation, ActivationLayer};
pub use border::Border;
pub use defaults::Defaults;
pub use inputs::{Input, Inputs};
pub use layer::{
    ALL_LAYERS, Add, AdditiveAttention, AlphaDropout, AsInputs, Attention, Average, AvgPool1d, AvgPool2d, AvgPool3d,
    BatchNorm, Bidirectional, CategoryEncoding, CenterCrop, Concat, Conv1d, Conv1dTranspose, Conv2d, Conv2dTranspose,
    Conv3d, Conv3dTranspose, ConvLstm, ConvLstm1d, ConvLstm2d, ConvLstm3d, Cropping1d, Cropping2d, Cropping3d, Dense,
    DepthwiseConv1d, DepthwiseConv2d, Discretization, Dot, Dropout, Elu, Embedding, Factor, FillMode, Flatten, Flip,
    GaussianDropout, GaussianNoise, GlobalAvgPool1d, GlobalAvgPool2d, GlobalAvgPool3d, GlobalMaxPool1d,
    GlobalMaxPool2d, GlobalMaxPool3d, GroupNorm, Gru, GruCell, HashedCrossing, Hashing, IntegerLookup, Lambda, Layer,
    LayerInputs, LayerNorm, LeakyRelu, Lstm, LstmCell, Masking, MaxPool1d, MaxPool2d, MaxPool3d, Maximum, MergeMode,
    Minimum, MultiHeadAttention, Multiply, Normalization, OutputMode, PRelu, Permute, RandomBrightness, RandomContrast,
    RandomCrop, RandomFlip, RandomRotation, RandomTranslation, RandomZoom, RecurrentLayer, Relu, RepeatVector,
    Rescaling, Reshape, Resizing, Rnn, RnnCell, SeparableConv1d, SeparableConv2d, Shared, SimpleRnn, SimpleRnnCell,
    Softmax, SpatialDropout1d, SpatialDropout2d, SpatialDropout3d, Split, StackedRnnCells, Standardize, StringLookup,
    Subtract, TextVectorization, ThresholdedRelu, TimeDistributed, UnitNormalization, UpSampling1d, UpSampling2d,
    UpSampling3d, ZeroPadding1d, ZeroPadding2d, ZeroPadding3d,
};
pub use loss::{
    ALL_LOSSES, AbsoluteError, CategoricalHinge, CosineSimilarity, Hinge, Huber, KlDivergence, LogCosh, LogLoss,
    LogPoisson, Loss, MeanAbsolutePercentageError, MeanSquaredError, MeanSquaredLogarithmicError, Poisson, Reduction,
    SigmoidCrossEntropy, SoftmaxCrossEntropy, SparseSoftmaxCrossEntropy, SquaredHinge,
};
pub use regularizer::Regularizer;
pub use size::{Size1d, Size2d, Size3d};
