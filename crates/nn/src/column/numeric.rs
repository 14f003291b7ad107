//! `numeric_column`: numbers, unchanged or normalised.

use std::panic::Location;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_graph::meaning::Listing;
use estimand_tensor::{Array, BatchSpec, DType, Error, FeatureSpec, Result, element_count};

use super::json::written;
use super::normalizer::{Normalizer, normalised};
use super::{Column, DenseColumn, feature, place};
use crate::config::{AnyNumber, Described, Field, Fields, Json, Node};
use crate::inputs::Inputs;

/// The numbers of a feature, f32. Made by [`numeric_column`].
#[derive(Clone, Debug)]
#[must_use]
pub struct NumericColumn {
    pub(super) key: String,
    pub(super) dims: Vec<usize>,
    dtype: DType,
    default_value: Option<Array>,
    normalizer: Option<Normalizer>,
    site: &'static Location<'static>,
}

/// Reads the numbers of a dense feature: by default one in each row.
///
/// ```
/// use estimand_nn::column::numeric_column;
/// use estimand_tensor::DType;
///
/// let age = numeric_column("age").z_score(38.6, 13.6);
/// let image = numeric_column("image").shape([28, 28]).dtype(DType::U8).normalizer(|x| x.cast(DType::F32) / 255.0);
/// # use estimand_nn::column::Column;
/// # assert!(age.check().is_ok() && image.check().is_ok());
/// ```
#[track_caller]
pub fn numeric_column(key: impl Into<String>) -> NumericColumn {
    NumericColumn {
        key: key.into(),
        dims: vec![1],
        dtype: DType::F32,
        default_value: None,
        normalizer: None,
        site: Location::caller(),
    }
}

impl NumericColumn {
    /// The sizes of one row's axes. By default, `[1]`.
    pub fn shape(mut self, dims: impl Into<Vec<usize>>) -> NumericColumn {
        self.dims = dims.into();
        self
    }

    /// The dtype of the feature in files. By default, f32. The column's values are always f32.
    pub fn dtype(mut self, dtype: DType) -> NumericColumn {
        self.dtype = dtype;
        self
    }

    /// The value for a parsed `tf.Example` without the feature: one number for all elements, or an
    /// array of the column's shape. By default, such an example is an error.
    pub fn default_value(mut self, value: impl Into<Array>) -> NumericColumn {
        self.default_value = Some(value.into());
        self
    }

    /// A function of the raw numbers, `[batch, dims...]` in the feature's dtype. Its result is cast
    /// to f32. By default, the numbers are used unchanged.
    pub fn normalizer(mut self, function: impl Fn(&Tensor) -> Tensor + Send + Sync + 'static) -> NumericColumn {
        self.normalizer = Some(Normalizer::Function(Arc::new(function)));
        self
    }

    /// Normalises to `(x - mean) / stddev`.
    pub fn z_score(mut self, mean: f64, stddev: f64) -> NumericColumn {
        self.normalizer = Some(Normalizer::ZScore { mean, stddev });
        self
    }

    /// Normalises to `(x - low) / (high - low)`: 0 to 1 for numbers between them.
    pub fn min_max(mut self, low: f64, high: f64) -> NumericColumn {
        self.normalizer = Some(Normalizer::MinMax { low, high });
        self
    }

    /// Normalises to `ln(1 + x)`, so that 0 stays 0.
    pub fn log(mut self) -> NumericColumn {
        self.normalizer = Some(Normalizer::Log);
        self
    }

    /// The name of the feature that the column reads.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether the numbers are normalised before the model sees them.
    pub fn is_normalised(&self) -> bool {
        self.normalizer.is_some()
    }

    fn mistake(&self) -> Result<()> {
        check_shape(&self.dims, self.dtype)?;
        if let Some(normalizer) = &self.normalizer {
            normalizer.check()?;
        }
        self.default().map(drop)
    }

    /// The default for a parser, in the size of a row.
    fn default(&self) -> Result<Option<Array>> {
        let Some(value) = &self.default_value else { return Ok(None) };
        if value.rank() > 0 && value.dims() != self.dims {
            let text =
                format!("the default value has the shape {:?}; the column has the shape {:?}", value.dims(), self.dims);
            return Err(Error::shape(text).help("give one number for all, or an array of the column's shape"));
        }
        let n = element_count(&self.dims)?;
        number_like(value, self.dtype)?.map_or_else(
            || {
                let text =
                    format!("the default value is {}, which does not fit a column of {}", value.dtype(), self.dtype);
                Err(Error::dtype(Some(self.dtype), value.dtype(), text)
                    .help("give a default value of the column's dtype"))
            },
            |values| spread(values, n, self.dtype)?.reshape(&self.dims).map(Some),
        )
    }
}

/// Reports mistakes in sizes or dtype, for all columns of numbers.
pub(super) fn check_shape(dims: &[usize], dtype: DType) -> Result<()> {
    if dims.contains(&0) {
        return Err(Error::shape(format!("the shape is {dims:?}; expected sizes of at least 1")));
    }
    element_count(dims)?;
    match dtype {
        DType::Str | DType::Bool => {
            Err(Error::dtype(Some(DType::F32), dtype, format!("a numeric column cannot have the dtype {dtype}"))
                .help("use a float or integer dtype; use a categorical column for strings"))
        }
        _ => Ok(()),
    }
}

