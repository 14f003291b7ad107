//! `Reshape`: gives each row another shape.

use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// Arranges the elements of each row in other sizes; the batch axis stays.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, Reshape};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 784.into()]);
/// assert_eq!(Reshape::new([28, -1, 1]).apply(&x).shape().to_string(), "[batch, 28, 28, 1]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Reshape {
    dims: Vec<i64>,
    config: Config,
}

impl Reshape {
    /// The sizes of a row; one may be -1 and is computed from the others.
    pub fn new(dims: impl Into<Vec<i64>>) -> Reshape {
        Reshape { dims: dims.into(), config: Config::default() }
    }
}

config_setters!(Reshape);

impl Described for Reshape {
    const CLASS: &'static str = "Reshape";

    fn template() -> Reshape {
        Reshape::new([-1])
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Reshape {
        Reshape { dims: fields.required("target_shape", &self.dims), config: self.config.fields(fields) }
    }
}

impl Layer for Reshape {
    fn kind(&self) -> &'static str {
        "reshape"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        if let Some(error) = call.expect_rank(1..=usize::MAX, "[batch, ...]") {
            return error;
        }
        let x = call.input();
        let mut shape = Shape::from([x.shape().dims()[0]]);
        for &d in &self.dims {
            shape.0.push(match usize::try_from(d) {
                Ok(n) => Dim::Known(n),
                Err(_) if d == -1 => Graph::ANY,
                Err(_) => {
                    return x
                        .graph()
                        .error(Error::shape(format!("a size of the new shape is {d}; expected -1 or more")));
                }
            });
        }
        x.reshape_as(shape)
    }
}
