//! Layers: configuration as plain values, weights in the graph.
//!
//! A layer has two parts: `build` makes its variables for an input shape, `call` computes with
//! them. `apply` does both, so every `apply` makes new variables; [`Shared`] builds once and calls
//! many times. This file defines the `Layer` trait. `build` holds the contexts passed to the two
//! parts, `inputs` what a call passes, `name` generates layer names, and the other files hold one
//! layer each. `merge` has the layers that join several tensors.

mod affine;
mod attention;
mod batch_norm;
mod bordered;
mod build;
mod conv1d;
mod conv1d_transpose;
mod conv2d;
mod conv2d_transpose;
mod conv3d;
mod conv3d_transpose;
mod cropping;
mod dense;
mod depthwise_conv1d;
mod depthwise_conv2d;
mod dropout;
mod embedding;
mod flatten;
mod global_pool;
mod group_norm;
mod inputs;
mod json;
mod lambda;
mod layer_norm;
mod masking;
mod merge;
mod multi_head_attention;
pub(crate) mod name;
mod noise;
mod one_number;
mod permute;
mod pool1d;
mod pool2d;
mod pool3d;
mod prelu;
mod preprocessing;
mod rectifier;
mod recurrent;
mod repeat_vector;
mod reshape;
mod separable_conv1d;
mod separable_conv2d;
mod shared;
mod softmax;
mod spatial_dropout;
mod steps;
mod time_distributed;
mod transposed;
mod unit_norm;
mod up_sampling;
mod volume;
mod weight_options;
mod window;
mod zero_padding;

use std::fmt;
use std::ops::RangeInclusive;
use std::panic::Location;

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use crate::activation::Activation;
use crate::config::{Fields, Json};
pub use attention::{AdditiveAttention, Attention};
pub use batch_norm::BatchNorm;
use build::BuiltLayer;
pub(crate) use build::resolve_axis;
pub use build::{Build, LayerCall};
pub use conv1d::Conv1d;
pub use conv1d_transpose::Conv1dTranspose;
pub use conv2d::Conv2d;
pub use conv2d_transpose::Conv2dTranspose;
pub use conv3d::Conv3d;
pub use conv3d_transpose::Conv3dTranspose;
pub use cropping::{Cropping1d, Cropping2d, Cropping3d};
pub use dense::Dense;
pub use depthwise_conv1d::DepthwiseConv1d;
pub use depthwise_conv2d::DepthwiseConv2d;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use flatten::Flatten;
pub use global_pool::{
    GlobalAvgPool1d, GlobalAvgPool2d, GlobalAvgPool3d, GlobalMaxPool1d, GlobalMaxPool2d, GlobalMaxPool3d,
};
pub use group_norm::GroupNorm;
pub use inputs::{AsInputs, LayerInputs};
pub use json::{from_json, read};
pub use lambda::Lambda;
pub use layer_norm::LayerNorm;
pub use masking::Masking;
pub use merge::{Add, Average, Concat, Dot, Maximum, Minimum, Multiply, Subtract};
pub use multi_head_attention::MultiHeadAttention;
pub use noise::{AlphaDropout, GaussianDropout, GaussianNoise};
pub use permute::Permute;
pub use pool1d::{AvgPool1d, MaxPool1d};
pub use pool2d::{AvgPool2d, MaxPool2d};
pub use pool3d::{AvgPool3d, MaxPool3d};
pub use prelu::PRelu;
pub use preprocessing::{
    CategoryEncoding, CenterCrop, Discretization, Factor, FillMode, Flip, HashedCrossing, Hashing, IntegerLookup,
    Normalization, OutputMode, RandomBrightness, RandomContrast, RandomCrop, RandomFlip, RandomRotation,
    RandomTranslation, RandomZoom, Rescaling, Resizing, Split, Standardize, StringLookup, TextVectorization,
};
pub use rectifier::{Elu, LeakyRelu, Relu, ThresholdedRelu};
pub use recurrent::{
    Bidirectional, CellOutputs, ConvLstm, ConvLstm1d, ConvLstm2d, ConvLstm3d, Gru, GruCell, Lstm, LstmCell, MergeMode,
    Reading, RecurrentLayer, Rnn, RnnCell, SimpleRnn, SimpleRnnCell, StackedRnnCells,
};
pub use repeat_vector::RepeatVector;
pub use reshape::Reshape;
pub use separable_conv1d::SeparableConv1d;
pub use separable_conv2d::SeparableConv2d;
pub use shared::Shared;
pub use softmax::Softmax;
pub use spatial_dropout::{SpatialDropout1d, SpatialDropout2d, SpatialDropout3d};
pub use time_distributed::TimeDistributed;
pub use unit_norm::UnitNormalization;
pub use up_sampling::{UpSampling1d, UpSampling2d, UpSampling3d};
pub use zero_padding::{ZeroPadding1d, ZeroPadding2d, ZeroPadding3d};

