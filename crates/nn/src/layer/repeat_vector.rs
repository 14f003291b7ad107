//! `RepeatVector`: repeats a row as every step of a sequence.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

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

impl Described for RepeatVector {
    const CLASS: &'static str = "RepeatVector";

    fn template() -> RepeatVector {
        RepeatVector::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RepeatVector {
        RepeatVector { n: fields.required("n", &self.n), config: self.config.fields(fields) }
    }
}

impl Layer for RepeatVector {
    fn kind(&self) -> &'static str {
        "repeat_vector"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        match call.expect_rank(2..=2, "[batch, features]") {
            Some(error) => error,
            None => call.input().expand_dims(1).tile(&[1, self.n, 1]),
        }
    }
}
