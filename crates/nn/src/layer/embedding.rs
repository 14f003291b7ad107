//! `Embedding`: a vector for each id.

use std::sync::Arc;

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::Error;
use estimand_update::Constraint;

use super::weight_options::WeightOptions;
use super::{Build, Config, Layer, LayerCall, config_setters};
use crate::regularizer::Regularizer;

/// The rows of a table that integer ids name: `[batch, ...]` to `[batch, ..., output_dim]`.
///
/// Its gradient is one of rows: a step costs as much as the rows a batch touches, however large the
/// table. An id that is not in `0..input_dim` is an error of the run.
///
/// Variable: `embeddings` `[input_dim, output_dim]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Embedding {
    input_dim: usize,
    output_dim: usize,
    options: WeightOptions,
    config: Config,
}

impl Embedding {
    /// A table of `input_dim` vectors of `output_dim` numbers.
    pub fn new(input_dim: usize, output_dim: usize) -> Embedding {
        Embedding { input_dim, output_dim, options: WeightOptions::default(), config: Config::default() }
    }

    /// How the table begins. By default uniform in [-0.05, 0.05).
    pub fn initializer(mut self, initializer: Initializer) -> Embedding {
        self.options.initializer = Some(initializer);
        self
    }

    /// What the table costs, all of it: the gradient is then of the whole table. By default
    /// nothing.
    pub fn regularizer(mut self, regularizer: Regularizer) -> Embedding {
        self.options.regularizer = Some(regularizer);
        self
    }

    /// What the table is like after every update, all of it: a step then costs as much as the table
    /// is large. By default it may be anything.
    pub fn constraint(mut self, constraint: impl Constraint + 'static) -> Embedding {
        self.options.constraint = Some(Arc::new(constraint));
        self
    }
}

config_setters!(Embedding);

impl Layer for Embedding {
    fn kind(&self) -> &'static str {
        "embedding"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn build(&self, build: &mut Build<'_>) {
        let dims = [self.input_dim, self.output_dim];
        if dims.contains(&0) {
            return build.refuse(Error::config(format!("a table of {dims:?}; expected at least 1 of each")));
        }
        self.options.build(build, "embeddings", &dims, Initializer::RandomUniform { low: -0.05, high: 0.05 });
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        call.weight("embeddings").gather(call.input())
    }
}
