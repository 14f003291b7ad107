//! `Masking`: marks padding steps of sequences.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// Sets a step of `[batch, time, ...]` to 0 if all its numbers equal `mask_value`, as in padded
/// sequences.
///
/// In a Keras model, the layers that follow get the mask. Tensors of a graph carry no mask: there,
/// pass it to the calls.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::layer::LayerInputs;
/// use estimand_nn::{Gru, Layer, Masking};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let masking = Masking::new(-1.0);
/// let y = Gru::new(3).apply(&LayerInputs::of(&masking.apply(&x)).mask(&masking.compute_mask(&x)));
/// # assert!(!y.is_poisoned());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Masking {
    mask_value: f64,
    config: Config,
}

impl Masking {
    /// Masks steps whose numbers all equal `mask_value`.
    pub fn new(mask_value: f64) -> Masking {
        Masking { mask_value, config: Config::default() }
    }

    /// The mask as booleans without the last axis: true for steps in which some number differs from
    /// the mask value.
    #[track_caller]
    pub fn compute_mask(&self, x: &Tensor) -> Tensor {
        x.not_equal(self.mask_value).any_axes([-1])
    }
}

config_setters!(Masking);

impl Described for Masking {
    const CLASS: &'static str = "Masking";

    fn template() -> Masking {
        Masking::new(0.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Masking {
        Masking { mask_value: fields.value("mask_value", &self.mask_value), config: self.config.fields(fields) }
    }
}

impl Layer for Masking {
    fn kind(&self) -> &'static str {
        "masking"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.tensors().first().map(|x| self.compute_mask(x))
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let form = "[batch, time, ...]";
        call.expect_rank(2..=usize::MAX, form)
            .unwrap_or_else(|| self.compute_mask(x).expand_dims(-1).cast(x.dtype()) * x)
    }
}
