//! `MaxPool1d` and `AvgPool1d`: shorten sequences to one number for each window.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::Result;

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json, OneSize};

macro_rules! pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, $method:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            size: usize,
            strides: Option<usize>,
            padding: Padding,
            config: Config,
        }

        impl $layer {
            /// Windows of `size` steps that do not overlap.
            pub fn new(size: usize) -> $layer {
                $layer { size, strides: None, padding: Padding::Valid, config: Config::default() }
            }

            /// The distance between windows. By default the size of a window.
            pub fn strides(mut self, strides: usize) -> $layer {
                self.strides = Some(strides);
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

        impl Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new(1)
            }

            fn fields(&self, fields: &mut Fields<'_>) -> $layer {
                let strides = fields.or("strides", &self.strides.map(OneSize), OneSize(self.size));
                let layer = $layer {
                    size: fields.required("pool_size", &OneSize(self.size)).0,
                    strides: strides.map(|OneSize(size)| size),
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
                match call.expect_rank(3..=3, "[batch, steps, channels]") {
                    Some(error) => error,
                    // A sequence is an image of one column.
                    None => call.input().expand_dims(2).$method((self.size, 1), (self.strides.unwrap_or(self.size), 1), self.padding).squeeze(&[2]),
                }
            }
        }
    };
}

pool!(
    /// The largest element under each window of `[batch, steps, channels]`.
    MaxPool1d,
    "max_pooling1d",
    "MaxPooling1D",
    max_pool
);
pool!(
    /// The mean under each window of `[batch, steps, channels]`.
    AvgPool1d,
    "average_pooling1d",
    "AveragePooling1D",
    avg_pool
);
