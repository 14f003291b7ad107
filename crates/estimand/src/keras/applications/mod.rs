//! Networks for images that people fine-tune: `keras.applications`.
//!
//! Layers have Keras' names, order and shapes, so that Keras' weight files fit. One file holds one
//! network; `network` lists them with the facts that differ. `weight_files` names the files that
//! Keras publishes, `cache` finds or fetches them, `preprocess` scales images and `decode` names
//! classes.

mod cache;
mod decode;
mod dense_net121;
mod efficient_net_b0;
mod inception_v3;
mod mobile_net_v2;
mod network;
mod preprocess;
mod resnet50;
mod vgg16;
mod weight_files;
mod xception;

use std::path::PathBuf;

use estimand_nn::Activation;
use estimand_tensor::{Dim, Error, Result, warn};

use super::call::Functional;
use super::input::Input;
use super::model::Model;
use super::symbol::KerasTensor;
pub use cache::Cache;
pub use decode::{ClassNames, Decoded, decode_predictions};
use network::Network;
pub use preprocess::{Images, Preprocessing, preprocess_input};

/// A network for images with its options: Keras' arguments. [`build`](Application::build) makes the
/// model.
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
    classifier_activation: Activation,
    alpha: f64,
    weights: Option<Weights>,
    cache: Cache,
}

/// What becomes of the last images of a network without its top.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pooling {
    /// Their mean over height and width.
    Avg,
    /// Their maximum.
    Max,
}

/// Where the weights of a network come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Weights {
    /// Those of ImageNet, in the file that Keras publishes. It is looked for in a [`Cache`], or
    /// fetched into it.
    ///
    /// The file must have the checksum that Keras knows. Keras knows none of MobileNetV2's files.
    ImageNet,
    /// Those of a file: Keras' `.h5`, `.weights.h5` or `.keras`, or a checkpoint of TensorFlow.
    File(PathBuf),
}

/// DenseNet121: 8.1 million weights.
pub fn dense_net121() -> Application {
    Application::new(Network::DenseNet121)
}

/// EfficientNetB0: 5.3 million weights. It scales pixels from 0 to 255 itself.
pub fn efficient_net_b0() -> Application {
    Application::new(Network::EfficientNetB0)
}

