//! `MultiHeadAttention`: every step attends to all other steps.

use std::ops::RangeInclusive;

use estimand_graph::{Initializer, Tensor, Transposed};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use super::build::BuiltLayer;
use super::inputs::{ATTENTION_MASK, CAUSAL_MASK};
use super::weight_options::{BIAS, KERNEL, WeightOptions, weight_setters};
use super::{AsInputs, Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json, OneSize};

/// `softmax(q k / sqrt(key_dim)) v` for several heads, where q, k and v are projections of query,
/// key and value. The heads' results are projected once more.
///
/// `apply` takes the query, `[batch, steps, inputs]`, or query and value, or query, value and key.
/// Without a value, the query is the value too; without a key, the value is the key. The result has
/// as many steps as the query and, by default, as many outputs as the query has inputs.
///
/// Variables: `query/kernel` `[inputs, heads, key_dim]`, `query/bias` `[heads, key_dim]`, the same
/// of `key` and, with `value_dim`, of `value`; `attention_output/kernel`
/// `[heads, value_dim, outputs]` and `attention_output/bias` `[outputs]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::layer::LayerInputs;
/// use estimand_nn::{Layer, MultiHeadAttention};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let memory = g.placeholder("memory", DType::F32, [Dim::BATCH, 9.into(), 6.into()]);
/// let x = MultiHeadAttention::new(2, 8).apply(&LayerInputs::of(&x).use_causal_mask(true));
/// let (y, scores) = MultiHeadAttention::new(2, 8).apply_scores(&[&x, &memory]);
/// assert_eq!(y.shape().to_string(), "[batch, 7, 4]");
/// assert_eq!(scores.shape().to_string(), "[batch, 2, 7, 9]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct MultiHeadAttention {
    num_heads: usize,
    key_dim: usize,
    value_dim: Option<usize>,
    output_dim: Option<usize>,
    dropout: f64,
    use_bias: bool,
    kernels: WeightOptions,
    biases: WeightOptions,
    config: Config,
}

/// A score that softmax turns into 0. TF: it is added to the score and does not replace it, so a
/// row in which all places are masked still has scores.
const NEVER: f64 = -1e9;

impl MultiHeadAttention {
    /// `num_heads` heads, each with queries and keys of `key_dim` numbers.
    pub fn new(num_heads: usize, key_dim: usize) -> MultiHeadAttention {
        MultiHeadAttention {
            num_heads,
            key_dim,
            value_dim: None,
            output_dim: None,
            dropout: 0.0,
            use_bias: true,
            kernels: WeightOptions::default(),
            biases: WeightOptions::default(),
            config: Config::default(),
        }
    }

    /// The size of each head's values. By default `key_dim`.
    pub fn value_dim(mut self, value_dim: usize) -> MultiHeadAttention {
        self.value_dim = Some(value_dim);
        self
    }

    /// The size of the result's last axis. By default the query's.
    pub fn output_dim(mut self, output_dim: usize) -> MultiHeadAttention {
        self.output_dim = Some(output_dim);
        self
    }

    /// In training, drops this fraction of the attention scores. By default none.
    pub fn dropout(mut self, rate: f64) -> MultiHeadAttention {
        self.dropout = rate;
        self
    }

    /// Whether the projections have biases. By default they do.
    pub fn use_bias(mut self, use_bias: bool) -> MultiHeadAttention {
        self.use_bias = use_bias;
        self
    }

    /// Like `apply`, but also returns the scores `[batch, heads, steps, places]`.
    #[track_caller]
    pub fn apply_scores(&self, inputs: &dyn AsInputs) -> (Tensor, Tensor) {
        let inputs = inputs.as_inputs();
        match inputs.check(self) {
            Some(error) => (error.clone(), error),
            None => self.run(&BuiltLayer::new(self, &inputs).open(&inputs).call),
        }
    }

    /// The size of each head's values.
    fn values(&self) -> usize {
        self.value_dim.unwrap_or(self.key_dim)
    }

