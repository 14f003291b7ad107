//! `Softmax`: turns scores into probabilities that add up to 1 along an axis.

use estimand_graph::Tensor;

use super::{Config, Layer, LayerCall, config_setters};

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

impl Layer for Softmax {
    fn kind(&self) -> &'static str {
        "softmax"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
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
