//! `Embedding`: a vector for each id.

use std::sync::Arc;

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::{DType, Error, Result};
use estimand_update::Constraint;

use super::weight_options::WeightOptions;
use super::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::regularizer::Regularizer;

/// Looks up integer ids in a table of vectors: `[batch, ...]` to `[batch, ..., output_dim]`.
///
/// The gradient is sparse: the cost of a step depends on the rows that a batch touches, not on the
/// size of the table. An id outside of `0..input_dim` is an error at run time.
///
/// Variable: `embeddings` `[input_dim, output_dim]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Embedding {
    input_dim: usize,
    output_dim: usize,
    mask_zero: bool,
    options: WeightOptions,
    config: Config,
}

impl Embedding {
    /// A table of `input_dim` vectors of `output_dim` numbers.
    pub fn new(input_dim: usize, output_dim: usize) -> Embedding {
        let (options, config) = (WeightOptions::default(), Config::default());
        Embedding { input_dim, output_dim, mask_zero: false, options, config }
    }

    /// Whether the id 0 stands for padding, which the layers that follow skip: the result carries a
    /// mask in a Keras model. By default all ids count.
    pub fn mask_zero(mut self, mask_zero: bool) -> Embedding {
        self.mask_zero = mask_zero;
        self
    }

    /// The initializer of the table. By default uniform in [-0.05, 0.05).
    pub fn initializer(mut self, initializer: Initializer) -> Embedding {
        self.options.initializer = Some(initializer);
        self
    }

    /// The penalty on the whole table. With it, the gradient is dense. By default none.
    pub fn regularizer(mut self, regularizer: Regularizer) -> Embedding {
        self.options.regularizer = Some(regularizer);
        self
    }

    /// The constraint of the table. It is applied to all rows after every update, so the cost of a
    /// step grows with the table. By default none.
    pub fn constraint(mut self, constraint: impl Constraint + 'static) -> Embedding {
        self.options.constraint = Some(Arc::new(constraint));
        self
    }
}

config_setters!(Embedding);

const KEYS: [&str; 3] = ["embeddings_initializer", "embeddings_regularizer", "embeddings_constraint"];

/// The initializer of the table if the layer has no other.
const INITIALIZER: Initializer = Initializer::RandomUniform { low: -0.05, high: 0.05 };

impl Described for Embedding {
    const CLASS: &'static str = "Embedding";

    fn template() -> Embedding {
        Embedding::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Embedding {
        fields.only("activity_regularizer", Json::Null);
        fields.ignored("input_length");
        Embedding {
            input_dim: fields.required("input_dim", &self.input_dim),
            output_dim: fields.required("output_dim", &self.output_dim),
            mask_zero: fields.value("mask_zero", &self.mask_zero),
            options: self.options.fields(fields, KEYS, INITIALIZER),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Embedding {
    fn kind(&self) -> &'static str {
        "embedding"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let dims = [self.input_dim, self.output_dim];
        if dims.contains(&0) {
            return build
                .refuse(Error::config(format!("the table has the shape {dims:?}; expected sizes of at least 1")));
        }
        self.options.build(build, "embeddings", &dims, INITIALIZER);
    }

    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.tensors().first().filter(|_| self.mask_zero).map(|ids| ids.not_equal(ids.zeros_like()))
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let ids = call.input();
        // TF: other numbers are ids too, such as those of an input without a dtype, which is f32.
        let is_id = !ids.dtype().is_number() || matches!(ids.dtype(), DType::I32 | DType::I64);
        let ids = if is_id { ids.clone() } else { ids.cast(DType::I64) };
        call.weight("embeddings").gather(&ids)
    }
}