/// A layer: a step of a model that may have weights.
///
/// A custom layer needs `kind`, `config` and `call`, and `build` if it has weights:
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::{Graph, Initializer, Tensor};
/// use estimand_nn::layer::{Build, Config, Layer, LayerCall};
///
/// #[derive(Clone, Debug, Default)]
/// struct Scale(Config);
///
/// impl Layer for Scale {
///     fn kind(&self) -> &'static str {
///         "scale"
///     }
///     fn config(&self) -> &Config {
///         &self.0
///     }
///     fn build(&self, build: &mut Build<'_>) {
///         build.weight("factor", &[build.channels()], Initializer::Ones, None);
///     }
///     fn call(&self, call: &LayerCall<'_>) -> Tensor {
///         call.input() * call.weight("factor")
///     }
/// }
///
/// let g = Graph::new();
/// let y = Scale::default().apply(&g.constant([1.0f32, 2.0]).expand_dims(0));
/// assert_eq!(y.eval()?.as_slice::<f32>()?, [1.0, 2.0]);
/// assert!(g.body().variables().find("scale/factor").is_ok());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub trait Layer: fmt::Debug + Send + Sync {
    /// The kind of layer in TensorFlow's words, such as `dense`. Layers without a name are called
    /// `dense`, `dense_1`, ...
    fn kind(&self) -> &'static str;

    /// The layer's name and flags.
    fn config(&self) -> &Config;

    /// Makes the variables. By default there are none.
    #[track_caller]
    fn build(&self, build: &mut Build<'_>) {
        let _ = build;
    }

    /// Computes the result from the inputs and the variables.
    #[track_caller]
    fn call(&self, call: &LayerCall<'_>) -> Tensor;

    /// Computes all results, for a layer of a Keras model that has several, such as a recurrent
    /// layer with `return_state`. By default that of `call` alone.
    #[track_caller]
    fn call_all(&self, call: &LayerCall<'_>) -> Vec<Tensor> {
        vec![self.call(call)]
    }

    /// The number of tensors that it is applied to. By default one.
    fn n_inputs(&self) -> RangeInclusive<usize> {
        1..=1
    }

    /// The names of what a call may pass besides the tensors. By default there are none.
    fn named_inputs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the layer hands the mask of its input on. By default it does not, and layers after
    /// it see no mask.
    fn supports_masking(&self) -> bool {
        false
    }

    /// The mask of the result: booleans `[batch, time]`, false for steps that do not count. By
    /// default that of the first input, if the layer supports masking.
    #[track_caller]
    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.mask_of(0).filter(|_| self.supports_masking()).cloned()
    }

    /// The layer as JSON, with the keys of Keras; [`from_json`] reads it back. A layer of one's own
    /// implements [`Described`](crate::config::Described) and calls
    /// [`config::write`](crate::config::write). By default it cannot be written.
    fn to_json(&self) -> Result<Json> {
        let text = format!("the layer `{}` cannot be written as JSON", self.kind());
        Err(Error::unsupported(text).help("implement `Described` for it, and `to_json` with `config::write`"))
    }

    /// Makes the variables and computes the result. The graph's mode decides whether this is
    /// training, unless the [`LayerInputs`] do.
    #[track_caller]
    fn apply(&self, inputs: &dyn AsInputs) -> Tensor {
        let inputs = inputs.as_inputs();
        if let Some(error) = inputs.check(self) {
            return error;
        }
        let _line = inputs.first().graph().line(Location::caller(), file!());
        BuiltLayer::new(self, &inputs).call(self, &inputs)
    }
}

