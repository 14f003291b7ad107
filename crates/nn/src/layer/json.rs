//! Layers from JSON.

use std::sync::Arc;

use estimand_tensor::Result;

use super::*;
use crate::activation::{ActivationLayer, identity};
use crate::config::{self, CustomObjects, Described, Field, Json, Node, Read};

/// A class with its reader.
const fn class<L: Layer + Described + 'static>() -> (&'static str, Read<Box<dyn Layer>>) {
    (L::CLASS, |config| config::read::<L>(config).map(|layer| Box::new(layer) as Box<dyn Layer>))
}

/// Every class that can be read.
const CLASSES: [(&str, Read<Box<dyn Layer>>); 99] = [
    class::<ActivationLayer>(),
    class::<Add>(),
    class::<AdditiveAttention>(),
    class::<AlphaDropout>(),
    class::<Attention>(),
    class::<Average>(),
    class::<AvgPool1d>(),
    class::<AvgPool2d>(),
    class::<AvgPool3d>(),
    class::<BatchNorm>(),
    class::<Bidirectional>(),
    class::<CategoryEncoding>(),
    class::<CenterCrop>(),
    class::<Concat>(),
    class::<Conv1d>(),
    class::<Conv1dTranspose>(),
    class::<Conv2d>(),
    class::<Conv2dTranspose>(),
    class::<Conv3d>(),
    class::<Conv3dTranspose>(),
    class::<ConvLstm1d>(),
    class::<ConvLstm2d>(),
    class::<ConvLstm3d>(),
    class::<Cropping1d>(),
    class::<Cropping2d>(),
    class::<Cropping3d>(),
    class::<Dense>(),
    class::<DepthwiseConv1d>(),
    class::<DepthwiseConv2d>(),
    class::<Discretization>(),
    class::<Dot>(),
    class::<Dropout>(),
    class::<Elu>(),
    class::<Embedding>(),
    class::<Flatten>(),
    class::<GaussianDropout>(),
    class::<GaussianNoise>(),
    class::<GlobalAvgPool1d>(),
    class::<GlobalAvgPool2d>(),
    class::<GlobalAvgPool3d>(),
    class::<GlobalMaxPool1d>(),
    class::<GlobalMaxPool2d>(),
    class::<GlobalMaxPool3d>(),
    class::<GroupNorm>(),
    class::<Gru>(),
    class::<GruCell>(),
    class::<HashedCrossing>(),
    class::<Hashing>(),
    ("Identity", |config| identity(config).map(|layer| Box::new(layer) as Box<dyn Layer>)),
    class::<IntegerLookup>(),
    class::<LayerNorm>(),
    class::<LeakyRelu>(),
    class::<Lstm>(),
    class::<LstmCell>(),
    class::<Masking>(),
    class::<MaxPool1d>(),
    class::<MaxPool2d>(),
    class::<MaxPool3d>(),
    class::<Maximum>(),
    class::<Minimum>(),
    class::<MultiHeadAttention>(),
    class::<Multiply>(),
    class::<Normalization>(),
    class::<PRelu>(),
    class::<Permute>(),
    class::<RandomBrightness>(),
    class::<RandomContrast>(),
    class::<RandomCrop>(),
    class::<RandomFlip>(),
    class::<RandomRotation>(),
    class::<RandomTranslation>(),
    class::<RandomZoom>(),
    class::<Relu>(),
    class::<RepeatVector>(),
    class::<Rescaling>(),
    class::<Reshape>(),
    class::<Resizing>(),
    class::<Rnn>(),
    class::<SeparableConv1d>(),
    class::<SeparableConv2d>(),
    class::<SimpleRnn>(),
    class::<SimpleRnnCell>(),
    class::<Softmax>(),
    class::<SpatialDropout1d>(),
    class::<SpatialDropout2d>(),
    class::<SpatialDropout3d>(),
    class::<StackedRnnCells>(),
    class::<StringLookup>(),
    class::<Subtract>(),
    class::<TextVectorization>(),
    class::<ThresholdedRelu>(),
    class::<TimeDistributed>(),
    class::<UnitNormalization>(),
    class::<UpSampling1d>(),
    class::<UpSampling2d>(),
    class::<UpSampling3d>(),
    class::<ZeroPadding1d>(),
    class::<ZeroPadding2d>(),
    class::<ZeroPadding3d>(),
];

/// The class of a layer that is a function.
const LAMBDA: &str = "Lambda";

/// Reads a layer from JSON: what [`Layer::to_json`] writes, or `keras.layers.serialize` of Keras 2
/// or 3. Classes that are not of this crate are looked up in `objects`.
pub fn from_json(text: &str, objects: &CustomObjects) -> Result<Box<dyn Layer>> {
    let document = config::parse(text)?;
    read(&Node::root(&document, objects))
}

/// Reads a layer at a place of a document.
pub fn read(node: &Node<'_>) -> Result<Box<dyn Layer>> {
    let is_ours = || node.custom_objects().find::<Read<Box<dyn Layer>>>(LAMBDA).is_none();
    if node.value().get("class_name").is_some_and(|class| class == LAMBDA) && is_ours() {
        let name = node.field("config")?.get("name")?.map_or(Ok(LAMBDA), |name| name.text())?;
        let error = node.refuse(format!("the layer `{name}` is a Lambda: a function of Python, which cannot be read"));
        return Err(error.help(
            "write a layer that computes the same, with the CLASS \"Lambda\", and add it with CustomObjects::layer",
        ));
    }
    config::read_object(node, "layer", &CLASSES)
}

impl Field for Arc<dyn Layer> {
    fn write(&self) -> Result<Json> {
        self.to_json()
    }

    fn read(node: &Node<'_>) -> Result<Arc<dyn Layer>> {
        read(node).map(Arc::from)
    }
}

/// A boxed layer, such as one from JSON, is a layer.
impl Layer for Box<dyn Layer> {
    fn kind(&self) -> &'static str {
        (**self).kind()
    }

    fn config(&self) -> &Config {
        (**self).config()
    }

    fn build(&self, build: &mut Build<'_>) {
        (**self).build(build);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        (**self).call(call)
    }

    fn call_all(&self, call: &LayerCall<'_>) -> Vec<Tensor> {
        (**self).call_all(call)
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        (**self).n_inputs()
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        (**self).named_inputs()
    }

    fn supports_masking(&self) -> bool {
        (**self).supports_masking()
    }

    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        (**self).compute_mask(inputs)
    }

    fn to_json(&self) -> Result<Json> {
        (**self).to_json()
    }
}
