//! The window of a convolution over sequences: size, strides, dilation and padding.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::{Error, Result};

use super::Build;
use super::window::{Window, check_steps};
use crate::config::{Field, Fields, Json, Node, OneSize};

/// The size of a kernel and how it moves over a sequence, with a padding that is [`Padding`] or
/// [`Edge`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps<P> {
    pub size: usize,
    pub strides: usize,
    pub dilation: usize,
    pub padding: P,
}

/// The padding at the ends of a sequence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Edge {
    Both(Padding),
    /// Zeros before the first step, so that no step sees a later one.
    Causal,
}

impl From<Padding> for Edge {
    fn from(padding: Padding) -> Edge {
        Edge::Both(padding)
    }
}

impl Field for Edge {
    fn write(&self) -> Result<Json> {
        match self {
            Edge::Both(padding) => padding.write(),
            Edge::Causal => Ok("causal".into()),
        }
    }

    fn read(node: &Node<'_>) -> Result<Edge> {
        match node.text()? {
            "causal" => Ok(Edge::Causal),
            "valid" | "same" => Padding::read(node).map(Edge::Both),
            _ => Err(node.expected("\"valid\", \"same\" or \"causal\"")),
        }
    }
}

impl<P: Field + From<Padding>> Steps<P> {
    pub fn new(size: usize) -> Steps<P> {
        Steps { size, strides: 1, dilation: 1, padding: Padding::Valid.into() }
    }

    /// Writes or reads size, strides, padding and dilation.
    pub fn fields(&self, fields: &mut Fields<'_>) -> Steps<P> {
        let steps = Steps {
            size: fields.required("kernel_size", &OneSize(self.size)).0,
            strides: fields.value("strides", &OneSize(self.strides)).0,
            padding: fields.value("padding", &self.padding),
            dilation: fields.value("dilation_rate", &OneSize(self.dilation)).0,
        };
        fields.only("data_format", "channels_last");
        steps
    }
}

impl<P> Steps<P> {
    /// Records an error unless `n` kernels of this window can slide over the layer's input.
    #[track_caller]
    pub fn fits(&self, build: &Build<'_>, n: usize, what: &str) -> bool {
        if n == 0 || self.size == 0 {
            let text = format!("the layer has {n} {what} of {} steps; expected at least 1 of each", self.size);
            build.refuse(Error::config(text));
            return false;
        }
        check_steps(build, &[self.strides], &[self.dilation]) && build.takes(3..=3, "[batch, steps, channels]")
    }

    /// The window over a sequence that is an image of one row.
    fn row_with(&self, padding: Padding) -> Window {
        Window {
            strides: (1, self.strides).into(),
            dilation: (1, self.dilation).into(),
            padding,
            ..Window::new((1, self.size).into())
        }
    }
}

impl Steps<Padding> {
    /// The window over a sequence that is an image of one row.
    pub fn row(&self) -> Window {
        self.row_with(self.padding)
    }
}

impl Steps<Edge> {
    /// The sequence with the zeros of a causal edge, as an image of one row, and the window over
    /// it.
    #[track_caller]
    pub fn row_of(&self, x: &Tensor) -> (Tensor, Window) {
        match self.padding {
            Edge::Both(padding) => (x.expand_dims(1), self.row_with(padding)),
            Edge::Causal => {
                let before = (self.size - 1).saturating_mul(self.dilation);
                let padded = x.pad(&[(0, 0), (before, 0), (0, 0)], 0.0);
                (padded.expand_dims(1), self.row_with(Padding::Valid))
            }
        }
    }
}

/// The setters of a layer with a field `steps: Steps`; with `causal`, that too.
macro_rules! steps_setters {
    ($layer:ty) => {
        impl $layer {
            /// The distance between windows, in steps. By default 1.
            pub fn strides(mut self, strides: usize) -> Self {
                self.steps.strides = strides;
                self
            }

            /// The distance between the elements under a window. A distance above 1 requires
            /// strides of 1. By default 1: no gaps.
            pub fn dilation(mut self, dilation: usize) -> Self {
                self.steps.dilation = dilation;
                self
            }

            /// The padding at both ends. By default `Valid`: the window stays inside.
            pub fn padding(mut self, padding: estimand_graph::Padding) -> Self {
                self.steps.padding = padding.into();
                self
            }

            /// Zeros at both ends, so that with strides of 1 the result is as long as the sequence.
            pub fn same(self) -> Self {
                self.padding(estimand_graph::Padding::Same)
            }
        }
    };
    ($layer:ty, causal) => {
        steps_setters!($layer);

        impl $layer {
            /// Zeros before the first step only. A result depends on no later step, and with
            /// strides of 1 it is as long as the sequence.
            pub fn causal(mut self) -> Self {
                self.steps.padding = Edge::Causal;
                self
            }
        }
    };
}
pub(super) use steps_setters;
