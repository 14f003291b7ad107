//! `Conv1d`: a convolution over sequences.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::affine::{Affine, affine_setters};
use super::steps::{Edge, Steps, steps_setters};
use super::weight_options::KERNEL;
use super::window::check_groups;
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

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
    steps: Steps<Edge>,
    groups: usize,
    affine: Affine,
    config: Config,
}

impl Conv1d {
    /// `filters` filters over `kernel_size` steps, with a bias and without activation.
    pub fn new(filters: usize, kernel_size: usize) -> Conv1d {
        let steps = Steps::new(kernel_size);
        Conv1d { filters, steps, groups: 1, affine: Affine::new(), config: Config::default() }
    }

    /// The number of groups that channels and filters are divided into. Each filter sees only the
    /// channels of its group. By default 1.
    pub fn groups(mut self, groups: usize) -> Conv1d {
        self.groups = groups;
        self
    }
}

config_setters!(Conv1d);
steps_setters!(Conv1d, causal);
affine_setters!(Conv1d);

impl Described for Conv1d {
    const CLASS: &'static str = "Conv1D";

    fn template() -> Conv1d {
        Conv1d::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Conv1d {
        Conv1d {
            filters: fields.required("filters", &self.filters),
            steps: self.steps.fields(fields),
            groups: fields.value("groups", &self.groups),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        }
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
        if self.steps.fits(build, self.filters, "filters") {
            let channels = build.channels();
            if check_groups(build, self.groups, channels, self.filters) {
                self.affine.build(build, &[self.steps.size, channels / self.groups, self.filters]);
            }
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let kernel = call.weight("kernel");
        if kernel.is_poisoned() {
            return kernel;
        }
        let (x, row) = self.steps.row_of(call.input());
        let product = row.convolve(&x, &kernel.expand_dims(0), self.groups).squeeze(&[1]);
        self.affine.finish(call, &product)
    }
}
