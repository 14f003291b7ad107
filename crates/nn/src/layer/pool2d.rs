//! `MaxPool2d` and `AvgPool2d`: images made smaller, one number for each window.

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
            /// Windows of a size (one number or `(height, width)`), side by side.
            pub fn new(size: impl Into<Size2d>) -> $layer {
                let size = size.into();
                $layer { size, strides: size, padding: Padding::Valid, config: Config::default() }
            }

            /// How far the window moves. By default as far as it is large.
            pub fn strides(mut self, strides: impl Into<Size2d>) -> $layer {
                self.strides = strides.into();
                self
            }

            /// What happens at the edges. By default `Valid`: rows and columns that fill no window
            /// are left out.
            pub fn padding(mut self, padding: Padding) -> $layer {
                self.padding = padding;
                self
            }

            /// Windows may reach over the edges; what is outside does not count.
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
