//! `sequence_numeric_column`: numbers for each step of a sequence.

use std::panic::Location;
use std::sync::Arc;

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Result};

use super::feature::expect_numbers;
use super::json::written;
use super::normalizer::{Normalizer, normalised};
use super::numeric::check_shape;
use super::{Column, Extent, SequenceColumn, place};
use crate::config::{Described, Fields, Json, Single};
use crate::inputs::{Input, Inputs};

/// Numbers for each step of a sequence. Made by [`sequence_numeric_column`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SequenceNumericColumn {
    key: String,
    dims: Vec<usize>,
    dtype: DType,
    default_value: f32,
    normalizer: Option<Normalizer>,
    site: &'static Location<'static>,
}

/// Reads the numbers of a ragged feature: by default one per step.
///
/// ```
/// use estimand_nn::column::{Column, sequence_numeric_column};
/// let temperature = sequence_numeric_column("temperature").default_value(-1.0);
/// assert!(temperature.check().is_ok());
/// ```
#[track_caller]
pub fn sequence_numeric_column(key: impl Into<String>) -> SequenceNumericColumn {
    SequenceNumericColumn {
        key: key.into(),
        dims: vec![1],
        dtype: DType::F32,
        default_value: 0.0,
        normalizer: None,
        site: Location::caller(),
    }
}

impl SequenceNumericColumn {
    /// The sizes of one step's axes. By default, `[1]`.
    pub fn shape(mut self, dims: impl Into<Vec<usize>>) -> SequenceNumericColumn {
        self.dims = dims.into();
        self
    }

    /// The dtype of the feature in files. By default, f32.
    pub fn dtype(mut self, dtype: DType) -> SequenceNumericColumn {
        self.dtype = dtype;
        self
    }

    /// The padding of shorter sequences. By default, 0.
    pub fn default_value(mut self, value: f32) -> SequenceNumericColumn {
        self.default_value = value;
        self
    }

    /// A function of the raw numbers. Its result is cast to f32. By default, the numbers are used
    /// unchanged.
    pub fn normalizer(mut self, function: impl Fn(&Tensor) -> Tensor + Send + Sync + 'static) -> SequenceNumericColumn {
        self.normalizer = Some(Normalizer::Function(Arc::new(function)));
        self
    }

    /// The feature's rows. TF: the sequences of a dense feature have no known end, so it is
    /// refused.
    fn rows<'a>(&self, features: &'a Inputs) -> Result<&'a RaggedTensor> {
        match features.find(&self.key)? {
            Input::Ragged(rows) => expect_numbers(&self.key, rows.values.dtype()).map(|()| rows),
            Input::Dense(dense) => {
                let text = format!(
                    "feature `{}` is the dense {}, which does not show where each sequence ends",
                    self.key,
                    dense.spec()
                );
                Err(Error::shape(text).help("feed it as a ragged feature"))
            }
        }
    }

    fn n(&self) -> usize {
        self.dims.iter().product()
    }
}

impl Described for SequenceNumericColumn {
    const CLASS: &'static str = "SequenceNumericColumn";

    fn template() -> SequenceNumericColumn {
        sequence_numeric_column("")
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SequenceNumericColumn {
        SequenceNumericColumn {
            key: fields.required("key", &self.key),
            dims: fields.value("shape", &self.dims),
            dtype: fields.value("dtype", &self.dtype),
            default_value: fields.value("default_value", &Single(self.default_value)).0,
            normalizer: fields.value("normalizer_fn", &self.normalizer),
            site: fields.site(self.site),
        }
    }
}

impl Column for SequenceNumericColumn {
    fn kind(&self) -> &'static str {
        "sequence_numeric"
    }

    fn name(&self) -> String {
        self.key.clone()
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        check_shape(&self.dims, self.dtype).map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        BatchSpec::from([(self.key.clone(), FeatureSpec::ragged(self.dtype))])
    }

    fn sequence(&self) -> Option<&dyn SequenceColumn> {
        Some(self)
    }
}

impl SequenceColumn for SequenceNumericColumn {
    fn dims(&self) -> Vec<usize> {
        self.dims.clone()
    }

    fn extent(&self, features: &Inputs) -> Result<Extent> {
        Ok(Extent::of_rows(self.rows(features)?, self.n()))
    }

    fn tensor(&self, features: &Inputs, n_steps: &Tensor) -> Result<Tensor> {
        let rows = self.rows(features)?;
        let values = normalised(&rows.values, self.normalizer.as_ref())?;
        let steps = rows.with_values(values).to_steps(n_steps, &self.dims, self.default_value);
        steps.means("default", self.default_value);
        Ok(steps)
    }
}
