//! `preprocess_input`: pixels from 0 to 255 as the numbers that a network was trained with.

use estimand_graph::Tensor;
use estimand_nn::{Lambda, Rescaling};
use estimand_tensor::{Array, DType, Error, Result};

use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

/// How pixels from 0 to 255 become the input of a network: the modes of Keras' `preprocess_input`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preprocessing {
    /// From -1 to 1: InceptionV3, MobileNetV2, Xception.
    Tf,
    /// From 0 to 1, then less the mean of ImageNet's channels and divided by their deviation:
    /// DenseNet121.
    Torch,
    /// The channels in the order blue, green, red, less their means: ResNet50, VGG16.
    Caffe,
    /// As they are, because the network scales pixels itself: EfficientNetB0.
    Unchanged,
}

const MEANS: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATIONS: [f32; 3] = [0.229, 0.224, 0.225];
/// Blue, green, red, for pixels up to 255.
const CAFFE_MEANS: [f32; 3] = [103.939, 116.779, 123.68];

/// Images that [`preprocess_input`] takes: an [`Array`], a [`Tensor`] (in a model function, or a
/// dataset with [`MapGraph`](crate::MapGraph)), or a [`KerasTensor`].
pub trait Images {
    /// Images of the same kind; a mistake of tensors shows when they are used.
    type Preprocessed;

    /// Scales the images.
    #[track_caller]
    fn preprocess(&self, mode: Preprocessing) -> Self::Preprocessed;
}

/// Scales images with three channels as their last axis, as Keras'
/// `imagenet_utils.preprocess_input` does. The result has the dtype f32.
///
/// ```
/// use estimand::keras::applications::{self, Preprocessing};
/// use estimand::prelude::*;
///
/// let pixel = Array::from_vec([1, 1, 3], vec![0u8, 51, 255])?;
/// let scaled = applications::preprocess_input(&pixel, Preprocessing::Tf)?;
/// assert_eq!(scaled.as_slice::<f32>()?, [-1.0, -0.6, 1.0]);
/// let same = applications::mobile_net_v2().preprocess_input(&pixel)?;
/// assert_eq!(same, scaled);
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn preprocess_input<I: Images>(images: &I, mode: Preprocessing) -> I::Preprocessed {
    images.preprocess(mode)
}

impl Images for Array {
    type Preprocessed = Result<Array>;

    fn preprocess(&self, mode: Preprocessing) -> Result<Array> {
        let has_channels = matches!(self.rank(), 3 | 4) && self.dims().last() == Some(&3);
        if mode != Preprocessing::Unchanged && !has_channels {
            let text = format!("the images have the shape {:?}; expected [height, width, 3]", self.dims());
            return Err(Error::shape(text).help("several images have the shape [images, height, width, 3]"));
        }
        let mut pixels: Vec<f32> = match self.dtype() {
            DType::F32 => self.as_slice::<f32>()?.to_vec(),
            _ => self.to_f64_vec()?.into_iter().map(|x| x as f32).collect(),
        };
        match mode {
            Preprocessing::Tf => pixels.iter_mut().for_each(|x| *x = *x / 127.5 - 1.0),
            Preprocessing::Torch => {
                for pixel in pixels.chunks_exact_mut(3) {
                    for ((x, mean), deviation) in pixel.iter_mut().zip(MEANS).zip(DEVIATIONS) {
                        *x = (*x / 255.0 - mean) / deviation;
                    }
                }
            }
            Preprocessing::Caffe => {
                for pixel in pixels.chunks_exact_mut(3) {
                    pixel.reverse();
                    pixel.iter_mut().zip(CAFFE_MEANS).for_each(|(x, mean)| *x -= mean);
                }
            }
            Preprocessing::Unchanged => {}
        }
        Array::from_vec(self.dims(), pixels)
    }
}

impl Images for Tensor {
    type Preprocessed = Tensor;

    fn preprocess(&self, mode: Preprocessing) -> Tensor {
        let last = self.shape().dims().last().and_then(|dim| dim.known());
        if mode != Preprocessing::Unchanged && (!matches!(self.rank(), 3 | 4) || last != Some(3)) {
            let text = format!("the images are {}; expected [height, width, 3]", self.describe());
            return self.graph().error(Error::shape(text).help("several images are [images, height, width, 3]"));
        }
        let x = if self.dtype() == DType::F32 { self.clone() } else { self.cast(DType::F32) };
        let constant = |values: [f32; 3]| x.graph().constant(values);
        match mode {
            Preprocessing::Tf => &x / 127.5 - 1.0,
            Preprocessing::Torch => (&x / 255.0 - constant(MEANS)) / constant(DEVIATIONS),
            Preprocessing::Caffe => x.reverse(&[-1]) - constant(CAFFE_MEANS),
            Preprocessing::Unchanged => x,
        }
    }
}

/// A layer of its own: [`Rescaling`], which files of Keras can hold, or a function that reverses
/// channels, which they cannot.
impl Images for KerasTensor {
    type Preprocessed = KerasTensor;

    fn preprocess(&self, mode: Preprocessing) -> KerasTensor {
        match mode {
            Preprocessing::Tf => Rescaling::new(1.0 / 127.5).offset(-1.0).on(self),
            Preprocessing::Torch => {
                let [means, deviations] = [MEANS, DEVIATIONS].map(|values| values.map(f64::from));
                let offsets: Vec<f64> = means.iter().zip(deviations).map(|(mean, by)| -mean / by).collect();
                Rescaling::per_channel(deviations.map(|by| 1.0 / (255.0 * by))).offsets(offsets).on(self)
            }
            Preprocessing::Caffe => Lambda::new(move |x| x[0].preprocess(mode)).on(self),
            Preprocessing::Unchanged => self.clone(),
        }
    }
}
