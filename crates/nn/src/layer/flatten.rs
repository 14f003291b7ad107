//! `Flatten`: turns each row into a vector.

use estimand_graph::Tensor;

use super::{Config, Layer, LayerCall, config_setters};

/// Flattens the axes of each row into one: `[batch, ...]` to `[batch, n]`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Flatten {
    config: Config,
}

impl Flatten {
    /// Creates the layer. It has no options.
    pub fn new() -> Flatten {
        Flatten::default()
    }
}

config_setters!(Flatten);

impl Layer for Flatten {
    fn kind(&self) -> &'static str {
        "flatten"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        match call.expect_rank(1..=usize::MAX, "[batch, ...]") {
            Some(error) => error,
            None => call.input().flatten(),
        }
    }
}