/// The elements of a default value, or `None` if the dtype cannot hold them.
///
/// TF: a float is not accepted as the default of an integer column, even if it is whole (case 45).
fn number_like(value: &Array, dtype: DType) -> Result<Option<Vec<f64>>> {
    let fits = value.dtype() != DType::Str && (dtype.is_float() || !value.dtype().is_float());
    if fits { value.to_f64_vec().map(Some) } else { Ok(None) }
}

fn spread(values: Vec<f64>, n: usize, dtype: DType) -> Result<Array> {
    let all: Vec<f64> = if values.len() == n { values } else { vec![values.first().copied().unwrap_or_default(); n] };
    match dtype {
        DType::F32 => Array::from_vec([n], all.iter().map(|&v| v as f32).collect()),
        DType::F64 => Array::from_vec([n], all),
        DType::I32 => Array::from_vec([n], all.iter().map(|&v| v as i32).collect()),
        DType::U8 => Array::from_vec([n], all.iter().map(|&v| v as u8).collect()),
        _ => Array::from_vec([n], all.iter().map(|&v| v as i64).collect()),
    }
}

impl NumericColumn {
    /// The default value as a document holds it.
    fn defaults(&self) -> Result<Option<Defaults>> {
        let Some(value) = &self.default_value else { return Ok(None) };
        let all = self.default()?.map(|all| all.to_f64_vec()).transpose()?.unwrap_or_default();
        Ok(Some(match value.rank() {
            0 => Defaults::One(AnyNumber(all.first().copied().unwrap_or_default())),
            _ => Defaults::All(all.into_iter().map(AnyNumber).collect()),
        }))
    }
}

/// A default value in a document: one number for all, or the numbers of a row in order.
#[derive(Clone, Debug)]
enum Defaults {
    One(AnyNumber),
    All(Vec<AnyNumber>),
}

/// The most numbers of a row for which a document may give default values.
const MAX_DEFAULTS: usize = 1 << 24;

impl Defaults {
    fn array(self, dims: &[usize], dtype: DType) -> Result<Array> {
        let n = element_count(dims)?;
        if n > MAX_DEFAULTS {
            let text =
                format!("the shape {dims:?} with a default value has {n} numbers; expected at most {MAX_DEFAULTS}");
            return Err(Error::config(text));
        }
        match self {
            Defaults::One(number) => spread(vec![number.0], 1, dtype)?.reshape([]),
            Defaults::All(numbers) if numbers.len() == n => {
                spread(numbers.iter().map(|number| number.0).collect(), n, dtype)?.reshape(dims)
            }
            Defaults::All(numbers) => {
                Err(Error::shape(format!("there are {} default values for the shape {dims:?}", numbers.len())))
            }
        }
    }
}

impl Field for Defaults {
    fn write(&self) -> Result<Json> {
        match self {
            Defaults::One(number) => number.write(),
            Defaults::All(numbers) => numbers.write(),
        }
    }

    fn read(node: &Node<'_>) -> Result<Defaults> {
        match node.value().is_array() {
            true => Vec::read(node).map(Defaults::All),
            false => AnyNumber::read(node).map(Defaults::One),
        }
    }
}

impl Described for NumericColumn {
    const CLASS: &'static str = "NumericColumn";

    fn template() -> NumericColumn {
        numeric_column("")
    }

    fn fields(&self, fields: &mut Fields<'_>) -> NumericColumn {
        let column = NumericColumn {
            key: fields.required("key", &self.key),
            dims: fields.value("shape", &self.dims),
            dtype: fields.value("dtype", &self.dtype),
            default_value: None,
            normalizer: fields.value("normalizer_fn", &self.normalizer),
            site: fields.site(self.site),
        };
        let numbers = match self.defaults() {
            Ok(numbers) => fields.value("default_value", &numbers),
            Err(error) => {
                fields.refuse(error);
                None
            }
        };
        match numbers.map(|numbers| numbers.array(&column.dims, column.dtype)).transpose() {
            Ok(default_value) => NumericColumn { default_value, ..column },
            Err(error) => {
                fields.refuse(error);
                column
            }
        }
    }
}

impl Column for NumericColumn {
    fn kind(&self) -> &'static str {
        "numeric"
    }

    fn name(&self) -> String {
        self.key.clone()
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.mistake().map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        let default = self.default().unwrap_or_default();
        let spec = FeatureSpec::Dense { dtype: self.dtype, dims: self.dims.clone(), default };
        BatchSpec::from([(self.key.clone(), spec)])
    }

    fn dense(&self) -> Option<&dyn DenseColumn> {
        Some(self)
    }
}

impl DenseColumn for NumericColumn {
    fn dims(&self) -> Vec<usize> {
        self.dims.clone()
    }

    fn tensor(&self, features: &Inputs) -> Result<Tensor> {
        let numbers = normalised(&feature::numbers(features, &self.key, &self.dims)?, self.normalizer.as_ref())?;
        if let Some(default) = self.default()? {
            numbers.means("default", Listing::of_floats(&default.to_f64_vec()?));
        }
        Ok(numbers)
    }
}
