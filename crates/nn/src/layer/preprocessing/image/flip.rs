//! `RandomFlip`: mirrors images at random.

use estimand_graph::Tensor;
use estimand_tensor::{Dim, Result, Shape};

use super::images;
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Config, Layer, LayerCall, MODULE, config_setters};

/// The axes along which images are mirrored.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Flip {
    /// Left and right change places.
    Horizontal,
    /// Top and bottom change places.
    Vertical,
    /// Each of both, independently.
    #[default]
    HorizontalAndVertical,
}

/// In training, mirrors each image with probability 1/2.
#[derive(Clone, Debug)]
#[must_use]
pub struct RandomFlip {
    mode: Flip,
    config: Config,
}

impl RandomFlip {
    /// Mirrors along these axes.
    pub fn new(mode: Flip) -> RandomFlip {
        RandomFlip { mode, config: Config::default() }
    }
}

config_setters!(RandomFlip);

impl Described for RandomFlip {
    const CLASS: &'static str = "RandomFlip";

    fn template() -> RandomFlip {
        RandomFlip::new(Flip::default())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RandomFlip {
        fields.ignored("seed");
        fields.only_read("data_format", &["channels_last".into()]);
        let modes = [
            ("horizontal", Flip::Horizontal),
            ("vertical", Flip::Vertical),
            ("horizontal_and_vertical", Flip::HorizontalAndVertical),
        ];
        RandomFlip { mode: fields.choice("mode", &self.mode, &modes), config: self.config.fields(fields) }
    }
}

impl Layer for RandomFlip {
    fn kind(&self) -> &'static str {
        "random_flip"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let mut x = match images(call, self.kind()) {
            Ok((x, ..)) if call.training() => x,
            Ok((x, ..)) | Err(x) => return x,
        };
        let flip = |x: &Tensor, axis: i64| {
            let one = Dim::Known(1);
            let shape: Shape = [x.shape().dims()[0], one, one, one].into_iter().collect();
            x.graph().random_uniform(shape).less(0.5).select(x.reverse(&[axis]), x)
        };
        if self.mode != Flip::Vertical {
            x = flip(&x, 2);
        }
        if self.mode != Flip::Horizontal {
            x = flip(&x, 1);
        }
        x
    }
}
