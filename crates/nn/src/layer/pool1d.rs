//! `MaxPool1d` and `AvgPool1d`: sequences made shorter, one number for each window.

use estimand_graph::{Padding, Tensor};

use super::{Config, Layer, LayerCall, config_setters};

macro_rules! pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $method:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            size: usize,
            strides: usize,
            padding: Padding,
            config: Config,
        }

        impl $layer {
            /// Windows of so many steps, side by side.
            pub fn new(size: usize) -> $layer {
                $layer { size, strides: size, padding: Padding::Valid, config: Config::default() }
            }

            /// How far the window moves. By default as far as it is long.
            pub fn strides(mut self, strides: usize) -> $layer {
                self.strides = strides;
                self
            }

            /// What happens at the ends. By default `Valid`: steps that fill no window are left
            /// out.
            pub fn padding(mut self, padding: Padding) -> $layer {
                self.padding = padding;
                self
            }

            /// Windows may reach over the ends; what is outside does not count.
            pub fn same(self) -> $layer {
                self.padding(Padding::Same)
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
                match call.expect_rank(3..=3, "[batch, steps, channels]") {
                    Some(error) => error,
                    // A sequence is an image of one column.
                    None => call.input().expand_dims(2).$method((self.size, 1), (self.strides, 1), self.padding).squeeze(&[2]),
                }
            }
        }
    };
}

pool!(
    /// The largest element under each window of `[batch, steps, channels]`.
    MaxPool1d,
    "max_pooling1d",
    max_pool
);
pool!(
    /// The mean under each window of `[batch, steps, channels]`.
    AvgPool1d,
    "average_pooling1d",
    avg_pool
);
