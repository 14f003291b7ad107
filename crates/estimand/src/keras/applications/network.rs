//! The networks and the facts that differ between them.

use estimand_nn::{Dense, GlobalAvgPool2d, GlobalMaxPool2d};

use super::preprocess::Preprocessing;
use super::weight_files::WeightFile;
use super::{
    Pooling, dense_net121, efficient_net_b0, inception_v3, mobile_net_v2, resnet50, vgg16, weight_files, xception,
};
use crate::keras::call::Functional;
use crate::keras::symbol::KerasTensor;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Network {
    DenseNet121,
    EfficientNetB0,
    InceptionV3,
    MobileNetV2,
    ResNet50,
    Vgg16,
    Xception,
}

impl Network {
    /// The height and width of the images that the network was made for.
    pub fn default_size(self) -> usize {
        match self {
            Network::InceptionV3 | Network::Xception => 299,
            Network::DenseNet121
            | Network::EfficientNetB0
            | Network::MobileNetV2
            | Network::ResNet50
            | Network::Vgg16 => 224,
        }
    }

    /// The least height and width.
    pub fn least_size(self) -> usize {
        match self {
            Network::InceptionV3 => 75,
            Network::Xception => 71,
            Network::DenseNet121
            | Network::EfficientNetB0
            | Network::MobileNetV2
            | Network::ResNet50
            | Network::Vgg16 => 32,
        }
    }

    /// The name of the model.
    pub fn name(self, alpha: f64, rows: usize) -> String {
        match self {
            Network::DenseNet121 => "densenet121".to_string(),
            Network::EfficientNetB0 => "efficientnetb0".to_string(),
            Network::InceptionV3 => "inception_v3".to_string(),
            Network::MobileNetV2 => format!("mobilenetv2_{alpha:.2}_{rows}"),
            Network::ResNet50 => "resnet50".to_string(),
            Network::Vgg16 => "vgg16".to_string(),
            Network::Xception => "xception".to_string(),
        }
    }

    pub fn preprocessing(self) -> Preprocessing {
        match self {
            Network::DenseNet121 => Preprocessing::Torch,
            Network::EfficientNetB0 => Preprocessing::Unchanged,
            Network::InceptionV3 | Network::MobileNetV2 | Network::Xception => Preprocessing::Tf,
            Network::ResNet50 | Network::Vgg16 => Preprocessing::Caffe,
        }
    }

    /// The file of ImageNet's weights.
    pub fn weight_file(self, include_top: bool, alpha: f64, rows: usize) -> WeightFile {
        match self {
            Network::DenseNet121 => weight_files::DENSE_NET121.file(include_top),
            Network::EfficientNetB0 => weight_files::EFFICIENT_NET_B0.file(include_top),
            Network::InceptionV3 => weight_files::INCEPTION_V3.file(include_top),
            Network::MobileNetV2 => weight_files::mobile_net_v2(include_top, alpha, rows),
            Network::ResNet50 => weight_files::RESNET50.file(include_top),
            Network::Vgg16 => weight_files::VGG16.file(include_top),
            Network::Xception => weight_files::XCEPTION.file(include_top),
        }
    }

    /// Everything before the classifier.
    pub fn images(self, input: &KerasTensor, alpha: f64, has_imagenet_weights: bool) -> KerasTensor {
        match self {
            Network::DenseNet121 => dense_net121::images(input),
            Network::EfficientNetB0 => efficient_net_b0::images(input, has_imagenet_weights),
            Network::InceptionV3 => inception_v3::images(input),
            Network::MobileNetV2 => mobile_net_v2::images(input, alpha),
            Network::ResNet50 => resnet50::images(input),
            Network::Vgg16 => vgg16::images(input),
            Network::Xception => xception::images(input),
        }
    }

    /// What the classifier gets, and the classifier without its activation.
    pub fn top(self, images: &KerasTensor, classes: usize) -> (KerasTensor, Dense) {
        let mean = || GlobalAvgPool2d::new().name("avg_pool").on(images);
        match self {
            Network::Vgg16 => (vgg16::top(images), Dense::new(classes)),
            Network::MobileNetV2 => (GlobalAvgPool2d::new().on(images), Dense::new(classes)),
            Network::EfficientNetB0 => efficient_net_b0::classifier(&mean(), classes),
            Network::DenseNet121 | Network::InceptionV3 | Network::ResNet50 | Network::Xception => {
                (mean(), Dense::new(classes))
            }
        }
    }

    /// The pooled images of a network without its top. In some networks the layer has a name.
    pub fn pooled(self, images: &KerasTensor, pooling: Pooling) -> KerasTensor {
        let is_named = match self {
            Network::DenseNet121 | Network::EfficientNetB0 | Network::ResNet50 => true,
            Network::InceptionV3 | Network::MobileNetV2 | Network::Vgg16 | Network::Xception => false,
        };
        match (pooling, is_named) {
            (Pooling::Avg, true) => GlobalAvgPool2d::new().name("avg_pool").on(images),
            (Pooling::Avg, false) => GlobalAvgPool2d::new().on(images),
            (Pooling::Max, true) => GlobalMaxPool2d::new().name("max_pool").on(images),
            (Pooling::Max, false) => GlobalMaxPool2d::new().on(images),
        }
    }
}
