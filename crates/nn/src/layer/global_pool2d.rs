//! `GlobalMaxPool2d` and `GlobalAvgPool2d`: one number for each channel of an image.

use estimand_graph::Tensor;

use super::{Call, Config, Layer, config_setters};

macro_rules! global_pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $method:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $layer {
            config: Config,
        }

        impl $layer {
            /// The layer; it has no options.
            pub fn new() -> $layer {
                $layer::default()
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

            fn call(&self, call: &Call<'_>) -> Tensor {
                match call.expect_rank(4..=4, "[batch, height, width, channels]") {
                    Some(error) => error,
                    None => call.input().$method(),
                }
            }
        }
    };
}

global_pool!(
    /// The largest element of each channel: `[batch, height, width, channels]` to `[batch, channels]`.
    GlobalMaxPool2d,
    "global_max_pooling2d",
    global_max_pool
);
global_pool!(
    /// The mean of each channel: `[batch, height, width, channels]` to `[batch, channels]`.
    GlobalAvgPool2d,
    "global_average_pooling2d",
    global_avg_pool
);
