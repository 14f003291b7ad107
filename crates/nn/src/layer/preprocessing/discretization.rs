//! `Discretization`: numbers by the range that they are in.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result};

use super::output_mode::OutputMode;
use crate::config::{self, Described, Fields, Json, Single};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

/// Maps numbers to ranges: 0 below the first boundary, 1 from it to the next, and so on.
///
/// `estimand::Adapt` chooses boundaries so that all ranges hold about the same number of values.
#[derive(Clone, Debug)]
#[must_use]
pub struct Discretization {
    bin_boundaries: Option<Vec<f32>>,
    num_bins: Option<usize>,
    epsilon: f64,
    output_mode: OutputMode,
    config: Config,
}

impl Discretization {
    /// Ranges between these boundaries, which rise.
    pub fn new(bin_boundaries: impl Into<Vec<f32>>) -> Discretization {
        Discretization { bin_boundaries: Some(bin_boundaries.into()), ..Discretization::bins_of(None) }
    }

    /// This many ranges, whose boundaries `estimand::Adapt` finds.
    pub fn bins(num_bins: usize) -> Discretization {
        Discretization::bins_of(Some(num_bins))
    }

    fn bins_of(num_bins: Option<usize>) -> Discretization {
        let (output_mode, config) = (OutputMode::Int, Config::default());
        Discretization { bin_boundaries: None, num_bins, epsilon: 0.01, output_mode, config }
    }

    /// The form of the result. By default ids.
    pub fn output_mode(mut self, mode: OutputMode) -> Discretization {
        self.output_mode = mode;
        self
    }

    /// Sets the boundaries that were found in data. The layer has them in the place of a number of
    /// ranges.
    pub fn bin_boundaries(mut self, boundaries: impl Into<Vec<f32>>) -> Discretization {
        self.bin_boundaries = Some(boundaries.into());
        self.num_bins = None;
        self
    }

    /// The boundaries, if they are set.
    pub fn boundaries(&self) -> Option<&[f32]> {
        self.bin_boundaries.as_deref()
    }

    /// The number of ranges that `adapt` is to make.
    pub fn wanted_bins(&self) -> Option<usize> {
        self.num_bins
    }
}

config_setters!(Discretization);

const MODES: [OutputMode; 4] = [OutputMode::Int, OutputMode::OneHot, OutputMode::MultiHot, OutputMode::Count];

impl Described for Discretization {
    const CLASS: &'static str = "Discretization";

    fn template() -> Discretization {
        Discretization::bins_of(None)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Discretization {
        let own = self.bin_boundaries.as_ref().map(|all| all.iter().copied().map(Single).collect::<Vec<_>>());
        let boundaries = fields.value("bin_boundaries", &own);
        let num_bins = fields.value("num_bins", &self.num_bins);
        Discretization {
            // Keras 3 writes both for an adapted layer.
            num_bins: num_bins.filter(|_| boundaries.is_none()),
            bin_boundaries: boundaries.map(|all| all.into_iter().map(|boundary| boundary.0).collect()),
            // The precision of Keras' quantiles. Those of `adapt` here are more precise.
            epsilon: fields.value("epsilon", &self.epsilon),
            output_mode: self.output_mode.field(fields, &MODES),
            config: self.config.fields_of(fields, self.output_mode.dtype(), &["int64", "float32"]),
        }
    }
}

impl Layer for Discretization {
    fn kind(&self) -> &'static str {
        "discretization"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let error = match (&self.bin_boundaries, self.num_bins) {
            (Some(_), Some(n)) => {
                Error::config(format!("both boundaries and a number of bins ({n}) are set")).help("set one of the two")
            }
            (None, _) => Error::config("the boundaries are not set")
                .help("call adapt with the training data, or Discretization::new(boundaries)"),
            (Some(boundaries), None) => {
                match boundaries.windows(2).find(|pair| pair[0].partial_cmp(&pair[1]) != Some(std::cmp::Ordering::Less))
                {
                    Some(pair) => Error::config(format!(
                        "boundary {} comes before {}; expected rising boundaries",
                        pair[0], pair[1]
                    )),
                    None => return,
                }
            }
        };
        build.refuse(error);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let boundaries = self.bin_boundaries.as_deref().unwrap_or(&[]);
        let ids = call.input().bucketize(boundaries).cast(DType::I64);
        self.output_mode.encode(&ids, boundaries.len() + 1, None)
    }
}
