//! `Add`, `Subtract`, `Multiply`, `Average`, `Maximum` and `Minimum`: element-wise merges with
//! Keras's broadcasting.

use std::ops::RangeInclusive;

use estimand_graph::Tensor;
use estimand_tensor::{Dim, Error, Result};

use super::super::{Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use super::described;
use crate::config::{self, Described, Dialect, Fields, Json};

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

/// Steps that count in all inputs that have a mask. TF: in Keras 3, those that count in any input,
/// and all of them if an input has no mask.
#[track_caller]
pub(super) fn joined_mask(inputs: &LayerInputs) -> Option<Tensor> {
    let all: Vec<&Tensor> = (0..inputs.tensors().len()).filter_map(|i| inputs.mask_of(i)).collect();
    let first = (*all.first()?).clone();
    match inputs.rules() {
        Dialect::Keras2 => Some(all[1..].iter().fold(first, |joined, mask| joined.logical_and(*mask))),
        Dialect::Keras3 if all.len() < inputs.tensors().len() => None,
        Dialect::Keras3 => Some(all[1..].iter().fold(first, |joined, mask| joined.logical_or(*mask))),
    }
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

/// A mask with as many axes as a value.
#[track_caller]
fn wide(mask: &Tensor, x: &Tensor) -> Tensor {
    (mask.rank()..x.rank()).fold(mask.clone(), |mask, _| mask.expand_dims(-1))
}

/// TF: in Keras 3, where the mask of a value says that a step does not count, the other value
/// stands for it.
#[track_caller]
fn masked_extreme(kind: &str, call: &LayerCall<'_>, join: fn(&Tensor, &Tensor) -> Tensor) -> Tensor {
    let values = match aligned(kind, call.inputs()) {
        Err(error) => return error,
        Ok(values) => values,
    };
    let (mut result, mut result_mask) = (values[0].clone(), call.mask_of(0).cloned());
    for (i, value) in values.iter().enumerate().skip(1) {
        let mask = call.mask_of(i);
        let value = mask.map_or_else(|| value.clone(), |mask| wide(mask, value).select(value, &result));
        if let Some(mask) = &result_mask {
            result = wide(mask, &result).select(&result, &value);
        }
        result_mask = result_mask.zip(mask).map(|(all, mask)| all.logical_or(mask));
        result = join(&result, &value);
    }
    result
}

/// TF: in Keras 3, a factor is 1 where its mask says that a step does not count, and the product is
/// 0 where all masks do.
#[track_caller]
fn masked_product(call: &LayerCall<'_>) -> Tensor {
    let inputs = call.inputs();
    let mut factors = inputs.to_vec();
    for (i, factor) in factors.iter_mut().enumerate() {
        if let Some(mask) = call.mask_of(i) {
            *factor = wide(mask, factor).select(&*factor, 1.0);
        }
    }
    let product = fold("multiply", &factors, |a, b| a * b);
    let masks: Option<Vec<&Tensor>> = (0..inputs.len()).map(|i| call.mask_of(i)).collect();
    let Some((first, rest)) = masks.as_ref().and_then(|masks| masks.split_first()) else { return product };
    let any = rest.iter().fold((*first).clone(), |any, mask| any.logical_or(*mask));
    wide(&any, &product).select(&product, 0.0)
}

macro_rules! merge {
    ($(#[$doc:meta])* $merge:ident, $kind:literal, $class:literal, $n_inputs:expr, |$call:ident| $result:expr) => {
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
                joined_mask(inputs)
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                // No closure here: it would hide the caller's line.
                let $call = call;
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
    |call| fold("add", call.inputs(), |a, b| a + b)
);
merge!(
    /// The first of two inputs minus the second.
    Subtract,
    "subtract",
    "Subtract",
    2..=2,
    |call| fold("subtract", call.inputs(), |a, b| a - b)
);
merge!(
    /// The product of all inputs.
    Multiply,
    "multiply",
    "Multiply",
    ANY,
    |call| match call.rules() {
        Dialect::Keras2 => fold("multiply", call.inputs(), |a, b| a * b),
        Dialect::Keras3 => masked_product(call),
    }
);
merge!(
    /// The mean of all inputs.
    Average,
    "average",
    "Average",
    ANY,
    |call| fold("average", call.inputs(), |a, b| a + b) / call.inputs().len() as f64
);
merge!(
    /// The largest of all inputs.
    Maximum,
    "maximum",
    "Maximum",
    ANY,
    |call| match call.rules() {
        Dialect::Keras2 => fold("maximum", call.inputs(), |a, b| a.maximum(b)),
        Dialect::Keras3 => masked_extreme("maximum", call, |a, b| a.maximum(b)),
    }
);
merge!(
    /// The smallest of all inputs.
    Minimum,
    "minimum",
    "Minimum",
    ANY,
    |call| match call.rules() {
        Dialect::Keras2 => fold("minimum", call.inputs(), |a, b| a.minimum(b)),
        Dialect::Keras3 => masked_extreme("minimum", call, |a, b| a.minimum(b)),
    }
);
