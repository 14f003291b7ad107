//! `HashedCrossing`: combinations of features by their hash.

use std::ops::RangeInclusive;

use estimand_graph::{CrossKey, Tensor};
use estimand_tensor::{DType, Dim, Error, Result};

use super::output_mode::OutputMode;
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

/// Makes one id of the values of several features, each `[batch]` or `[batch, 1]`, of strings or
/// integers. The ids are those of a `crossed_column`.
#[derive(Clone, Debug)]
#[must_use]
pub struct HashedCrossing {
    num_bins: usize,
    output_mode: OutputMode,
    config: Config,
}

impl HashedCrossing {
    /// Hashes combinations into this many ids.
    pub fn new(num_bins: usize) -> HashedCrossing {
        HashedCrossing { num_bins, output_mode: OutputMode::Int, config: Config::default() }
    }

    /// The form of the result: ids, or [`OutputMode::OneHot`]. By default ids.
    pub fn output_mode(mut self, mode: OutputMode) -> HashedCrossing {
        self.output_mode = mode;
        self
    }
}

config_setters!(HashedCrossing);

const MODES: [OutputMode; 2] = [OutputMode::Int, OutputMode::OneHot];

impl Described for HashedCrossing {
    const CLASS: &'static str = "HashedCrossing";

    fn template() -> HashedCrossing {
        HashedCrossing::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> HashedCrossing {
        HashedCrossing {
            num_bins: fields.required("num_bins", &self.num_bins),
            output_mode: self.output_mode.field(fields, &MODES),
            config: self.config.fields_of(fields, self.output_mode.dtype(), &["int64", "float32"]),
        }
    }
}

impl Layer for HashedCrossing {
    fn kind(&self) -> &'static str {
        "hashed_crossing"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        2..=usize::MAX
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.num_bins == 0 || !MODES.contains(&self.output_mode) {
            let (n, mode) = (self.num_bins, self.output_mode);
            build.refuse(Error::config(format!(
                "the layer has {n} bins and the mode {mode:?}; expected at least 1 bin, and Int or OneHot"
            )));
        }
        for x in build.inputs() {
            let fits = x.rank() == 1 || (x.rank() == 2 && x.shape().dims()[1] == Dim::Known(1));
            if !fits || x.rank() != build.input().rank() || !matches!(x.dtype(), DType::Str | DType::I32 | DType::I64) {
                let text = format!(
                    "an input is {}; expected strings or integers, all [batch] or all [batch, 1]",
                    x.describe()
                );
                return build.refuse(Error::shape(text));
            }
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let key = |x: &Tensor| CrossKey::Dense(if x.rank() == 1 { x.expand_dims(-1) } else { x.clone() });
        let keys: Vec<CrossKey> = call.inputs().iter().map(key).collect();
        let ids = x.graph().cross(&keys, self.num_bins as i64, 0).values;
        if ids.is_poisoned() {
            return ids;
        }
        self.output_mode.encode(&ids.reshape_as(x.shape().clone()), self.num_bins, None)
    }
}
