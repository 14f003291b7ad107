//! Networks for images that people fine-tune: `keras.applications`.
//!
//! Layers have Keras' names, order and shapes, so that Keras' weight files fit. One file holds one
//! network.

mod mobile_net_v2;
mod resnet50;
mod vgg16;

use estimand_nn::{Dense, GlobalAvgPool2d, GlobalMaxPool2d};
use estimand_tensor::{Dim, Error, Result};

use super::model::Model;
use super::symbol::{Functional, Input, KerasTensor};

/// A network for images with its options: Keras' arguments. [`build`](Application::build) makes the
/// model, with random weights.
///
/// ```
/// use estimand::keras::applications::{self, Pooling};
///
/// let base = applications::mobile_net_v2().input_shape([96, 96, 3]).include_top(false).pooling(Pooling::Avg).build()?;
/// assert_eq!(base.count_params(), 2_257_984);
/// assert_eq!(base.output_shapes()[0].to_string(), "[batch, 1280]");
/// # Ok::<(), estimand::prelude::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Application {
    network: Network,
    include_top: bool,
    input_shape: [usize; 3],
    pooling: Option<Pooling>,
    classes: usize,
    softmax: bool,
    alpha: f64,
}

/// What becomes of the last images of a network without its top.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pooling {
    /// Their mean over height and width.
    Avg,
    /// Their maximum.
    Max,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    MobileNetV2,
    ResNet50,
    Vgg16,
}

/// MobileNetV2: 3.5 million weights.
pub fn mobile_net_v2() -> Application {
    Application::new(Network::MobileNetV2)
}

/// ResNet50: 25.6 million weights.
pub fn resnet50() -> Application {
    Application::new(Network::ResNet50)
}

/// VGG16: 138 million weights.
pub fn vgg16() -> Application {
    Application::new(Network::Vgg16)
}

impl Application {
    fn new(network: Network) -> Application {
        Application {
            network,
            include_top: true,
            input_shape: [224, 224, 3],
            pooling: None,
            classes: 1000,
            softmax: true,
            alpha: 1.0,
        }
    }

    /// Whether the network ends with its classifier. By default it does.
    pub fn include_top(mut self, include_top: bool) -> Application {
        self.include_top = include_top;
        self
    }

    /// Height, width and channels of an image. By default 224 x 224 x 3.
    pub fn input_shape(mut self, shape: [usize; 3]) -> Application {
        self.input_shape = shape;
        self
    }

    /// What becomes of the last images without the top. By default they are the result.
    pub fn pooling(mut self, pooling: Pooling) -> Application {
        self.pooling = Some(pooling);
        self
    }

    /// The number of classes of the top. By default 1000, those of ImageNet.
    pub fn classes(mut self, classes: usize) -> Application {
        self.classes = classes;
        self
    }

    /// Whether the top ends with probabilities. By default it does; otherwise with logits.
    pub fn softmax(mut self, softmax: bool) -> Application {
        self.softmax = softmax;
        self
    }

    /// The width of MobileNetV2: a factor of the number of filters. By default 1.
    pub fn alpha(mut self, alpha: f64) -> Application {
        self.alpha = alpha;
        self
    }

    /// Makes the model. Its weights are random; [`load_weights`](Model::load_weights) reads those
    /// of a file.
    #[track_caller]
    pub fn build(&self) -> Result<Model> {
        self.check()?;
        let input = Input::new(self.input_shape).name("input_1").tensor();
        let (name, images) = match self.network {
            Network::MobileNetV2 => {
                (mobile_net_v2::name(self.alpha, self.input_shape), mobile_net_v2::images(&input, self.alpha))
            }
            Network::ResNet50 => ("resnet50".to_string(), resnet50::images(&input)),
            Network::Vgg16 => ("vgg16".to_string(), vgg16::images(&input)),
        };
        let output = match (self.include_top, self.network, self.pooling) {
            (true, Network::Vgg16, _) => self.classifier(&vgg16::top(&images)),
            (true, Network::ResNet50, _) => self.classifier(&GlobalAvgPool2d::new().name("avg_pool").on(&images)),
            (true, Network::MobileNetV2, _) => self.classifier(&GlobalAvgPool2d::new().on(&images)),
            (false, Network::ResNet50, Some(Pooling::Avg)) => GlobalAvgPool2d::new().name("avg_pool").on(&images),
            (false, Network::ResNet50, Some(Pooling::Max)) => GlobalMaxPool2d::new().name("max_pool").on(&images),
            (false, _, Some(Pooling::Avg)) => GlobalAvgPool2d::new().on(&images),
            (false, _, Some(Pooling::Max)) => GlobalMaxPool2d::new().on(&images),
            (false, _, None) => images,
        };
        Model::named(&name, &input, &output)
    }

    fn classifier(&self, features: &KerasTensor) -> KerasTensor {
        let dense = Dense::new(self.classes).name("predictions");
        if self.softmax { dense.softmax().on(features) } else { dense.on(features) }
    }

    fn check(&self) -> Result<()> {
        let [height, width, channels] = self.input_shape;
        if height < 32 || width < 32 || channels == 0 {
            let text =
                format!("the input shape is {:?}; expected at least 32 x 32 pixels and 1 channel", self.input_shape);
            return Err(Error::config(text));
        }
        if self.include_top && self.pooling.is_some() {
            let text = format!("pooling is {:?}, but the network ends with its classifier", self.pooling);
            return Err(Error::config(text).help("call .include_top(false)"));
        }
        if self.alpha != 1.0 && self.network != Network::MobileNetV2 {
            return Err(Error::config(format!("alpha is {}, which {:?} does not have", self.alpha, self.network)));
        }
        if !(self.alpha > 0.0 && self.alpha <= 8.0) {
            return Err(Error::config(format!("alpha is {}; expected a number from 0.1 to 8", self.alpha)));
        }
        match self.classes {
            0 => Err(Error::config("there are 0 classes; expected at least 1")),
            _ => Ok(()),
        }
    }
}

/// The channels of images.
fn channels(x: &KerasTensor) -> usize {
    x.shape().dims().last().and_then(|dim: &Dim| dim.known()).unwrap_or(0)
}
