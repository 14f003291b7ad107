//! `Dense`: every output is a weighted sum of all inputs.

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::affine::{Affine, affine_setters};
use super::build::with_last;
use super::weight_options::KERNEL;
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// `activation(x . kernel + bias)` over the last axis, for any number of leading axes.
///
/// Variables: `kernel` `[inputs, units]` and `bias` `[units]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Dense, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 5.into(), 4.into()]);
/// assert_eq!(Dense::new(3).relu().apply(&x).shape().to_string(), "[batch, 5, 3]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Dense {
    units: usize,
    affine: Affine,
    config: Config,
}

impl Dense {
    /// A layer of `units` outputs, with a bias and without activation.
    pub fn new(units: usize) -> Dense {
        Dense { units, affine: Affine::new(), config: Config::default() }
    }
}

config_setters!(Dense);
affine_setters!(Dense);

impl Described for Dense {
    const CLASS: &'static str = "Dense";

    fn template() -> Dense {
        Dense::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Dense {
        Dense {
            units: fields.required("units", &self.units),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Dense {
    fn kind(&self) -> &'static str {
        "dense"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        true
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.units == 0 {
            return build.refuse(Error::config("the layer has 0 units; expected at least 1"));
        }
        if build.takes(2..=usize::MAX, "[batch, ..., inputs]") {
            self.affine.build(build, &[build.channels(), self.units]);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let kernel = call.weight("kernel");
        let product = match x.rank() {
            0..=2 => x.matmul(&kernel),
            // One product over all rows, like Keras's tensordot.
            _ => x.reshape([-1, x.channels() as i64]).matmul(&kernel).reshape_as(with_last(x, self.units)),
        };
        self.affine.finish(call, &product)
    }
}
