//! `GlobalMaxPool1d`, `GlobalAvgPool2d` and similar layers: one number for each channel of a
//! sequence or an image.

use estimand_graph::{Axes, Tensor};

use super::{Config, Layer, LayerCall, config_setters};

macro_rules! global_pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $form:literal, $method:ident, $axes:expr) => {
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

        impl Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &Config {
                &self.config
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                let axes: &[i64] = &$axes;
                match call.expect_rank(axes.len() + 2..=axes.len() + 2, $form) {
                    Some(error) => error,
                    None if self.keep_dims => call.input().$method(Axes::of(axes).keep_dims()),
                    None => call.input().$method(axes),
                }
            }
        }
    };
}

global_pool!(
    /// The largest element of each channel: `[batch, steps, channels]` to `[batch, channels]`.
    GlobalMaxPool1d,
    "global_max_pooling1d",
    "[batch, steps, channels]",
    max_axes,
    [1]
);
global_pool!(
    /// The mean of each channel: `[batch, steps, channels]` to `[batch, channels]`.
    GlobalAvgPool1d,
    "global_average_pooling1d",
    "[batch, steps, channels]",
    mean_axes,
    [1]
);
global_pool!(
    /// The largest element of each channel: `[batch, height, width, channels]` to
    /// `[batch, channels]`.
    GlobalMaxPool2d,
    "global_max_pooling2d",
    "[batch, height, width, channels]",
    max_axes,
    [1, 2]
);
global_pool!(
    /// The mean of each channel: `[batch, height, width, channels]` to `[batch, channels]`.
    GlobalAvgPool2d,
    "global_average_pooling2d",
    "[batch, height, width, channels]",
    mean_axes,
    [1, 2]
);
