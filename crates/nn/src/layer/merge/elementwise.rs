//! `Add`, `Subtract`, `Multiply`, `Average`, `Maximum` and `Minimum`: element-wise merges with
//! Keras's broadcasting.

use std::ops::RangeInclusive;

use estimand_graph::Tensor;
use estimand_tensor::{Dim, Error, Result};

use super::super::{Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use super::described;
use crate::config::{self, Described, Fields, Json};

/// Gives all inputs the same number of axes: inputs with fewer get axes of size 1 after the batch
/// axis. The sizes of an axis must be equal or 1, and those of the batch equal.
#[track_caller]
fn aligned(kind: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, Tensor> {
    let rank = inputs.iter().map(|t| t.rank()).max().unwrap_or(0);
    let mut wide = Vec::with_capacity(inputs.len());
    for x in inputs {
        if x.rank() == 0 {
            let text = format!("{kind} got {}; expected [batch, ...] for each", described(inputs));
            return Err(x.graph().error(Error::shape(text)));
        }
        let mut x = x.clone();
        while x.rank() < rank {
            x = x.expand_dims(1);
        }
        wide.push(x);
    }
    if let Some(other) = wide.iter().find(|x| x.dtype() != wide[0].dtype()) {
        let text = format!("{kind} got {}; expected the same dtype for all", described(inputs));
        return Err(wide[0].graph().error(Error::dtype(Some(wide[0].dtype()), other.dtype(), text)));
    }
    for axis in 0..rank {
        let mut sizes = wide.iter().filter_map(|x| x.shape().dims()[axis].known()).filter(|&n| axis == 0 || n != 1);
        let first = sizes.next();
        if let Some(other) = sizes.find(|&n| Some(n) != first) {
            let expected = if axis == 0 { "the same batch size" } else { "equal sizes, or 1" };
            let first = first.map_or(Dim::BATCH, Dim::Known);
            let text = format!(
                "{kind} got {}: the sizes {first} and {other} do not match; expected {expected}",
                described(inputs)
            );
            return Err(wide[0].graph().error(Error::shape(text)));
        }
    }
    Ok(wide)
}

/// Steps that count in all inputs that have a mask.
#[track_caller]
pub(super) fn all_count(inputs: &LayerInputs) -> Option<Tensor> {
    let mut masks = (0..inputs.tensors().len()).filter_map(|i| inputs.mask_of(i));
    let first = masks.next()?.clone();
    Some(masks.fold(first, |all, mask| all.logical_and(mask)))
}

/// Combines all inputs pairwise, starting with the first.
#[track_caller]
fn fold(kind: &str, inputs: &[Tensor], join: fn(&Tensor, &Tensor) -> Tensor) -> Tensor {
    match aligned(kind, inputs) {
        Err(error) => error,
        Ok(wide) => {
            let mut result = wide[0].clone();
            for x in &wide[1..] {
                result = join(&result, x);
            }
            result
        }
    }
}

macro_rules! merge {
    ($(#[$doc:meta])* $merge:ident, $kind:literal, $class:literal, $n_inputs:expr, |$inputs:ident| $result:expr) => {
        $(#[$doc])*
        ///
        /// Sizes of an axis must be equal or 1. An input with fewer axes is aligned with the last
        /// axes of the others.
        #[derive(Clone, Debug, Default)]
        #[must_use]
        pub struct $merge {
            config: Config,
        }

        impl $merge {
            /// Creates the layer. It has no weights.
            pub fn new() -> $merge {
                $merge::default()
            }
        }

        config_setters!($merge);

        impl Described for $merge {
            const CLASS: &'static str = $class;

            fn template() -> $merge {
                $merge::new()
            }

            fn fields(&self, fields: &mut Fields<'_>) -> $merge {
                $merge { config: self.config.fields(fields) }
            }
        }

        impl Layer for $merge {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &Config {
                &self.config
            }

            fn to_json(&self) -> Result<Json> {
                config::write(MODULE, self)
            }

            fn n_inputs(&self) -> RangeInclusive<usize> {
                $n_inputs
            }

            fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
                all_count(inputs)
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                // No closure here: it would hide the caller's line.
                let $inputs = call.inputs();
                $result
            }
        }
    };
}

/// Any number of inputs.
const ANY: RangeInclusive<usize> = 1..=usize::MAX;

merge!(
    /// The sum of all inputs.
    Add,
    "add",
    "Add",
    ANY,
    |inputs| fold("add", inputs, |a, b| a + b)
);
merge!(
    /// The first of two inputs minus the second.
    Subtract,
    "subtract",
    "Subtract",
    2..=2,
    |inputs| fold("subtract", inputs, |a, b| a - b)
);
merge!(
    /// The product of all inputs.
    Multiply,
    "multiply",
    "Multiply",
    ANY,
    |inputs| fold("multiply", inputs, |a, b| a * b)
);
merge!(
    /// The mean of all inputs.
    Average,
    "average",
    "Average",
    ANY,
    |inputs| fold("average", inputs, |a, b| a + b) / inputs.len() as f64
);
merge!(
    /// The largest of all inputs.
    Maximum,
    "maximum",
    "Maximum",
    ANY,
    |inputs| fold("maximum", inputs, |a, b| a.maximum(b))
);
merge!(
    /// The smallest of all inputs.
    Minimum,
    "minimum",
    "Minimum",
    ANY,
    |inputs| fold("minimum", inputs, |a, b| a.minimum(b))
);
