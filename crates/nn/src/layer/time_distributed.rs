//! `TimeDistributed`: applies a layer to every step.

use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result, Shape};

use super::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use crate::activation::Activation;
use crate::config::{self, Described, Fields, Json};

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

    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        if let Some(mask) = inputs.mask_of(0) {
            return Some(mask.clone());
        }
        // The layer itself may mark steps: an Embedding of sequences of sequences.
        let x = inputs.tensors().first().filter(|x| x.rank() >= 3)?;
        let mask = self.layer.compute_mask(&LayerInputs::of(&all_steps(x)))?;
        let steps = x.shape().dims().iter().take(2);
        Some(mask.reshape_as(steps.chain(mask.shape().dims().iter().skip(1)).copied().collect::<Shape>()))
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        if let Some(poison) = call.expect_rank(3..=usize::MAX, "[batch, time, ...]") {
            return poison;
        }
        let y = call.child(LAYER, &*self.layer, &all_steps(x));
        if y.is_poisoned() {
            return y;
        }
        let steps = x.shape().dims().iter().take(2);
        y.reshape_as(steps.chain(y.shape().dims().iter().skip(1)).copied().collect::<Shape>())
    }
}
