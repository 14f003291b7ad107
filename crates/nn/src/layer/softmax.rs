//! `Softmax`: turns scores into probabilities that add up to 1 along an axis.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Result};

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json, OneAxis};

/// `e^x / sum(e^x)` along an axis.
#[derive(Clone, Debug)]
#[must_use]
pub struct Softmax {
    axis: i64,
    config: Config,
}

impl Softmax {
    /// Softmax along the last axis.
    pub fn new() -> Softmax {
        Softmax { axis: -1, config: Config::default() }
    }

    /// The axis whose elements add up to 1. By default the last, -1.
    pub fn axis(mut self, axis: i64) -> Softmax {
        self.axis = axis;
        self
    }
}

impl Default for Softmax {
    fn default() -> Softmax {
        Softmax::new()
    }
}

config_setters!(Softmax);

impl Described for Softmax {
    const CLASS: &'static str = "Softmax";

    fn template() -> Softmax {
        Softmax::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Softmax {
        Softmax { axis: fields.value("axis", &OneAxis(self.axis)).0, config: self.config.fields(fields) }
    }
}

impl Layer for Softmax {
    fn kind(&self) -> &'static str {
        "softmax"
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

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = match call.mask_of(0).filter(|mask| mask.rank() == call.input().rank()) {
            // TF: masked elements become too small to count.
            Some(mask) => &(call.input() + (1.0 - mask.cast(DType::F32)) * -1e9),
            None => call.input(),
        };
        match call.axis(self.axis) {
            Err(error) => error,
            Ok(axis) if axis + 1 == x.rank() => x.softmax(),
            Ok(axis) => {
                // Swaps the axis with the last one, and swaps it back afterwards.
                let mut order: Vec<usize> = (0..x.rank()).collect();
                order.swap(axis, x.rank() - 1);
                x.transpose(&order).softmax().transpose(&order)
            }
        }
    }
}
