//! One column of a schema.

use std::fmt;

use estimand_tensor::{Array, DType, Error, FeatureSpec, Result, element_count};

use crate::statistics::Role;

/// What is said about a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SchemaColumn {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The type of its values.
    pub dtype: DType,
    /// Sizes of one row's axes, none for one value a row; `None` for ragged rows.
    pub dims: Option<Vec<usize>>,
    /// What a model could make of it: a suggestion.
    pub kind: ColumnKind,
    /// Whether no value may be missing: NaN, the empty string, a ragged row without values.
    pub required: bool,
    /// What stands for a value that a file does not have. Without, that is an error.
    pub default: Option<Value>,
    /// The smallest value allowed.
    pub min: Option<Value>,
    /// The largest value allowed.
    pub max: Option<Value>,
    /// All values allowed.
    pub domain: Option<Vec<Value>>,
}

/// What a model could make of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// A number to compute with.
    Numeric,
    /// One of some known terms: a vocabulary.
    Vocabulary,
    /// One of very many terms: hash them.
    Hash,
    /// Different in nearly every row: nothing can be learnt from it.
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
    /// Of a column of whole numbers or booleans.
    Int(i64),
    /// Of a column of floats.
    Float(f64),
    /// Of a column of strings.
    Text(String),
}

impl Value {
    /// As a float, to compare; NaN for text.
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
    /// How the column is read from files.
    pub fn feature_spec(&self) -> Result<FeatureSpec> {
        match (&self.dims, &self.default) {
            (None, _) => Ok(FeatureSpec::ragged(self.dtype)),
            (Some(dims), None) => Ok(FeatureSpec::dense(self.dtype, dims.clone())),
            (Some(dims), Some(default)) => Ok(FeatureSpec::dense_or(self.filled(dims, default)?)),
        }
    }

    /// An array of one value again and again.
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
