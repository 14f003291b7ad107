//! `Conv1d`: a convolution over sequences.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::{Error, Result};

use super::affine::{Affine, affine_setters};
use super::weight_options::KERNEL;
use super::window::{Window, check_groups, check_steps};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Field, Fields, Json, Node, OneSize};

/// A convolution of sequences `[batch, steps, channels]`.
///
/// Variables: `kernel` `[size, channels / groups, filters]` and `bias` `[filters]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Conv1d, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("signal", DType::F32, [Dim::BATCH, 100.into(), 3.into()]);
/// assert_eq!(Conv1d::new(8, 5).strides(2).apply(&x).shape().to_string(), "[batch, 48, 8]");
/// assert_eq!(Conv1d::new(8, 3).causal().dilation(4).apply(&x).shape().to_string(), "[batch, 100, 8]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Conv1d {
    filters: usize,
    kernel_size: usize,
    strides: usize,
    dilation: usize,
    groups: usize,
    edge: Edge,
    affine: Affine,
    config: Config,
}

/// The padding at the ends of a sequence.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Edge {
    Both(Padding),
    /// Zeros before the first step, so that no step sees a later one.
    Causal,
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

impl Conv1d {
    /// `filters` filters over `kernel_size` steps, with a bias and without activation.
    pub fn new(filters: usize, kernel_size: usize) -> Conv1d {
        Conv1d {
            filters,
            kernel_size,
            strides: 1,
            dilation: 1,
            groups: 1,
            edge: Edge::Both(Padding::Valid),
            affine: Affine::new(),
            config: Config::default(),
        }
    }

    /// The distance between windows, in steps. By default 1.
    pub fn strides(mut self, strides: usize) -> Conv1d {
        self.strides = strides;
        self
    }

    /// The distance between the elements under a window. A distance above 1 requires strides of 1.
    /// By default 1: no gaps.
    pub fn dilation(mut self, dilation: usize) -> Conv1d {
        self.dilation = dilation;
        self
    }

    /// The number of groups that channels and filters are divided into. Each filter sees only the
    /// channels of its group. By default 1.
    pub fn groups(mut self, groups: usize) -> Conv1d {
        self.groups = groups;
        self
    }

    /// The padding at both ends. By default `Valid`: the window stays inside.
    pub fn padding(mut self, padding: Padding) -> Conv1d {
        self.edge = Edge::Both(padding);
        self
    }

    /// Zeros at both ends, so that with strides of 1 the result is as long as the sequence.
    pub fn same(self) -> Conv1d {
        self.padding(Padding::Same)
    }

    /// Zeros before the first step only. A result depends on no later step, and with strides of 1
    /// it is as long as the sequence.
    pub fn causal(mut self) -> Conv1d {
        self.edge = Edge::Causal;
        self
    }
}

config_setters!(Conv1d);
affine_setters!(Conv1d);

impl Described for Conv1d {
    const CLASS: &'static str = "Conv1D";

    fn template() -> Conv1d {
        Conv1d::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Conv1d {
        let layer = Conv1d {
            filters: fields.required("filters", &self.filters),
            kernel_size: fields.required("kernel_size", &OneSize(self.kernel_size)).0,
            strides: fields.value("strides", &OneSize(self.strides)).0,
            edge: fields.value("padding", &self.edge),
            dilation: fields.value("dilation_rate", &OneSize(self.dilation)).0,
            groups: fields.value("groups", &self.groups),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        };
        fields.only("data_format", "channels_last");
        layer
    }
}

impl Layer for Conv1d {
    fn kind(&self) -> &'static str {
        "conv1d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.filters == 0 || self.kernel_size == 0 {
            let text = format!(
                "the layer has {} filters of {} steps; expected at least 1 of each",
                self.filters, self.kernel_size
            );
            return build.refuse(Error::config(text));
        }
        if !check_steps(build, &[self.strides], &[self.dilation]) || !build.takes(3..=3, "[batch, steps, channels]") {
            return;
        }
        let channels = build.channels();
        if check_groups(build, self.groups, channels, self.filters) {
            self.affine.build(build, &[self.kernel_size, channels / self.groups, self.filters]);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let kernel = call.weight("kernel");
        if kernel.is_poisoned() {
            return kernel;
        }
        let (x, padding) = match self.edge {
            Edge::Both(padding) => (call.input().clone(), padding),
            Edge::Causal => {
                let before = (self.kernel_size - 1).saturating_mul(self.dilation);
                (call.input().pad(&[(0, 0), (before, 0), (0, 0)], 0.0), Padding::Valid)
            }
        };
        // A sequence is an image of one row.
        let row = Window {
            strides: (1, self.strides).into(),
            dilation: (1, self.dilation).into(),
            padding,
            ..Window::new((1, self.kernel_size).into())
        };
        let product = row.convolve(&x.expand_dims(1), &kernel.expand_dims(0), self.groups).squeeze(&[1]);
        self.affine.finish(call, &product)
    }
}
