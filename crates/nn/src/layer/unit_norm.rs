//! `UnitNorm` as a layer: vectors of length 1.

use estimand_graph::{Axes, Tensor};
use estimand_tensor::{Error, Result};

use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Elements, Fields, Json};

/// Divides the vectors along some axes by their length.
#[derive(Clone, Debug)]
#[must_use]
pub struct UnitNormalization {
    axes: Vec<i64>,
    config: Config,
}

impl UnitNormalization {
    /// Vectors along the last axis.
    pub fn new() -> UnitNormalization {
        UnitNormalization { axes: vec![-1], config: Config::default() }
    }

    /// The axes along which a vector lies, counted from the end if negative. By default the last.
    pub fn axes(mut self, axes: impl Into<Vec<i64>>) -> UnitNormalization {
        self.axes = axes.into();
        self
    }
}

impl Default for UnitNormalization {
    fn default() -> UnitNormalization {
        UnitNormalization::new()
    }
}

config_setters!(UnitNormalization);

impl Described for UnitNormalization {
    const CLASS: &'static str = "UnitNormalization";

    fn template() -> UnitNormalization {
        UnitNormalization::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> UnitNormalization {
        UnitNormalization {
            axes: fields.value("axis", &Elements(self.axes.clone())).0,
            config: self.config.fields(fields),
        }
    }
}

impl Layer for UnitNormalization {
    fn kind(&self) -> &'static str {
        "unit_normalization"
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
        if self.axes.is_empty() {
            build.refuse(Error::config("the layer has no axes; expected at least one"));
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        x * x.square().sum_axes(Axes::of(&self.axes[..]).keep_dims()).maximum(1e-12).rsqrt()
    }
}
