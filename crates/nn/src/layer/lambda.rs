//! `Lambda`: a function of the user as a layer.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::{Config, Layer, LayerCall, config_setters};
use crate::config::Json;

/// A function of the inputs of a call.
type Function = dyn Fn(&[Tensor]) -> Tensor + Send + Sync;

/// A function without weights as a layer. Code cannot be written to a file: `to_json` refuses it by
/// its name, and so does everything that writes a model as JSON. Exports contain its nodes.
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::Graph;
/// use estimand_nn::{Lambda, Layer};
/// let g = Graph::new();
/// let squares = Lambda::new(|x| x[0].square()).name("squares");
/// assert_eq!(squares.apply(&g.constant([2.0f32, 3.0])).eval()?.as_slice::<f32>()?, [4.0, 9.0]);
/// assert!(squares.to_json().is_err());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Lambda {
    function: Arc<Function>,
    config: Config,
}

impl Lambda {
    /// Computes the result from the inputs of a call, of which there is at least one.
    pub fn new(function: impl Fn(&[Tensor]) -> Tensor + Send + Sync + 'static) -> Lambda {
        Lambda { function: Arc::new(function), config: Config::default() }
    }
}

config_setters!(Lambda);

impl fmt::Debug for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lambda({})", self.config.name.as_deref().unwrap_or("a function"))
    }
}

impl Layer for Lambda {
    fn kind(&self) -> &'static str {
        "lambda"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        1..=usize::MAX
    }

    fn supports_masking(&self) -> bool {
        true
    }

    fn to_json(&self) -> Result<Json> {
        let name = self.config.name.as_deref().unwrap_or("lambda");
        let text = format!("the layer `{name}` is a function, which cannot be written as JSON");
        Err(Error::unsupported(text).help("write a layer of your own with Described, or use layers of the library"))
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        (self.function)(call.inputs())
    }
}
