//! `RepeatVector`: repeats a row as every step of a sequence.

use estimand_graph::Tensor;

use super::{Config, Layer, LayerCall, config_setters};

/// `[batch, features]` to `[batch, n, features]`, the same at every step.
#[derive(Clone, Debug)]
#[must_use]
pub struct RepeatVector {
    n: usize,
    config: Config,
}

impl RepeatVector {
    /// Repeats rows `n` times.
    pub fn new(n: usize) -> RepeatVector {
        RepeatVector { n, config: Config::default() }
    }
}

config_setters!(RepeatVector);

impl Layer for RepeatVector {
    fn kind(&self) -> &'static str {
        "repeat_vector"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        match call.expect_rank(2..=2, "[batch, features]") {
            Some(error) => error,
            None => call.input().expand_dims(1).tile(&[1, self.n, 1]),
        }
    }
}
