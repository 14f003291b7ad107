//! `Attention` and `AdditiveAttention`: sums of values, weighed by how well their keys fit a query.

use std::ops::RangeInclusive;

use estimand_graph::{Initializer, Tensor, Transposed};
use estimand_tensor::{DType, Dim, Error, Result};

use super::inputs::CAUSAL_MASK;
use super::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// What is taken from a score that does not count.
const NEVER: f64 = 1e9;

/// The masks, the softmax and the sum that both layers share.
///
/// TF: places that the value's mask leaves out get no weight; steps that the query's mask leaves
/// out get 0 (the fixture `masks.jsonl`).
#[track_caller]
fn attend(call: &LayerCall<'_>, scores: Tensor, dropout: f64) -> Tensor {
    let (query, value) = (&call.inputs()[0], &call.inputs()[1]);
    let size = |x: &Tensor| x.shape().dims().get(1).copied().unwrap_or(Dim::Known(1));
    let causal = call.all_inputs().uses_causal_mask().then(|| {
        let graph = query.graph();
        let step = graph.range(size(query), DType::I64).expand_dims(-1);
        graph.range(size(value), DType::I64).less_equal(&step)
    });
    let places = call.mask_of(1).map(|mask| mask.expand_dims(1));
    let scores = match places.into_iter().chain(causal).reduce(|a, b| a.logical_and(&b)) {
        Some(mask) => scores - (1.0 - mask.cast(DType::F32)) * NEVER,
        None => scores,
    };
    let weights = scores.softmax();
    let weights = if call.training() && dropout > 0.0 { weights.dropout(dropout) } else { weights };
    let result = weights.matmul(value);
    match call.mask_of(0) {
        Some(mask) => result * mask.cast(DType::F32).expand_dims(-1),
        None => result,
    }
}

/// The key of a call, which is the value if there is no other.
fn key(inputs: &[Tensor]) -> &Tensor {
    inputs.get(2).unwrap_or(&inputs[1])
}

/// The sum of each query and each key: `[batch, steps, places, dim]`.
#[track_caller]
fn sums(inputs: &[Tensor]) -> Tensor {
    inputs[0].expand_dims(2) + key(inputs).expand_dims(1)
}

/// Checks that query, value and key are sequences of the same width.
#[track_caller]
fn check(build: &Build<'_>, dropout: f64) -> bool {
    for x in build.inputs() {
        if x.rank() != 3 || x.dtype() != DType::F32 {
            build.refuse(Error::shape(format!("an input is {}; expected f32 [batch, steps, dim]", x.describe())));
            return false;
        }
    }
    if !(0.0..1.0).contains(&dropout) {
        build.refuse(Error::config(format!("the dropout rate is {dropout}; expected 0 <= rate < 1")));
        return false;
    }
    true
}

/// Dot-product attention (Luong): applied to a query `[batch, steps, dim]`, a value
/// `[batch, places, dim]` and, if it is not the value, a key.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Attention {
    use_scale: bool,
    is_concat: bool,
    dropout: f64,
    config: Config,
}

impl Attention {
    /// Scores are the dot products of query and key.
    pub fn new() -> Attention {
        Attention::default()
    }

    /// Whether a weight scales the scores. By default not.
    pub fn use_scale(mut self, use_scale: bool) -> Attention {
        self.use_scale = use_scale;
        self
    }

    /// Scores are the sums of `tanh(query + key)`. By default they are dot products.
    pub fn concat_scores(mut self) -> Attention {
        self.is_concat = true;
        self
    }

    /// The part of the weights that is dropped in training. By default 0.
    pub fn dropout(mut self, rate: f64) -> Attention {
        self.dropout = rate;
        self
    }
}

config_setters!(Attention);

impl Described for Attention {
    const CLASS: &'static str = "Attention";

    fn template() -> Attention {
        Attention::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Attention {
        fields.ignored("seed");
        Attention {
            use_scale: fields.value("use_scale", &self.use_scale),
            is_concat: fields.choice("score_mode", &self.is_concat, &[("dot", false), ("concat", true)]),
            dropout: fields.value("dropout", &self.dropout),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Attention {
    fn kind(&self) -> &'static str {
        "attention"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        2..=3
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        &[CAUSAL_MASK]
    }

    fn build(&self, build: &mut Build<'_>) {
        if !check(build, self.dropout) {
            return;
        }
        if self.use_scale {
            build.weight("scale", &[], Initializer::Ones, None);
        }
        if self.is_concat {
            build.weight("concat_score_weight", &[], Initializer::Ones, None);
        }
    }

    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.mask_of(0).cloned()
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let scale = call.find("scale");
        let scores = match (self.is_concat, scale) {
            (true, Some(scale)) => {
                (sums(call.inputs()) * scale).tanh().sum_axes([-1]) * call.weight("concat_score_weight")
            }
            (true, None) => sums(call.inputs()).tanh().sum_axes([-1]) * call.weight("concat_score_weight"),
            (false, Some(scale)) => call.input().matmul_with(key(call.inputs()), Transposed::Right) * scale,
            (false, None) => call.input().matmul_with(key(call.inputs()), Transposed::Right),
        };
        attend(call, scores, self.dropout)
    }
}

/// Additive attention (Bahdanau): applied to a query `[batch, steps, dim]`, a value
/// `[batch, places, dim]` and, if it is not the value, a key.
///
/// Variable: `scale` `[dim]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct AdditiveAttention {
    use_scale: bool,
    dropout: f64,
    config: Config,
}

impl AdditiveAttention {
    /// Scores are the sums of `scale * tanh(query + key)`.
    pub fn new() -> AdditiveAttention {
        AdditiveAttention { use_scale: true, dropout: 0.0, config: Config::default() }
    }

    /// Whether the layer has the weights `scale`. By default it does.
    pub fn use_scale(mut self, use_scale: bool) -> AdditiveAttention {
        self.use_scale = use_scale;
        self
    }

    /// The part of the weights that is dropped in training. By default 0.
    pub fn dropout(mut self, rate: f64) -> AdditiveAttention {
        self.dropout = rate;
        self
    }
}

impl Default for AdditiveAttention {
    fn default() -> AdditiveAttention {
        AdditiveAttention::new()
    }
}

config_setters!(AdditiveAttention);

impl Described for AdditiveAttention {
    const CLASS: &'static str = "AdditiveAttention";

    fn template() -> AdditiveAttention {
        AdditiveAttention::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> AdditiveAttention {
        AdditiveAttention {
            use_scale: fields.value("use_scale", &self.use_scale),
            dropout: fields.value("dropout", &self.dropout),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for AdditiveAttention {
    fn kind(&self) -> &'static str {
        "additive_attention"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        2..=3
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        &[CAUSAL_MASK]
    }

    fn build(&self, build: &mut Build<'_>) {
        if check(build, self.dropout) && self.use_scale {
            let dim = build.inputs()[1].channels();
            build.weight("scale", &[dim], Initializer::GlorotUniform, None);
        }
    }

    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.mask_of(0).cloned()
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let fit = sums(call.inputs()).tanh();
        let fit = call.find("scale").map_or_else(|| fit.clone(), |scale| &fit * scale);
        attend(call, fit.sum_axes([-1]), self.dropout)
    }
}
