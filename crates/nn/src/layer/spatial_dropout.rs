//! `SpatialDropout1d` and `SpatialDropout2d`: drop whole channels in training.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Config, Dropout, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

macro_rules! spatial_dropout {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, $form:literal, $mask:expr) => {
        $(#[$doc])*
        ///
        /// The other channels are scaled by `1 / (1 - rate)`. The choice of channels is a pure
        /// function of seed, name, step and row, as with [`Dropout`].
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            rate: f64,
            config: Config,
        }

        impl $layer {
            /// Drops channels with probability `rate`.
            pub fn new(rate: f64) -> $layer {
                $layer { rate, config: Config::default() }
            }
        }

        config_setters!($layer);

        impl Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new(0.0)
            }

            fn fields(&self, fields: &mut Fields<'_>) -> $layer {
                fields.only_read("noise_shape", &[Json::Null]);
                fields.only_read("data_format", &["channels_last".into()]);
                fields.ignored("seed");
                $layer { rate: fields.required("rate", &self.rate), config: self.config.fields(fields) }
            }
        }

        impl Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &Config {
                &self.config
            }

            fn supports_masking(&self) -> bool {
                true
            }

            fn to_json(&self) -> Result<Json> {
                config::write(MODULE, self)
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                let mask: &[Option<usize>] = &$mask;
                match call.expect_rank(mask.len()..=mask.len(), $form) {
                    Some(error) => error,
                    None => Dropout::new(self.rate).noise_shape(mask).call(call),
                }
            }
        }
    };
}

spatial_dropout!(
    /// In training, sets whole channels of a sequence `[batch, steps, channels]` to 0 with
    /// probability `rate`.
    SpatialDropout1d,
    "spatial_dropout1d",
    "SpatialDropout1D",
    "[batch, steps, channels]",
    [None, Some(1), None]
);
spatial_dropout!(
    /// In training, sets whole channels of an image `[batch, height, width, channels]` to 0 with
    /// probability `rate`.
    SpatialDropout2d,
    "spatial_dropout2d",
    "SpatialDropout2D",
    "[batch, height, width, channels]",
    [None, Some(1), Some(1), None]
);
spatial_dropout!(
    /// In training, sets whole channels of a volume `[batch, depth, height, width, channels]` to 0
    /// with probability `rate`.
    SpatialDropout3d,
    "spatial_dropout3d",
    "SpatialDropout3D",
    "[batch, depth, height, width, channels]",
    [None, Some(1), Some(1), Some(1), None]
);
