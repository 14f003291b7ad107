//! `Flatten`: turns each row into a vector.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

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

impl Described for Flatten {
    const CLASS: &'static str = "Flatten";

    fn template() -> Flatten {
        Flatten::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Flatten {
        fields.only("data_format", "channels_last");
        Flatten { config: self.config.fields(fields) }
    }
}

impl Layer for Flatten {
    fn kind(&self) -> &'static str {
        "flatten"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        match call.expect_rank(1..=usize::MAX, "[batch, ...]") {
            Some(error) => error,
            None => call.input().flatten(),
        }
    }
}
