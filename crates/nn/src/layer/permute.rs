//! `Permute`: reorders the axes of each row.

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// Reorders axes; the batch stays first.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, Permute};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 10.into(), 64.into()]);
/// assert_eq!(Permute::new([2, 1]).apply(&x).shape().to_string(), "[batch, 64, 10]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Permute {
    dims: Vec<usize>,
    config: Config,
}

impl Permute {
    /// The order of a row's axes. They are counted from 1, as in Keras.
    pub fn new(dims: impl Into<Vec<usize>>) -> Permute {
        Permute { dims: dims.into(), config: Config::default() }
    }
}

config_setters!(Permute);

impl Described for Permute {
    const CLASS: &'static str = "Permute";

    fn template() -> Permute {
        Permute::new([1])
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Permute {
        Permute { dims: fields.required("dims", &self.dims), config: self.config.fields(fields) }
    }
}

impl Layer for Permute {
    fn kind(&self) -> &'static str {
        "permute"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let mut sorted = self.dims.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(1..x.rank()) {
            let text = format!(
                "the order of axes {:?} does not fit {}; expected each of 1 to {} once",
                self.dims,
                x.describe(),
                x.rank().saturating_sub(1)
            );
            return x.graph().error(Error::shape(text));
        }
        let order: Vec<usize> = [0].into_iter().chain(self.dims.iter().copied()).collect();
        x.transpose(&order)
    }
}
