//! `MaxPool2d` and `AvgPool2d`: shrink images to one number for each window.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::Result;

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size2d;

macro_rules! pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, $method:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            size: Size2d,
            strides: Option<Size2d>,
            padding: Padding,
            config: Config,
        }

        impl $layer {
            /// Windows of a size (one number or `(height, width)`) that do not overlap.
            pub fn new(size: impl Into<Size2d>) -> $layer {
                let size = size.into();
                $layer { size, strides: None, padding: Padding::Valid, config: Config::default() }
            }

            /// The distance between windows. By default the size of a window.
            pub fn strides(mut self, strides: impl Into<Size2d>) -> $layer {
                self.strides = Some(strides.into());
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

        impl Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new(1)
            }

            fn fields(&self, fields: &mut Fields<'_>) -> $layer {
                let layer = $layer {
                    size: fields.required("pool_size", &self.size),
                    strides: fields.or("strides", &self.strides, self.size),
                    padding: fields.value("padding", &self.padding),
                    config: self.config.fields(fields),
                };
                fields.only("data_format", "channels_last");
                layer
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
                call.input().$method(self.size.pair(), self.strides.unwrap_or(self.size).pair(), self.padding)
            }
        }
    };
}

pool!(
    /// The largest element under each window of `[batch, height, width, channels]`.
    MaxPool2d,
    "max_pooling2d",
    "MaxPooling2D",
    max_pool
);
pool!(
    /// The mean under each window of `[batch, height, width, channels]`.
    AvgPool2d,
    "average_pooling2d",
    "AveragePooling2D",
    avg_pool
);
