//! `CategoryEncoding`: ids as vectors.

use std::ops::RangeInclusive;

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{DType, Error, Result};

use super::output_mode::OutputMode;
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

/// Turns ids from 0 to `num_tokens - 1` into vectors of `num_tokens` numbers. Another id fails the
/// run.
///
/// In the mode [`OutputMode::Count`], a call may pass `count_weights`: a weight for each id, which
/// is summed in the place of 1.
#[derive(Clone, Debug)]
#[must_use]
pub struct CategoryEncoding {
    num_tokens: usize,
    output_mode: OutputMode,
    config: Config,
}

const COUNT_WEIGHTS: &str = "count_weights";

impl CategoryEncoding {
    /// Vectors of this many numbers.
    pub fn new(num_tokens: usize) -> CategoryEncoding {
        CategoryEncoding { num_tokens, output_mode: OutputMode::MultiHot, config: Config::default() }
    }

    /// The form of the result. By default [`OutputMode::MultiHot`].
    pub fn output_mode(mut self, mode: OutputMode) -> CategoryEncoding {
        self.output_mode = mode;
        self
    }
}

config_setters!(CategoryEncoding);

const MODES: [OutputMode; 3] = [OutputMode::OneHot, OutputMode::MultiHot, OutputMode::Count];

impl Described for CategoryEncoding {
    const CLASS: &'static str = "CategoryEncoding";

    fn template() -> CategoryEncoding {
        CategoryEncoding::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> CategoryEncoding {
        CategoryEncoding {
            num_tokens: fields.required("num_tokens", &self.num_tokens),
            output_mode: self.output_mode.field(fields, &MODES),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for CategoryEncoding {
    fn kind(&self) -> &'static str {
        "category_encoding"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        &[COUNT_WEIGHTS]
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.num_tokens == 0 || !MODES.contains(&self.output_mode) {
            let (n, mode) = (self.num_tokens, self.output_mode);
            let text =
                format!("the layer has {n} tokens and the mode {mode:?}; expected at least 1, and a mode of vectors");
            build.refuse(Error::config(text));
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let ids = if matches!(x.dtype(), DType::I32 | DType::I64) { x.clone() } else { x.cast(DType::I64) };
        let help = "num_tokens counts ids from 0: it is the largest id plus 1";
        let ids = ids.ensure_between_or_help(0.0, self.num_tokens as f64 - 1.0, "an id of category_encoding", help);
        match call.named(COUNT_WEIGHTS) {
            None => self.output_mode.encode(&ids, self.num_tokens, None),
            Some(weights) if self.output_mode == OutputMode::Count => {
                let weights = RaggedTensor::from_rows(weights).values;
                self.output_mode.vectors(&RaggedTensor::from_rows(&ids), Some(&weights), self.num_tokens, None)
            }
            Some(_) => {
                let text = format!("category_encoding got count_weights in the mode {:?}", self.output_mode);
                x.graph().error(Error::config(text).help("set output_mode(OutputMode::Count)"))
            }
        }
    }
}
