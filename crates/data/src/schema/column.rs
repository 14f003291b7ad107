//! One column of a schema.

use std::fmt;

use estimand_tensor::{Array, DType, Error, FeatureSpec, Result, element_count};

use crate::statistics::Role;

/// The constraints on a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SchemaColumn {
    /// Its name.
    pub name: String,
    /// Its role: feature, label or weights.
    pub role: Role,
    /// The type of its values.
    pub dtype: DType,
    /// The sizes of one row's axes, empty for one value per row; `None` for ragged rows.
    pub dims: Option<Vec<usize>>,
    /// A suggestion of how a model could use it.
    pub kind: ColumnKind,
    /// Whether values must be present. NaN, the empty string, and a ragged row without values are
    /// missing.
    pub required: bool,
    /// The value to use where a file has none. Without a default, a missing value is an error.
    pub default: Option<Value>,
    /// The smallest value allowed.
    pub min: Option<Value>,
    /// The largest value allowed.
    pub max: Option<Value>,
    /// All values allowed.
    pub domain: Option<Vec<Value>>,
}

/// How a model could use a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// A number to compute with.
    Numeric,
    /// One of a known set of terms: a vocabulary.
    Vocabulary,
    /// One of very many terms: hash them.
    Hash,
    /// A different value in nearly every row: a model cannot learn from it.
    Id,
}

impl ColumnKind {
    /// All kinds.
    pub const ALL: [ColumnKind; 4] = [ColumnKind::Numeric, ColumnKind::Vocabulary, ColumnKind::Hash, ColumnKind::Id];
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnKind::Numeric => "numeric",
            ColumnKind::Vocabulary => "vocabulary",
            ColumnKind::Hash => "hash",
            ColumnKind::Id => "id",
        })
    }
}

/// A bound, a default, or a member of a domain. Booleans are the numbers 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A value of a column of whole numbers or booleans.
    Int(i64),
    /// A value of a column of floats.
    Float(f64),
    /// A value of a column of strings.
    Text(String),
}

impl Value {
    /// Converts the value to a float for comparisons; NaN for text.
    pub(super) fn to_f64(&self) -> f64 {
        match self {
            Value::Int(int) => *int as f64,
            Value::Float(float) => *float,
            Value::Text(_) => f64::NAN,
        }
    }
}

/// Text in quotes.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(int) => write!(f, "{int}"),
            Value::Float(float) => write!(f, "{float:?}"),
            Value::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl SchemaColumn {
    /// The spec to read the column from files.
    pub fn feature_spec(&self) -> Result<FeatureSpec> {
        match (&self.dims, &self.default) {
            (None, _) => Ok(FeatureSpec::ragged(self.dtype)),
            (Some(dims), None) => Ok(FeatureSpec::dense(self.dtype, dims.clone())),
            (Some(dims), Some(default)) => Ok(FeatureSpec::dense_or(self.filled(dims, default)?)),
        }
    }

    /// An array that repeats one value.
    fn filled(&self, dims: &[usize], value: &Value) -> Result<Array> {
        let n = element_count(dims)?;
        match (self.dtype, value) {
            (DType::F32, Value::Float(v)) => Array::from_vec(dims, vec![*v as f32; n]),
            (DType::F64, Value::Float(v)) => Array::from_vec(dims, vec![*v; n]),
            (DType::I32, Value::Int(v)) => Array::from_vec(dims, vec![*v as i32; n]),
            (DType::I64, Value::Int(v)) => Array::from_vec(dims, vec![*v; n]),
            (DType::U8, Value::Int(v)) => Array::from_vec(dims, vec![*v as u8; n]),
            (DType::Bool, Value::Int(v)) => Array::from_vec(dims, vec![*v != 0; n]),
            (DType::Str, Value::Text(v)) => Array::from_strings(dims, std::iter::repeat_n(v, n)),
            (dtype, value) => Err(Error::internal(format!("the default {value} of a column of {dtype}"))),
        }
    }
}
