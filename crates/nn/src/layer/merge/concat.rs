//! `Concat`: concatenates inputs along an axis.

use std::ops::RangeInclusive;

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result, Shape};

use super::super::{Config, Layer, LayerCall, LayerInputs, MODULE, config_setters, resolve_axis};
use super::described;
use super::elementwise::joined_mask;
use crate::config::{self, Described, Fields, Json};

/// Concatenates the inputs along an axis. Their other sizes must be equal.
#[derive(Clone, Debug)]
#[must_use]
pub struct Concat {
    axis: i64,
    config: Config,
}

impl Concat {
    /// Concatenates along the last axis.
    pub fn new() -> Concat {
        Concat { axis: -1, config: Config::default() }
    }

    /// The axis along which inputs are concatenated. By default the last, -1.
    pub fn axis(mut self, axis: i64) -> Concat {
        self.axis = axis;
        self
    }
}

impl Default for Concat {
    fn default() -> Concat {
        Concat::new()
    }
}

config_setters!(Concat);

impl Described for Concat {
    const CLASS: &'static str = "Concatenate";

    fn template() -> Concat {
        Concat::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Concat {
        Concat { axis: fields.value("axis", &self.axis), config: self.config.fields(fields) }
    }
}

impl Layer for Concat {
    fn kind(&self) -> &'static str {
        "concatenate"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        1..=usize::MAX
    }

    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        let tensors = inputs.tensors();
        if resolve_axis(tensors.first()?, self.axis) != Some(1) || tensors[0].rank() < 3 {
            return joined_mask(inputs);
        }
        (0..tensors.len()).find_map(|i| inputs.mask_of(i))?;
        // All steps of an input without a mask count.
        let all = |x: &Tensor| {
            let steps: Shape = x.shape().dims().iter().take(2).copied().collect();
            x.graph().fill(steps, DType::I32, 1.0)
        };
        let masks: Vec<Tensor> = (0..tensors.len())
            .map(|i| inputs.mask_of(i).map_or_else(|| all(&tensors[i]), |mask| mask.cast(DType::I32)))
            .collect();
        Some(Tensor::concat(&masks.iter().collect::<Vec<_>>(), 1).greater(0i32))
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let inputs = call.inputs();
        let axis = resolve_axis(&inputs[0], self.axis);
        let fits = |x: &Tensor| {
            let sizes = x.shape().dims().iter().zip(inputs[0].shape().dims()).enumerate();
            let differ = |a: Option<usize>, b: Option<usize>| a.zip(b).is_some_and(|(a, b)| a != b);
            x.rank() == inputs[0].rank()
                && !sizes.into_iter().any(|(i, (a, b))| Some(i) != axis && differ(a.known(), b.known()))
        };
        if axis.is_none() || !inputs.iter().all(fits) {
            let text = format!("{} cannot join {} along axis {}", self.kind(), described(inputs), self.axis);
            return inputs[0].graph().error(Error::shape(text).help("make all sizes equal except that of the axis"));
        }
        Tensor::concat(&inputs.iter().collect::<Vec<_>>(), self.axis)
    }
}