/// The options that all layers have.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The name of the scope of the layer's variables. By default it is generated from the kind.
    pub name: Option<String>,
    /// Whether optimizers change the layer's weights. By default they do.
    pub trainable: bool,
}

impl Config {
    /// A generated name, trainable.
    pub const DEFAULT: Config = Config { name: None, trainable: true };

    /// Writes or reads the fields that all layers have.
    #[must_use]
    pub fn fields(&self, fields: &mut Fields<'_>) -> Config {
        self.fields_of(fields, "float32", &["float32"])
    }

    /// Writes or reads the fields that all layers have, for a layer whose result may be of another
    /// dtype.
    #[must_use]
    pub fn fields_of(&self, fields: &mut Fields<'_>, dtype: &str, known: &[&str]) -> Config {
        let config =
            Config { name: fields.optional("name", &self.name), trainable: fields.value("trainable", &self.trainable) };
        fields.dtype("dtype", dtype, known);
        // Keras writes the shape of the model's input into its first layer.
        for key in ["batch_input_shape", "batch_shape", "build_input_shape"] {
            fields.ignored(key);
        }
        config
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::DEFAULT
    }
}

/// Where Keras has its layers.
pub(crate) const MODULE: &str = "keras.layers";

/// Every layer of this crate, in its simplest form.
pub const ALL_LAYERS: [fn() -> Box<dyn Layer>; 98] = [
    || Box::new(Activation::Relu),
    || Box::new(Add::new()),
    || Box::new(AdditiveAttention::new()),
    || Box::new(AlphaDropout::new(0.5)),
    || Box::new(Attention::new()),
    || Box::new(Average::new()),
    || Box::new(AvgPool1d::new(2)),
    || Box::new(AvgPool2d::new(2)),
    || Box::new(AvgPool3d::new(2)),
    || Box::new(BatchNorm::new()),
    || Box::new(Bidirectional::new(Lstm::new(2))),
    || Box::new(CategoryEncoding::new(5)),
    || Box::new(CenterCrop::new(2, 2)),
    || Box::new(Concat::new()),
    || Box::new(Conv1d::new(3, 2)),
    || Box::new(Conv1dTranspose::new(3, 2)),
    || Box::new(Conv2d::new(3, 2)),
    || Box::new(Conv2dTranspose::new(3, 2)),
    || Box::new(Conv3d::new(3, 2)),
    || Box::new(Conv3dTranspose::new(3, 2)),
    || Box::new(ConvLstm1d::new(3, 2)),
    || Box::new(ConvLstm2d::new(3, 2)),
    || Box::new(ConvLstm3d::new(3, 2)),
    || Box::new(Cropping1d::new(1)),
    || Box::new(Cropping2d::new(1)),
    || Box::new(Cropping3d::new(1)),
    || Box::new(Dense::new(3)),
    || Box::new(DepthwiseConv1d::new(2)),
    || Box::new(DepthwiseConv2d::new(2)),
    || Box::new(Discretization::new([0.0, 0.5])),
    || Box::new(Dot::new(-1)),
    || Box::new(Dropout::new(0.5)),
    || Box::new(Elu::new(1.0)),
    || Box::new(Embedding::new(5, 3)),
    || Box::new(Flatten::new()),
    || Box::new(GaussianDropout::new(0.5)),
    || Box::new(GaussianNoise::new(0.1)),
    || Box::new(GlobalAvgPool1d::new()),
    || Box::new(GlobalAvgPool2d::new()),
    || Box::new(GlobalAvgPool3d::new()),
    || Box::new(GlobalMaxPool1d::new()),
    || Box::new(GlobalMaxPool2d::new()),
    || Box::new(GlobalMaxPool3d::new()),
    || Box::new(GroupNorm::new(1)),
    || Box::new(Gru::new(3)),
    || Box::new(GruCell::new(3)),
    || Box::new(HashedCrossing::new(5)),
    || Box::new(Hashing::new(5)),
    || Box::new(IntegerLookup::new().vocabulary([1, 3])),
    || Box::new(LayerNorm::new()),
    || Box::new(LeakyRelu::new(0.3)),
    || Box::new(Lstm::new(3)),
    || Box::new(LstmCell::new(3)),
    || Box::new(Masking::new(0.0)),
    || Box::new(MaxPool1d::new(2)),
    || Box::new(MaxPool2d::new(2)),
    || Box::new(MaxPool3d::new(2)),
    || Box::new(Maximum::new()),
    || Box::new(Minimum::new()),
    || Box::new(MultiHeadAttention::new(2, 3)),
    || Box::new(Multiply::new()),
    || Box::new(Normalization::new().moments([0.5], [4.0])),
    || Box::new(PRelu::new()),
    || Box::new(Permute::new([2, 1])),
    || Box::new(RandomBrightness::new(0.2)),
    || Box::new(RandomContrast::new(0.2)),
    || Box::new(RandomCrop::new(2, 3)),
    || Box::new(RandomFlip::new(Flip::Horizontal)),
    || Box::new(RandomRotation::new(0.1)),
    || Box::new(RandomTranslation::new(0.2, 0.3)),
    || Box::new(RandomZoom::new(0.2)),
    || Box::new(Relu::new()),
    || Box::new(RepeatVector::new(2)),
    || Box::new(Rescaling::new(0.5)),
    || Box::new(Reshape::new([-1])),
    || Box::new(Resizing::new(3, 5)),
    || Box::new(Rnn::new(LstmCell::new(3))),
    || Box::new(SeparableConv1d::new(3, 2)),
    || Box::new(SeparableConv2d::new(3, 2)),
    || Box::new(SimpleRnn::new(3)),
    || Box::new(SimpleRnnCell::new(3)),
    || Box::new(Softmax::new()),
    || Box::new(SpatialDropout1d::new(0.5)),
    || Box::new(SpatialDropout2d::new(0.5)),
    || Box::new(SpatialDropout3d::new(0.5)),
    || Box::new(StackedRnnCells::new().cell(LstmCell::new(3)).cell(GruCell::new(2))),
    || Box::new(StringLookup::new().vocabulary(["a", "b"])),
    || Box::new(Subtract::new()),
    || Box::new(TextVectorization::new().vocabulary(["a", "b"]).output_sequence_length(3)),
    || Box::new(ThresholdedRelu::new(0.5)),
    || Box::new(TimeDistributed::new(Dense::new(3))),
    || Box::new(UnitNormalization::new()),
    || Box::new(UpSampling1d::new(2)),
    || Box::new(UpSampling2d::new(2)),
    || Box::new(UpSampling3d::new(2)),
    || Box::new(ZeroPadding1d::new(1)),
    || Box::new(ZeroPadding2d::new(1)),
    || Box::new(ZeroPadding3d::new(1)),
];

/// The setters of a layer with a field `config`.
macro_rules! config_setters {
    ($layer:ty) => {
        impl $layer {
            /// The name of the variables' scope. By default it is generated from the kind: `dense`,
            /// `dense_1`, ...
            pub fn name(mut self, name: &str) -> Self {
                self.config.name = Some(name.to_string());
                self
            }

            /// Whether optimizers change the layer's weights. By default they do.
            pub fn trainable(mut self, trainable: bool) -> Self {
                self.config.trainable = trainable;
                self
            }
        }
    };
}
pub(crate) use config_setters;
