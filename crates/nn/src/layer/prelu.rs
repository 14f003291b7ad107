//! `PRelu`: a leaky rectifier whose slopes are learnt.

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::{Error, Result};

use super::weight_options::{WeightOptions, weight_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// `x` above 0, `alpha * x` below, with an `alpha` for each element of a row.
///
/// Variable: `alpha` of a row's shape, 1 along the shared axes.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, PRelu};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("image", DType::F32, [Dim::BATCH, 8.into(), 8.into(), 3.into()]);
/// // One slope for each channel.
/// assert!(!PRelu::new().shared_axes([1, 2]).apply(&x).is_poisoned());
/// assert_eq!(g.get_variable("p_re_lu/alpha").shape().to_string(), "[1, 1, 3]");
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PRelu {
    shared_axes: Vec<usize>,
    alpha: WeightOptions,
    config: Config,
}

impl PRelu {
    /// Slopes that begin at 0, one for each element of a row.
    pub fn new() -> PRelu {
        PRelu::default()
    }

    /// The axes that share one slope; the first axis of a row is 1. By default none.
    pub fn shared_axes(mut self, axes: impl Into<Vec<usize>>) -> PRelu {
        self.shared_axes = axes.into();
        self
    }
}

config_setters!(PRelu);

const KEYS: [&str; 3] = ["alpha_initializer", "alpha_regularizer", "alpha_constraint"];

weight_setters!(PRelu, alpha, "list of slopes", "at 0": alpha_initializer, alpha_regularizer, alpha_constraint);

impl Described for PRelu {
    const CLASS: &'static str = "PReLU";

    fn template() -> PRelu {
        PRelu::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> PRelu {
        let axes = (!self.shared_axes.is_empty()).then(|| self.shared_axes.clone());
        PRelu {
            shared_axes: fields.value("shared_axes", &axes).unwrap_or_default(),
            alpha: self.alpha.fields(fields, KEYS, Initializer::Zeros),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for PRelu {
    fn kind(&self) -> &'static str {
        "p_re_lu"
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
        if !build.takes(2..=usize::MAX, "[batch, ...]") {
            return;
        }
        let x = build.input();
        if let Some(axis) = self.shared_axes.iter().find(|&&axis| axis == 0 || axis >= x.rank()) {
            let text = format!("axis {axis} of {} cannot be shared; expected 1 to {}", x.describe(), x.rank() - 1);
            return build.refuse(Error::shape(text));
        }
        let size = |axis| if self.shared_axes.contains(&axis) { Some(1) } else { x.shape().dims()[axis].known() };
        let Some(dims) = (1..x.rank()).map(size).collect::<Option<Vec<usize>>>() else {
            let text = format!("the sizes of {} are not all known, so the slopes cannot be made", x.describe());
            return build
                .refuse(Error::shape(text).help("share the slopes along the unknown axes with .shared_axes(..)"));
        };
        self.alpha.build(build, "alpha", &dims, Initializer::Zeros);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        x.relu() - call.weight("alpha") * (-x).relu()
    }
}
