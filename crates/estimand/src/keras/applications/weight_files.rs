//! The names, addresses and checksums of Keras' files of ImageNet's weights.

use estimand_data::fetch::Checksum;

/// A file that Keras publishes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct WeightFile {
    pub name: String,
    pub address: String,
    pub checksum: Option<Checksum>,
}

/// The two files of a network. The checksums are those that Keras checks: MD5.
pub(super) struct Published {
    /// The address of the folder.
    folder: &'static str,
    /// The beginning of both names.
    name: &'static str,
    with_top: &'static str,
    without_top: &'static str,
}

const KERAS: &str = "https://storage.googleapis.com/tensorflow/keras-applications";
const KERNELS: &str = "weights_tf_dim_ordering_tf_kernels";

pub(super) const DENSE_NET121: Published = Published {
    folder: "densenet",
    name: "densenet121",
    with_top: "9d60b8095a5708f2dcce2bca79d332c7",
    without_top: "30ee3e1110167f948a6b9946edeeb738",
};
pub(super) const EFFICIENT_NET_B0: Published = Published {
    folder: "https://storage.googleapis.com/keras-applications",
    name: "efficientnetb0",
    with_top: "902e53a9f72be733fc0bcb005b3ebbac",
    without_top: "50bc09e76180e00e4465e1a485ddc09d",
};
pub(super) const INCEPTION_V3: Published = Published {
    folder: "inception_v3",
    name: "inception_v3",
    with_top: "9a0d58056eeedaa3f26cb7ebd46da564",
    without_top: "bcbd6486424b2319ff4ef7d526e38f63",
};
pub(super) const RESNET50: Published = Published {
    folder: "resnet",
    name: "resnet50",
    with_top: "2cb95161c43110f7111970584f804107",
    without_top: "4d473c1dd8becc155b73f8504c6f6626",
};
pub(super) const VGG16: Published = Published {
    folder: "vgg16",
    name: "vgg16",
    with_top: "64373286793e3c8b2b4e3219cbf3544b",
    without_top: "6d6bbae143d832006294945121d1f1fc",
};
pub(super) const XCEPTION: Published = Published {
    folder: "xception",
    name: "xception",
    with_top: "0a58e3b7378bc2990ea3b43d5981f1f6",
    without_top: "b0042744bf5b25fce3cb969f33bebb97",
};

impl Published {
    pub fn file(&self, include_top: bool) -> WeightFile {
        let (end, digest) = match include_top {
            true => (".h5", self.with_top),
            false => ("_notop.h5", self.without_top),
        };
        let checksum = Some(Checksum::Md5(digest.to_string()));
        // EfficientNet is newer than the others and lies elsewhere.
        let (name, address) = match self.folder.starts_with("https://") {
            true => {
                let name = format!("{}{end}", self.name);
                (name.clone(), format!("{}/{name}", self.folder))
            }
            false => {
                let name = format!("{}_{KERNELS}{end}", self.name);
                (name.clone(), format!("{KERAS}/{}/{name}", self.folder))
            }
        };
        WeightFile { name, address, checksum }
    }
}

/// The factors of filters that there are weights for.
pub(super) const MOBILE_NET_V2_ALPHAS: [f64; 6] = [0.35, 0.5, 0.75, 1.0, 1.3, 1.4];

/// TF: Keras has no checksums of these files.
pub(super) fn mobile_net_v2(include_top: bool, alpha: f64, rows: usize) -> WeightFile {
    let end = if include_top { "" } else { "_no_top" };
    let name = format!("mobilenet_v2_{KERNELS}_{alpha:?}_{rows}{end}.h5");
    WeightFile { address: format!("{KERAS}/mobilenet_v2/{name}"), name, checksum: None }
}
