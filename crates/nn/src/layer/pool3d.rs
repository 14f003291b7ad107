//! `MaxPool3d` and `AvgPool3d`: shrink volumes to one number for each window.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::{Array, Error, Result};

use super::volume::{DepthWindow, is_positive};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size3d;

macro_rules! pool {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, $make:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            size: Size3d,
            strides: Option<Size3d>,
            padding: Padding,
            config: Config,
        }

        impl $layer {
            /// Windows of a size (one number or `(depth, height, width)`) that do not overlap.
            pub fn new(size: impl Into<Size3d>) -> $layer {
                let size = size.into();
                $layer { size, strides: None, padding: Padding::Valid, config: Config::default() }
            }

            /// The distance between windows. By default the size of a window.
            pub fn strides(mut self, strides: impl Into<Size3d>) -> $layer {
                self.strides = Some(strides.into());
                self
            }

            /// The padding at the edges. By default `Valid`: what does not fill a window is
            /// dropped.
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

            fn build(&self, build: &mut Build<'_>) {
                if !is_positive(&[self.size, self.strides.unwrap_or(self.size)]) {
                    build.refuse(Error::config("a size of the window or its strides is 0; expected at least 1"));
                }
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                $make(call, self.size, self.strides.unwrap_or(self.size), self.padding)
            }
        }
    };
}

#[track_caller]
fn window(size: Size3d, strides: Size3d, padding: Padding) -> DepthWindow {
    DepthWindow { size: size.depth, stride: strides.depth, dilation: 1, padding }
}

#[track_caller]
fn largest(call: &LayerCall<'_>, size: Size3d, strides: Size3d, padding: Padding) -> Tensor {
    let slices = match window(size, strides, padding).slices(call, f64::from(f32::MIN)) {
        Ok(slices) => slices,
        Err(error) => return error,
    };
    let first = slices.images[0].clone();
    let deep = slices.images[1..].iter().fold(first, |all, image| all.maximum(image));
    slices.volume(&deep.max_pool(size.plane(), strides.plane(), padding))
}

#[track_caller]
fn mean(call: &LayerCall<'_>, size: Size3d, strides: Size3d, padding: Padding) -> Tensor {
    let slices = match window(size, strides, padding).slices(call, 0.0) {
        Ok(slices) => slices,
        Err(error) => return error,
    };
    let first = slices.images[0].clone();
    let deep = slices.images[1..].iter().fold(first, |all, image| all + image);
    let sums = slices.volume(&deep.avg_pool(size.plane(), strides.plane(), padding));
    let counts = call.input().graph().constant(Array::from(slices.counts.clone()));
    sums / counts.reshape_as([slices.counts.len(), 1, 1, 1])
}

pool!(
    /// The largest element under each window of `[batch, depth, height, width, channels]`.
    MaxPool3d,
    "max_pooling3d",
    "MaxPooling3D",
    largest
);
pool!(
    /// The mean under each window of `[batch, depth, height, width, channels]`.
    AvgPool3d,
    "average_pooling3d",
    "AveragePooling3D",
    mean
);
