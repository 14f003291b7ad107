//! `MaxPool2d` and `AvgPool2d`: shrink images to one number for each window.

use estimand_graph::{Padding, Tensor};

use super::{Config, Layer, LayerCall, config_setters};
use crate::size::Size2d;

macro_rules! pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $method:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            size: Size2d,
            strides: Size2d,
            padding: Padding,
            config: Config,
        }

        impl $layer {
            /// Windows of a size (one number or `(height, width)`) that do not overlap.
            pub fn new(size: impl Into<Size2d>) -> $layer {
                let size = size.into();
                $layer { size, strides: size, padding: Padding::Valid, config: Config::default() }
            }

            /// The distance between windows. By default the size of a window.
            pub fn strides(mut self, strides: impl Into<Size2d>) -> $layer {
                self.strides = strides.into();
                self
            }

            /// The padding at the edges. By default `Valid`: rows and columns that do not fill a
            /// window are dropped.
            pub fn padding(mut self, padding: Padding) -> $layer {
                self.padding = padding;
                self
            }

            /// Windows may extend past the edges; positions outside do not count.
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
                call.input().$method(self.size.pair(), self.strides.pair(), self.padding)
            }
        }
    };
}

pool!(
    /// The largest element under each window of `[batch, height, width, channels]`.
    MaxPool2d,
    "max_pooling2d",
    max_pool
);
pool!(
    /// The mean under each window of `[batch, height, width, channels]`.
    AvgPool2d,
    "average_pooling2d",
    avg_pool
);