    /// `[batch, steps, inputs]` to `[batch, heads, steps, width]`.
    #[track_caller]
    fn heads(&self, call: &LayerCall<'_>, [kernel, bias]: [&'static str; 2], x: &Tensor, width: usize) -> Tensor {
        let n = self.num_heads * width;
        let kernel = call.weight(kernel).reshape([-1, n as i64]);
        let mut y = x.reshape([-1, x.channels() as i64]).matmul(&kernel);
        if let Some(bias) = call.find(bias) {
            y = y + bias.reshape([n as i64]);
        }
        let steps = x.shape().dims().iter().take(2).copied();
        let shape: Shape = steps.chain([self.num_heads.into(), width.into()]).collect();
        y.reshape_as(shape).transpose(&[0, 2, 1, 3])
    }

    /// The combined mask: booleans that broadcast to the scores.
    #[track_caller]
    fn mask(&self, call: &LayerCall<'_>, steps: Dim, places: Dim) -> Option<Tensor> {
        let graph = call.input().graph();
        let causal = call.all_inputs().uses_causal_mask().then(|| {
            let step = graph.range(steps, DType::I64).expand_dims(-1);
            graph.range(places, DType::I64).less_equal(step)
        });
        // Inserts the axis of heads after the batch axis, unless the mask already has one.
        let given = call.named(ATTENTION_MASK).map(|m| if m.rank() == 3 { m.expand_dims(1) } else { m.clone() });
        // TF: what the masks of query, value and key leave out takes no part.
        let [query, value, key] = [0, 1, 2].map(|i| call.mask_of(i));
        let value = value.or(query.filter(|_| call.inputs().len() == 1));
        let of_steps = query.map(|mask| mask.expand_dims(1).expand_dims(-1));
        let of_places = [value, key].map(|mask| mask.map(|mask| mask.expand_dims(1).expand_dims(1)));
        let all = [given, causal, of_steps].into_iter().chain(of_places).flatten();
        all.reduce(|a, b| a.logical_and(&b))
    }

    #[track_caller]
    fn run(&self, call: &LayerCall<'_>) -> (Tensor, Tensor) {
        let [query, key, value] = query_key_value(call.inputs());
        if let Some(poison) = call.expect_rank(3..=3, "[batch, steps, inputs]") {
            return (poison.clone(), poison);
        }
        let (steps, places) = (query.shape().dims()[1], key.shape().dims()[1]);
        let q = self.heads(call, QUERY, &query, self.key_dim) * (1.0 / (self.key_dim as f64).sqrt());
        let k = self.heads(call, KEY, &key, self.key_dim);
        let v = self.heads(call, VALUE, &value, self.values());
        let mut scores = q.matmul_with(&k, Transposed::Right);
        if let Some(mask) = self.mask(call, steps, places) {
            scores = scores + (1.0 - mask.cast(DType::F32)) * NEVER;
        }
        let scores = scores.softmax();
        let kept = if call.training() && self.dropout > 0.0 { scores.dropout(self.dropout) } else { scores.clone() };
        let found = kept.matmul(&v).transpose(&[0, 2, 1, 3]);
        let [kernel, bias] = OUTPUT;
        let kernel = call.weight(kernel);
        let (n, outputs) = ((self.num_heads * self.values()) as i64, kernel.channels());
        let mut y = found.reshape([-1, n]).matmul(&kernel.reshape([n, -1]));
        if let Some(bias) = call.find(bias) {
            y = y + bias;
        }
        let shape: Shape = query.shape().dims().iter().take(2).copied().chain([outputs.into()]).collect();
        (y.reshape_as(shape), scores)
    }
}

/// The query, key and value of a call.
fn query_key_value(inputs: &[Tensor]) -> [Tensor; 3] {
    let query = &inputs[0];
    let value = inputs.get(1).unwrap_or(query);
    [query, inputs.get(2).unwrap_or(value), value].map(Tensor::clone)
}

