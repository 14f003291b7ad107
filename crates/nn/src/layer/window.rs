//! The window of a convolution in two dimensions: size, strides, dilation and padding.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::Error;

use super::Build;
use crate::config::Fields;
use crate::size::Size2d;

/// The size of a kernel and how it moves over an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub size: Size2d,
    pub strides: Size2d,
    pub dilation: Size2d,
    pub padding: Padding,
}

impl Window {
    pub fn new(size: Size2d) -> Window {
        Window { size, strides: 1.into(), dilation: 1.into(), padding: Padding::Valid }
    }

    /// Writes or reads size, strides, padding and dilation.
    pub fn fields(&self, fields: &mut Fields<'_>) -> Window {
        let window = Window {
            size: fields.required("kernel_size", &self.size),
            strides: fields.value("strides", &self.strides),
            padding: fields.value("padding", &self.padding),
            dilation: fields.value("dilation_rate", &self.dilation),
        };
        fields.only("data_format", "channels_last");
        window
    }

    /// Records an error unless `n` kernels of this window can slide over the layer's input.
    #[track_caller]
    pub fn fits(&self, build: &Build<'_>, n: usize, what: &str) -> bool {
        let ((height, width), strides, dilation) = (self.size.pair(), self.strides.pair(), self.dilation.pair());
        if n == 0 || height == 0 || width == 0 {
            let text = format!("the layer has {n} {what} of {height} x {width}; expected at least 1 of each");
            build.refuse(Error::config(text));
            return false;
        }
        check_steps(build, &[strides.0, strides.1], &[dilation.0, dilation.1])
            && build.takes(4..=4, "[batch, height, width, channels]")
    }

    /// Convolves images with a kernel. Groups of channels are convolved separately.
    #[track_caller]
    pub fn convolve(&self, x: &Tensor, kernel: &Tensor, groups: usize) -> Tensor {
        let (strides, dilation) = (self.strides.pair(), self.dilation.pair());
        if groups == 1 || x.is_poisoned() || kernel.is_poisoned() {
            return x.conv2d_dilated(kernel, strides, dilation, self.padding);
        }
        let channels = x.channels();
        if groups == channels {
            // With one kernel for each channel this is a depthwise convolution, in the same order.
            let (height, width) = self.size.pair();
            let dims = [height, width, channels, kernel.channels() / groups];
            return self.convolve_channels(x, &kernel.reshape_as(dims));
        }
        let split = |t: &Tensor| t.split(&vec![t.channels() / groups; groups], -1);
        let parts = split(x).into_iter().zip(split(kernel));
        let parts: Vec<Tensor> =
            parts.map(|(x, kernel)| x.conv2d_dilated(&kernel, strides, dilation, self.padding)).collect();
        Tensor::concat(&parts.iter().collect::<Vec<_>>(), -1)
    }

    /// Convolves every channel with its own kernels.
    #[track_caller]
    pub fn convolve_channels(&self, x: &Tensor, kernel: &Tensor) -> Tensor {
        x.depthwise_conv2d_dilated(kernel, self.strides.pair(), self.dilation.pair(), self.padding)
    }
}

/// Records an error unless strides and dilation can be combined.
#[track_caller]
pub(super) fn check_steps(build: &Build<'_>, strides: &[usize], dilation: &[usize]) -> bool {
    let error = if strides.contains(&0) || dilation.contains(&0) {
        format!("the strides are {strides:?} and the dilation is {dilation:?}; expected at least 1 of each")
    } else if strides.iter().any(|&s| s > 1) && dilation.iter().any(|&d| d > 1) {
        // TF: refused, since no kernel of TensorFlow supports both.
        format!("the strides are {strides:?} and the dilation is {dilation:?}; expected 1 for one of them")
    } else {
        return true;
    };
    build.refuse(Error::config(error));
    false
}

/// Records an error unless the channels and filters can be divided into this number of groups.
#[track_caller]
pub(super) fn check_groups(build: &Build<'_>, groups: usize, channels: usize, filters: usize) -> bool {
    let whole = groups > 0 && channels.is_multiple_of(groups) && filters.is_multiple_of(groups);
    if !whole {
        let text = format!(
            "the number of groups is {groups}; expected a divisor of the {channels} channels and the {filters} filters"
        );
        build.refuse(Error::config(text));
    }
    whole
}

/// The setters of a layer with a field `window: Window`.
macro_rules! window_setters {
    ($layer:ty) => {
        impl $layer {
            /// The distance between windows. By default 1.
            pub fn strides(mut self, strides: impl Into<crate::Size2d>) -> Self {
                self.window.strides = strides.into();
                self
            }

            /// The distance between the elements under a window. A distance above 1 requires
            /// strides of 1. By default 1: no gaps.
            pub fn dilation(mut self, dilation: impl Into<crate::Size2d>) -> Self {
                self.window.dilation = dilation.into();
                self
            }

            /// The padding at the edges. By default `Valid`: the window stays inside.
            pub fn padding(mut self, padding: estimand_graph::Padding) -> Self {
                self.window.padding = padding;
                self
            }

            /// Zeros around the image, so that with strides of 1 the result is as large as the
            /// image.
            pub fn same(self) -> Self {
                self.padding(estimand_graph::Padding::Same)
            }
        }
    };
}
pub(super) use window_setters;