/// InceptionV3: 23.9 million weights.
pub fn inception_v3() -> Application {
    Application::new(Network::InceptionV3)
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

/// Xception: 22.9 million weights.
pub fn xception() -> Application {
    Application::new(Network::Xception)
}

impl Application {
    fn new(network: Network) -> Application {
        let size = network.default_size();
        Application {
            network,
            include_top: true,
            input_shape: [size, size, 3],
            pooling: None,
            classes: 1000,
            classifier_activation: Activation::Softmax,
            alpha: 1.0,
            weights: None,
            cache: Cache::default(),
        }
    }

    /// Whether the network ends with its classifier. By default it does.
    pub fn include_top(mut self, include_top: bool) -> Application {
        self.include_top = include_top;
        self
    }

    /// Height, width and channels of an image. By default 224 x 224 x 3, and 299 x 299 x 3 for
    /// InceptionV3 and Xception.
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

    /// The activation of the top. By default `Softmax`; `Linear` gives logits.
    pub fn classifier_activation(mut self, activation: Activation) -> Application {
        self.classifier_activation = activation;
        self
    }

    /// The width of MobileNetV2: a factor of the number of filters. By default 1.
    pub fn alpha(mut self, alpha: f64) -> Application {
        self.alpha = alpha;
        self
    }

    /// Where the weights come from. By default they are random.
    ///
    /// ```no_run
    /// use estimand::keras::applications::{self, Weights};
    ///
    /// let trained = applications::xception().weights(Weights::ImageNet).build()?;
    /// let mine = applications::resnet50().classes(3).weights(Weights::File("mine.weights.h5".into())).build()?;
    /// # Ok::<(), estimand::prelude::Error>(())
    /// ```
    pub fn weights(mut self, weights: Weights) -> Application {
        self.weights = Some(weights);
        self
    }

    /// The folder of ImageNet's weights. By default Keras' own, `~/.keras/models`.
    pub fn cache(mut self, cache: Cache) -> Application {
        self.cache = cache;
        self
    }

    /// How pixels from 0 to 255 become the input of this network.
    pub fn preprocessing(&self) -> Preprocessing {
        self.network.preprocessing()
    }

    /// Scales images as this network wants them: [`preprocess_input`] with its mode.
    #[track_caller]
    pub fn preprocess_input<I: Images>(&self, images: &I) -> I::Preprocessed {
        images.preprocess(self.preprocessing())
    }

    /// Makes the model.
    #[track_caller]
    pub fn build(&self) -> Result<Model> {
        self.check()?;
        let input = Input::new(self.input_shape).name("input_1").tensor();
        let is_imagenet = self.weights == Some(Weights::ImageNet);
        let images = self.network.images(&input, self.alpha, is_imagenet);
        let output = match (self.include_top, self.pooling) {
            (true, _) => {
                let (features, dense) = self.network.top(&images, self.classes);
                dense.activation(self.classifier_activation).name("predictions").on(&features)
            }
            (false, Some(pooling)) => self.network.pooled(&images, pooling),
            (false, None) => images,
        };
        let mut model = Model::named(&self.network.name(self.alpha, self.rows()), &input, &output)?;
        match &self.weights {
            None => {}
            Some(Weights::File(path)) => model.load_weights(path)?,
            Some(Weights::ImageNet) => {
                let file = self.network.weight_file(self.include_top, self.alpha, self.rows());
                if file.checksum.is_none() {
                    warn!("Keras knows no checksum of {}: what the server sends is not checked", file.name);
                }
                model.load_weights(self.cache.find(&file.name, &file.address, file.checksum.as_ref())?)?;
            }
        }
        Ok(model)
    }

    /// TF: the rows in MobileNetV2's names. There are files of some sizes only; those of 224 serve
    /// for others.
    fn rows(&self) -> usize {
        let [height, width, _] = self.input_shape;
        let has_file = height == width && [96, 128, 160, 192, 224].contains(&height);
        if self.weights == Some(Weights::ImageNet) && !has_file { 224 } else { height }
    }

    fn check(&self) -> Result<()> {
        let ([height, width, channels], least) = (self.input_shape, self.network.least_size());
        if height < least || width < least || channels == 0 {
            let text = format!(
                "the input shape is {:?}; expected at least {least} x {least} pixels and 1 channel",
                self.input_shape
            );
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
        if self.classes == 0 {
            return Err(Error::config("there are 0 classes; expected at least 1"));
        }
        if self.weights == Some(Weights::ImageNet) { self.check_imagenet() } else { Ok(()) }
    }

    /// What ImageNet's weights fit.
    fn check_imagenet(&self) -> Result<()> {
        let with = "with ImageNet's weights";
        if self.input_shape[2] != 3 {
            return Err(Error::config(format!("images have {} channels; expected 3 {with}", self.input_shape[2])));
        }
        if self.include_top && self.classes != 1000 {
            let error = Error::config(format!("there are {} classes; expected 1000 {with}", self.classes));
            return Err(error.help("call .include_top(false) and add a classifier of your own"));
        }
        let size = match self.network {
            Network::MobileNetV2 => self.rows(),
            _ => self.network.default_size(),
        };
        if self.include_top && self.input_shape != [size, size, 3] {
            let text = format!("the input shape is {:?}; expected {:?} {with}", self.input_shape, [size, size, 3]);
            return Err(Error::config(text).help("call .include_top(false) for images of another size"));
        }
        if self.include_top && !matches!(self.classifier_activation, Activation::Softmax | Activation::Linear) {
            let text = format!("the classifier's activation is {:?} {with}", self.classifier_activation);
            return Err(Error::config(text).help("expected Softmax or Linear"));
        }
        if self.network == Network::MobileNetV2 && !weight_files::MOBILE_NET_V2_ALPHAS.contains(&self.alpha) {
            let known = weight_files::MOBILE_NET_V2_ALPHAS.map(|alpha| alpha.to_string()).join(", ");
            return Err(Error::config(format!("alpha is {}; expected one of {known} {with}", self.alpha)));
        }
        Ok(())
    }
}

/// The channels of images.
fn channels(x: &KerasTensor) -> usize {
    x.shape().dims().last().and_then(|dim: &Dim| dim.known()).unwrap_or(0)
}

/// The padding before a kernel with stride 2: images of an even size get less at the first side.
fn borders(x: &KerasTensor, kernel: usize) -> ((usize, usize), (usize, usize)) {
    let side = |axis: usize| {
        let size = x.shape().dims().get(axis).and_then(|dim| dim.known()).unwrap_or(0);
        (kernel / 2 - (1 - size % 2), kernel / 2)
    };
    (side(1), side(2))
}
