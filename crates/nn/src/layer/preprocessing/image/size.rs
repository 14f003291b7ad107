//! `Resizing`, `CenterCrop` and `RandomCrop`: images of another size.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result};

use super::images;
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

/// Enlarges or shrinks images to a size.
#[derive(Clone, Debug)]
#[must_use]
pub struct Resizing {
    height: usize,
    width: usize,
    nearest: bool,
    crop_to_aspect_ratio: bool,
    config: Config,
}

impl Resizing {
    /// Images of this size, interpolated linearly.
    pub fn new(height: usize, width: usize) -> Resizing {
        Resizing { height, width, nearest: false, crop_to_aspect_ratio: false, config: Config::default() }
    }

    /// Takes the nearest pixel. By default pixels are interpolated.
    pub fn nearest(mut self) -> Resizing {
        self.nearest = true;
        self
    }

    /// Cuts off what does not fit the new ratio of height and width. By default images are
    /// distorted.
    pub fn crop_to_aspect_ratio(mut self, crop: bool) -> Resizing {
        self.crop_to_aspect_ratio = crop;
        self
    }
}

config_setters!(Resizing);

impl Described for Resizing {
    const CLASS: &'static str = "Resizing";

    fn template() -> Resizing {
        Resizing::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Resizing {
        fields.only_read("data_format", &["channels_last".into()]);
        fields.only_read("pad_to_aspect_ratio", &[false.into()]);
        fields.only_read("antialias", &[false.into()]);
        // They say something only with `pad_to_aspect_ratio`.
        ["fill_mode", "fill_value"].into_iter().for_each(|key| fields.ignored(key));
        Resizing {
            height: fields.required("height", &self.height),
            width: fields.required("width", &self.width),
            nearest: fields.choice("interpolation", &self.nearest, &[("bilinear", false), ("nearest", true)]),
            crop_to_aspect_ratio: fields.value("crop_to_aspect_ratio", &self.crop_to_aspect_ratio),
            config: self.config.fields(fields),
        }
    }
}

/// Records an error if images would have no pixels.
#[track_caller]
fn check_size(build: &Build<'_>, height: usize, width: usize) {
    if height == 0 || width == 0 {
        build.refuse(Error::config(format!("the size is {height} x {width}; expected at least 1 x 1")));
    }
}

impl Layer for Resizing {
    fn kind(&self) -> &'static str {
        "resizing"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        check_size(build, self.height, self.width);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (x, height, width) = match images(call, self.kind()) {
            Ok(found) => found,
            Err(error) => return error,
        };
        let size = (self.height, self.width);
        let x = if self.crop_to_aspect_ratio { cropped(&x, (height, width), size) } else { x };
        if self.nearest { x.resize_nearest(size) } else { x.resize_bilinear(size) }
    }
}

/// The largest part around the centre that has the ratio of `target`.
#[track_caller]
fn cropped(x: &Tensor, size: (usize, usize), target: (usize, usize)) -> Tensor {
    let part = |n: usize, other: usize, of: usize, to: usize| n.min((other * of) / to).max(1);
    let height = part(size.0, size.1, target.0, target.1);
    let width = part(size.1, size.0, target.1, target.0);
    let border = |all: usize, kept: usize| ((all - kept) / 2, all - kept - (all - kept) / 2);
    x.crop(&[(0, 0), border(size.0, height), border(size.1, width), (0, 0)])
}

/// Keras' `smart_resize`: cuts to the ratio, then interpolates.
#[track_caller]
fn smart_resize(x: &Tensor, size: (usize, usize), target: (usize, usize)) -> Tensor {
    cropped(x, size, target).resize_bilinear(target)
}

/// The part around the centre of images. Images that are too small are enlarged.
#[derive(Clone, Debug)]
#[must_use]
pub struct CenterCrop {
    height: usize,
    width: usize,
    config: Config,
}

impl CenterCrop {
    /// Parts of this size.
    pub fn new(height: usize, width: usize) -> CenterCrop {
        CenterCrop { height, width, config: Config::default() }
    }
}

config_setters!(CenterCrop);

impl Described for CenterCrop {
    const CLASS: &'static str = "CenterCrop";

    fn template() -> CenterCrop {
        CenterCrop::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> CenterCrop {
        fields.only_read("data_format", &["channels_last".into()]);
        CenterCrop {
            height: fields.required("height", &self.height),
            width: fields.required("width", &self.width),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for CenterCrop {
    fn kind(&self) -> &'static str {
        "center_crop"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        check_size(build, self.height, self.width);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (x, height, width) = match images(call, self.kind()) {
            Ok(found) => found,
            Err(error) => return error,
        };
        match (height.checked_sub(self.height), width.checked_sub(self.width)) {
            (Some(h), Some(w)) => x.crop(&[(0, 0), (h / 2, h - h / 2), (w / 2, w - w / 2), (0, 0)]),
            _ => smart_resize(&x, (height, width), (self.height, self.width)),
        }
    }
}

/// In training, a random part of the images, the same for all images of a batch. Otherwise, and if
/// images are too small, they are cut to the ratio and resized.
#[derive(Clone, Debug)]
#[must_use]
pub struct RandomCrop {
    height: usize,
    width: usize,
    config: Config,
}

impl RandomCrop {
    /// Parts of this size.
    pub fn new(height: usize, width: usize) -> RandomCrop {
        RandomCrop { height, width, config: Config::default() }
    }
}

config_setters!(RandomCrop);

impl Described for RandomCrop {
    const CLASS: &'static str = "RandomCrop";

    fn template() -> RandomCrop {
        RandomCrop::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RandomCrop {
        fields.ignored("seed");
        fields.only_read("data_format", &["channels_last".into()]);
        RandomCrop {
            height: fields.required("height", &self.height),
            width: fields.required("width", &self.width),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for RandomCrop {
    fn kind(&self) -> &'static str {
        "random_crop"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        check_size(build, self.height, self.width);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (x, height, width) = match images(call, self.kind()) {
            Ok(found) => found,
            Err(error) => return error,
        };
        let (Some(h), Some(w), true) =
            (height.checked_sub(self.height), width.checked_sub(self.width), call.training())
        else {
            return smart_resize(&x, (height, width), (self.height, self.width));
        };
        let part = |x: &Tensor, left: usize, size: usize, axis: i64| {
            let start = x.graph().random_integers([1], 0, left as i64 + 1);
            x.gather_axis(&(x.graph().range(size, DType::I64) + start), axis, 0)
        };
        part(&part(&x, h, self.height, 1), w, self.width, 2)
    }
}
