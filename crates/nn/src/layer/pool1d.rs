//! `MaxPool1d` and `AvgPool1d`: shorten sequences to one number for each window.

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
            /// Windows of `size` steps that do not overlap.
            pub fn new(size: usize) -> $layer {
                $layer { size, strides: size, padding: Padding::Valid, config: Config::default() }
            }

            /// The distance between windows. By default the size of a window.
            pub fn strides(mut self, strides: usize) -> $layer {
                self.strides = strides;
                self
            }

            /// The padding at the ends. By default `Valid`: steps that do not fill a window are
            /// dropped.
            pub fn padding(mut self, padding: Padding) -> $layer {
                self.padding = padding;
                self
            }

            /// Windows may extend past the ends; positions outside do not count.
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
