//! `Masking`: steps that hold nothing.

use estimand_graph::Tensor;

use super::{Config, Layer, LayerCall, config_setters};

/// Marks the steps of `[batch, time, ...]` at which every number is a certain one, as filled-up
/// sequences have them, and sets them to 0.
///
/// A graph of tensors carries no masks along: what follows is given the mask with `.mask(..)`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Gru, Layer, Masking};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let masking = Masking::new(-1.0);
/// let y = Gru::new(3).mask(&masking.compute_mask(&x)).apply(&masking.apply(&x));
/// # assert!(!y.is_poisoned());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Masking {
    mask_value: f64,
    config: Config,
}

impl Masking {
    /// Marks steps of this number.
    pub fn new(mask_value: f64) -> Masking {
        Masking { mask_value, config: Config::default() }
    }

    /// Which steps count: those at which some number is another, as booleans without the last axis.
    #[track_caller]
    pub fn compute_mask(&self, x: &Tensor) -> Tensor {
        x.not_equal(self.mask_value).any_axes(&[-1], false)
    }
}

config_setters!(Masking);

impl Layer for Masking {
    fn kind(&self) -> &'static str {
        "masking"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let form = "[batch, time, ...]";
        call.expect_rank(2..=usize::MAX, form)
            .unwrap_or_else(|| self.compute_mask(x).expand_dims(-1).cast(x.dtype()) * x)
    }
}
