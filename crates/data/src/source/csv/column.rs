//! Parses the values of one CSV column.

use std::fmt;
use std::sync::Arc;

use estimand_tensor::cpu::text::ParseNumber;
use estimand_tensor::{Array, DType, Element, Error, FeatureSpec, Result, Strings};

use super::infer::InferredColumn;
use super::missing::is_missing;
use crate::source::shown;

/// The type and options of a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Its index among the file's columns.
    pub(crate) index: usize,
    pub(crate) spec: FeatureSpec,
    pub(crate) dtype: DType,
    /// The value for a missing field; `None` if a missing field is an error.
    default: Option<Array>,
    /// The number of axes of size 1 after the row axis.
    n_axes: usize,
    /// The origin of its type, for messages.
    origin: Origin,
    /// The texts, besides the empty one, that mean a missing value.
    missing: Arc<[Vec<u8>]>,
}

/// The origin of a column's type. It is formatted only when a message needs it: there may be a
/// million columns.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Declared,
    Found(InferredColumn),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Declared => f.write_str("the type was declared"),
            Origin::Found(column) => write!(f, "the type was found {}", column.reason()),
        }
    }
}

/// A field that could not be parsed.
pub(crate) struct BadField {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Column {
    pub(crate) fn new(
        name: &str,
        index: usize,
        spec: FeatureSpec,
        origin: Origin,
        missing: Arc<[Vec<u8>]>,
    ) -> Result<Column> {
        let FeatureSpec::Dense { dtype, dims, default } = &spec else {
            return Err(Error::unsupported(format!(
                "column `{name}` has a ragged or padded spec, but a CSV column holds one value per row"
            ))
            .help("give it a dense spec, and split its strings in the model or in `map`"));
        };
        if dims.iter().product::<usize>() != 1 {
            return Err(Error::shape(format!(
                "column `{name}` has a spec of the shape {dims:?}, but a CSV column holds one value per row"
            )));
        }
        if !matches!(dtype, DType::I32 | DType::I64 | DType::F32 | DType::F64 | DType::Str) {
            return Err(Error::unsupported(format!("column `{name}` cannot be read as {dtype}"))
                .help("read it as i32, i64, f32, f64 or str, and convert it in `map`"));
        }
        if let Some(default) = default.as_ref().filter(|default| default.len() != 1 || default.dtype() != *dtype) {
            let found = format!("{}{:?}", default.dtype(), default.dims());
            return Err(Error::config(format!("the default of column `{name}` is {found}; expected one {dtype}")));
        }
        let (dtype, default, n_axes) = (*dtype, default.clone(), dims.len());
        Ok(Column { name: name.to_string(), index, spec, dtype, default, n_axes, origin, missing })
    }

    /// Whether its type was inferred. A missing value then becomes 0 or the empty string, without
    /// the user's choice.
    pub(crate) fn is_inferred(&self) -> bool {
        matches!(self.origin, Origin::Found(_))
    }

    /// Whether a text is a value of this column, which holds numbers.
    pub(crate) fn is_number(&self, text: &[u8]) -> bool {
        !self.is_missing(text) && !text.trim_ascii().is_empty() && self.parse(std::iter::once(text)).is_ok()
    }

    /// Parses the fields of all rows. Also returns which rows of a number had no value, if any.
    pub(crate) fn parse<'a>(
        &self,
        fields: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    ) -> Result<(Array, Option<Array>), BadField> {
        match self.dtype {
            DType::I32 => self.numbers::<i32>(fields),
            DType::I64 => self.numbers::<i64>(fields),
            DType::F32 => self.numbers::<f32>(fields),
            DType::F64 => self.numbers::<f64>(fields),
            _ => Ok((self.strings(fields)?, None)),
        }
    }

    fn numbers<'a, T: Element + ParseNumber>(
        &self,
        fields: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<(Array, Option<Array>), BadField> {
        let default = self.default.as_ref().and_then(|default| default.as_slice::<T>().ok()?.first().copied());
        let n = fields.len();
        let (mut values, mut missing) = (Vec::with_capacity(n), Vec::new());
        for text in fields {
            let is_missing = self.is_missing(text);
            let value = if is_missing { default } else { T::parse(text) };
            let Some(value) = value else { return Err(self.bad(text)) };
            // TF: white space alone is read as 0. It still is a missing value.
            if is_missing || text.trim_ascii().is_empty() {
                missing.resize(n, false);
                missing[values.len()] = true;
            }
            values.push(value);
        }
        let missing = if missing.is_empty() { None } else { Some(Array::from(missing)) };
        Ok((Array::from_vec(self.dims(n), values).map_err(|e| self.internal(&e))?, missing))
    }

    fn strings<'a>(&self, fields: impl ExactSizeIterator<Item = &'a [u8]> + Clone) -> Result<Array, BadField> {
        let default = self.default.as_ref().and_then(|default| default.string_slice().ok());
        let n = fields.len();
        let mut strings = Strings::with_capacity(n);
        strings.reserve_bytes(fields.clone().map(<[u8]>::len).sum());
        for text in fields {
            if !self.is_missing(text) {
                strings.push(text);
            } else if let Some(default) = default {
                strings.push(default.get(0));
            } else {
                return Err(self.bad(text));
            }
        }
        Array::from_string_list(self.dims(n), strings).map_err(|e| self.internal(&e))
    }

    #[inline]
    fn is_missing(&self, text: &[u8]) -> bool {
        is_missing(text, &self.missing)
    }

    fn dims(&self, n_rows: usize) -> Vec<usize> {
        std::iter::once(n_rows).chain(std::iter::repeat_n(1, self.n_axes)).collect()
    }

    #[cold]
    fn bad(&self, text: &[u8]) -> BadField {
        let Column { name, dtype, origin, .. } = self;
        if self.is_missing(text) {
            let message = format!("column `{name}` has no value here, and the column has no default");
            let help = "give the column a spec with a default: FeatureSpec::dense_or".to_string();
            return BadField { message, help };
        }
        let message = format!("column `{name}` has \"{}\", which is not a valid {dtype}", shown(text));
        let help =
            format!("{origin}; declare another type, or add the text to na_values if it stands for a missing value");
        BadField { message, help }
    }

    #[cold]
    fn internal(&self, error: &Error) -> BadField {
        BadField { message: error.to_string(), help: "this is a bug in Estimand".to_string() }
    }
}