const QUERY: [&str; 2] = ["query/kernel", "query/bias"];
const KEY: [&str; 2] = ["key/kernel", "key/bias"];
const VALUE: [&str; 2] = ["value/kernel", "value/bias"];
const OUTPUT: [&str; 2] = ["attention_output/kernel", "attention_output/bias"];

config_setters!(MultiHeadAttention);
weight_setters!(MultiHeadAttention, kernels, "kernel of every projection", "uniform by Glorot's rule": kernel_initializer, kernel_regularizer, kernel_constraint);
weight_setters!(MultiHeadAttention, biases, "bias of every projection", "0": bias_initializer, bias_regularizer, bias_constraint);

impl Described for MultiHeadAttention {
    const CLASS: &'static str = "MultiHeadAttention";

    fn template() -> MultiHeadAttention {
        MultiHeadAttention::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> MultiHeadAttention {
        // A built layer of Keras has the axis of steps.
        fields.only_read("attention_axes", &[Json::Null, vec![1].into()]);
        fields.only("activity_regularizer", Json::Null);
        fields.only_read("flash_attention", &[Json::Null, false.into()]);
        fields.only_read("use_gate", &[false.into()]);
        ["query_shape", "key_shape", "value_shape"].into_iter().for_each(|key| fields.demanded(key));
        fields.ignored("seed");
        let output = fields.value("output_shape", &self.output_dim.map(OneSize));
        MultiHeadAttention {
            num_heads: fields.required("num_heads", &self.num_heads),
            key_dim: fields.required("key_dim", &self.key_dim),
            value_dim: fields.or("value_dim", &self.value_dim, self.key_dim),
            output_dim: output.map(|OneSize(size)| size),
            dropout: fields.value("dropout", &self.dropout),
            use_bias: fields.value("use_bias", &self.use_bias),
            kernels: self.kernels.fields(fields, KERNEL, Initializer::GlorotUniform),
            biases: self.biases.fields(fields, BIAS, Initializer::Zeros),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for MultiHeadAttention {
    fn kind(&self) -> &'static str {
        "multi_head_attention"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        true
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let sizes = [self.num_heads, self.key_dim, self.values(), self.output_dim.unwrap_or(1)];
        if sizes.contains(&0) {
            let text = format!(
                "num_heads is {}, key_dim is {} and value_dim is {}",
                self.num_heads,
                self.key_dim,
                self.values()
            );
            return build.refuse(Error::config(text).help("set each to at least 1"));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return build
                .refuse(Error::config(format!("the dropout rate is {}; expected 0 <= rate < 1", self.dropout)));
        }
        let [query, key, value] = query_key_value(build.inputs());
        for x in [&query, &key, &value] {
            let known = x.shape().dims().last().is_some_and(|d| d.known().is_some());
            if x.rank() != 3 || x.dtype() != DType::F32 || !known {
                let text = format!("attention got {}; expected f32 [batch, steps, inputs]", x.describe());
                return build.refuse(Error::shape(text).help("declare the size of the last axis: it must be known"));
            }
        }
        let projections = [(QUERY, &query, self.key_dim), (KEY, &key, self.key_dim), (VALUE, &value, self.values())];
        for (names, x, width) in projections {
            self.projection(build, names, &[x.channels(), self.num_heads, width], &[self.num_heads, width]);
        }
        let outputs = self.output_dim.unwrap_or_else(|| query.channels());
        self.projection(build, OUTPUT, &[self.num_heads, self.values(), outputs], &[outputs]);
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        1..=3
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        &[ATTENTION_MASK, CAUSAL_MASK]
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.run(call).0
    }
}

impl MultiHeadAttention {
    #[track_caller]
    fn projection(&self, build: &mut Build<'_>, names: [&'static str; 2], kernel: &[usize], bias: &[usize]) {
        self.kernels.build(build, names[0], kernel, Initializer::GlorotUniform);
        if self.use_bias {
            self.biases.build(build, names[1], bias, Initializer::Zeros);
        }
    }
}
