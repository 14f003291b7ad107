//! `TimeDistributed`: applies a layer to every step.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result, Shape};

use super::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use crate::activation::Activation;
use crate::config::{self, Described, Dialect, Fields, Json};

/// Applies a layer to every step of `[batch, time, ...]`, with the same weights.
///
/// The layer sees all steps of all rows as one batch. Its variables are in the scope of this layer.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Conv2d, Layer, TimeDistributed};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let films = g.placeholder("films", DType::F32, [Dim::BATCH, 7.into(), 5.into(), 5.into(), 3.into()]);
/// let y = TimeDistributed::new(Conv2d::new(2, 3)).apply(&films);
/// assert_eq!(y.shape().to_string(), "[batch, 7, 3, 3, 2]");
/// assert!(g.body().variables().find("time_distributed/kernel").is_ok());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct TimeDistributed {
    layer: Arc<dyn Layer>,
    config: Config,
}

impl TimeDistributed {
    /// Applies `layer` to every step.
    pub fn new(layer: impl Layer + 'static) -> TimeDistributed {
        TimeDistributed { layer: Arc::new(layer), config: Config::default() }
    }
}

config_setters!(TimeDistributed);

const LAYER: &str = "layer";

/// Merges the batch and time axes: all steps of all rows, one after the other.
#[track_caller]
fn all_steps(x: &Tensor) -> Tensor {
    let rows = Shape::from([estimand_graph::Graph::ANY]);
    let step = x.shape().dims().iter().skip(2);
    x.reshape_as(rows.dims().iter().chain(step).copied().collect::<Shape>())
}

/// Splits the first axis into the batch and time axes that `x` has.
#[track_caller]
fn with_steps_of(all: &Tensor, x: &Tensor) -> Tensor {
    let steps = x.shape().dims().iter().take(2);
    all.reshape_as(steps.chain(all.shape().dims().iter().skip(1)).copied().collect::<Shape>())
}

/// All steps as one batch, with the mask of their parts. A mask `[batch, time]` has no part masks,
/// so the steps carry none.
#[track_caller]
fn step_inputs(x: &Tensor, mask: Option<&Tensor>) -> LayerInputs {
    let fitting = mask.filter(|mask| mask.rank() + 1 == x.rank());
    LayerInputs::of(&all_steps(x)).carried_masks(vec![fitting.map(all_steps)])
}

impl Described for TimeDistributed {
    const CLASS: &'static str = "TimeDistributed";

    fn template() -> TimeDistributed {
        TimeDistributed::new(Activation::Linear)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> TimeDistributed {
        TimeDistributed { layer: fields.required("layer", &self.layer), config: self.config.fields(fields) }
    }
}

impl Layer for TimeDistributed {
    fn kind(&self) -> &'static str {
        "time_distributed"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let x = build.input();
        if x.rank() < 3 {
            let text = format!("{} has no steps; expected [batch, time, ...]", x.describe());
            return build.refuse(Error::shape(text));
        }
        let steps = all_steps(x);
        build.child(LAYER, "", &*self.layer, &steps);
    }

    /// TF: in Keras 2 the layer inside decides, as of an `Embedding` of sequences of sequences; if
    /// it has no mask, a step counts if any part of it does. Keras 3 hands the mask on as it is.
    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        let mask = inputs.mask_of(0);
        let Some(x) = inputs.tensors().first().filter(|x| x.rank() >= 3 && inputs.rules() == Dialect::Keras2) else {
            return mask.cloned();
        };
        match self.layer.compute_mask(&step_inputs(x, mask)) {
            Some(made) => Some(with_steps_of(&made, x)),
            None => {
                let parts: Vec<i64> = (2..mask?.rank() as i64).collect();
                mask.map(|mask| if parts.is_empty() { mask.clone() } else { mask.any_axes(&parts) })
            }
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        if let Some(poison) = call.expect_rank(3..=usize::MAX, "[batch, time, ...]") {
            return poison;
        }
        let inputs = step_inputs(x, call.mask_of(0)).rules_of(call.rules());
        let y = call.child(LAYER, &*self.layer, &inputs);
        if y.is_poisoned() { y } else { with_steps_of(&y, x) }
    }
}
