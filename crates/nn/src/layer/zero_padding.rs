//! `ZeroPadding1d` and `ZeroPadding2d`: zeros around sequences and images.

use estimand_graph::Tensor;

use super::{Call, Config, Layer, config_setters};
use crate::border::Border;

macro_rules! zero_padding {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $axes:literal, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $layer {
            border: Border<$axes>,
            config: Config,
        }

        impl $layer {
            /// As many zeros as the [`Border`] says.
            pub fn new(border: impl Into<Border<$axes>>) -> $layer {
                $layer { border: border.into(), config: Config::default() }
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
                match call.expect_rank($axes + 2..=$axes + 2, $form) {
                    Some(error) => error,
                    None => call.input().pad(&self.border.with_outer_axes(), 0.0),
                }
            }
        }
    };
}

zero_padding!(
    /// Zeros before and after the steps of `[batch, steps, channels]`.
    ZeroPadding1d,
    "zero_padding1d",
    1,
    "[batch, steps, channels]"
);
zero_padding!(
    /// Zeros around the images `[batch, height, width, channels]`.
    ZeroPadding2d,
    "zero_padding2d",
    2,
    "[batch, height, width, channels]"
);
