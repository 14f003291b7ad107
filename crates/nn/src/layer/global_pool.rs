//! `GlobalMaxPool1d`, `GlobalAvgPool2d` and similar layers: one number for each channel of a
//! sequence or an image.

use estimand_graph::{Axes, Tensor};
use estimand_tensor::{DType, Result};

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

macro_rules! global_pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, $form:literal, $method:ident, $axes:expr, $masked:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        #[must_use]
        pub struct $layer {
            keep_dims: bool,
            config: Config,
        }

        impl $layer {
            /// Creates the layer. Its result has two axes.
            pub fn new() -> $layer {
                $layer::default()
            }

            /// Whether the result keeps the reduced axes with size 1. By default it does not.
            pub fn keep_dims(mut self, keep_dims: bool) -> $layer {
                self.keep_dims = keep_dims;
                self
            }
        }

        config_setters!($layer);

        impl Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new()
            }

            fn fields(&self, fields: &mut Fields<'_>) -> $layer {
                fields.only("data_format", "channels_last");
                $layer { keep_dims: fields.value("keepdims", &self.keep_dims), config: self.config.fields(fields) }
            }
        }

        impl Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &Config {
                &self.config
            }

            fn to_json(&self) -> Result<Json> {
                config::write(MODULE, self)
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                let axes: &[i64] = &$axes;
                let masked: Option<fn(&Tensor, &Tensor) -> Tensor> = $masked;
                if let (Some(masked), Some(mask), 3) = (masked, call.mask_of(0), call.input().rank()) {
                    let mean = masked(call.input(), mask);
                    return if self.keep_dims { mean.expand_dims(1) } else { mean };
                }
                match call.expect_rank(axes.len() + 2..=axes.len() + 2, $form) {
                    Some(error) => error,
                    None if self.keep_dims => call.input().$method(Axes::of(axes).keep_dims()),
                    None => call.input().$method(axes),
                }
            }
        }
    };
}

/// The mean of the steps that count.
#[track_caller]
fn masked_mean(x: &Tensor, mask: &Tensor) -> Tensor {
    let counts = mask.cast(DType::F32).expand_dims(-1);
    (x * &counts).sum_axes([1]) / counts.sum_axes([1])
}

global_pool!(
    /// The largest element of each channel: `[batch, steps, channels]` to `[batch, channels]`.
    GlobalMaxPool1d,
    "global_max_pooling1d",
    "GlobalMaxPooling1D",
    "[batch, steps, channels]",
    max_axes,
    [1],
    None
);
global_pool!(
    /// The mean of each channel: `[batch, steps, channels]` to `[batch, channels]`.
    GlobalAvgPool1d,
    "global_average_pooling1d",
    "GlobalAveragePooling1D",
    "[batch, steps, channels]",
    mean_axes,
    [1],
    Some(masked_mean)
);
global_pool!(
    /// The largest element of each channel: `[batch, height, width, channels]` to
    /// `[batch, channels]`.
    GlobalMaxPool2d,
    "global_max_pooling2d",
    "GlobalMaxPooling2D",
    "[batch, height, width, channels]",
    max_axes,
    [1, 2],
    None
);
global_pool!(
    /// The mean of each channel: `[batch, height, width, channels]` to `[batch, channels]`.
    GlobalAvgPool2d,
    "global_average_pooling2d",
    "GlobalAveragePooling2D",
    "[batch, height, width, channels]",
    mean_axes,
    [1, 2],
    None
);
global_pool!(
    /// The largest element of each channel: `[batch, depth, height, width, channels]` to
    /// `[batch, channels]`.
    GlobalMaxPool3d,
    "global_max_pooling3d",
    "GlobalMaxPooling3D",
    "[batch, depth, height, width, channels]",
    max_axes,
    [1, 2, 3],
    None
);
global_pool!(
    /// The mean of each channel: `[batch, depth, height, width, channels]` to `[batch, channels]`.
    GlobalAvgPool3d,
    "global_average_pooling3d",
    "GlobalAveragePooling3D",
    "[batch, depth, height, width, channels]",
    mean_axes,
    [1, 2, 3],
    None
);
