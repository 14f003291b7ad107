//! An input of a signature, and what stands for a value that a request leaves out: [`Input`].

use estimand_tensor::{Array, DType, Strings};

use super::column::type_name;
use crate::status::{Answer, Status};

/// One input of a signature.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    /// The value of a row that has none: of the row's shape, or one value for rows of any size.
    pub(crate) default: Option<Array>,
    /// Whether rows may have any size, padded to the longest.
    pub(crate) is_padded: bool,
    /// A value of the training, as JSON.
    pub(crate) example: Option<String>,
}

impl Input {
    pub(crate) fn new(name: impl Into<String>, dtype: DType) -> Input {
        Input { name: name.into(), dtype, default: None, is_padded: false, example: None }
    }

    /// What a value of this input looks like: `expected float, such as 39.0`.
    pub(crate) fn expected(&self) -> String {
        let example = self.example.as_deref().unwrap_or(match self.dtype {
            DType::F32 | DType::F64 => "1.5",
            DType::I32 | DType::I64 | DType::U8 => "1",
            DType::Bool => "true",
            DType::Str => "\"text\"",
        });
        format!("expected {}, such as {example}", type_name(self.dtype))
    }

    /// The end of a message about a value that is not there.
    pub(crate) fn is_required(&self) -> String {
        format!("Input `{}` is missing and has no default: {}", self.name, self.expected())
    }

    /// The default for each of `n` rows; an error that names the input if there is none.
    pub(crate) fn default_rows(&self, n: usize) -> Answer<Array> {
        let Some(default) = &self.default else { return Err(Status::invalid(self.is_required())) };
        let mut dims = vec![n];
        dims.extend_from_slice(if self.is_padded { &[1] } else { default.dims() });
        Ok(repeated(default, n, &dims)?)
    }
}

/// An array of `n` copies.
fn repeated(value: &Array, n: usize, dims: &[usize]) -> estimand_tensor::Result<Array> {
    if value.dtype() == DType::Str {
        let mut all = Strings::with_capacity(n * value.len());
        for _ in 0..n {
            all.append_slice(value.string_slice()?);
        }
        return Array::from_string_list(dims, all);
    }
    Array::from_bytes(value.dtype(), dims, &value.bytes().repeat(n))
}

/// What to do with names in a request that the model does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownKeys {
    /// As TensorFlow Serving does: an error, except in the columns of REST (`inputs`), where they
    /// are ignored.
    #[default]
    TensorFlow,
    /// They are ignored.
    Ignore,
    /// They are ignored and counted, and the log names each of them once.
    Warn,
    /// The request is refused.
    Error,
}

impl UnknownKeys {
    /// Whether a name is an error; `is_column` for the columns of REST.
    pub(crate) fn is_error(self, is_column: bool) -> bool {
        match self {
            UnknownKeys::TensorFlow => !is_column,
            UnknownKeys::Error => true,
            UnknownKeys::Ignore | UnknownKeys::Warn => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_repeated_for_each_row() {
        let mut input = Input::new("x", DType::F32);
        let message = input.default_rows(2).unwrap_err().message;
        assert_eq!(message, "Input `x` is missing and has no default: expected float, such as 1.5");
        input.default = Some(Array::from([1f32, 2.0]));
        assert_eq!(input.default_rows(2).unwrap(), Array::from_vec([2, 2], vec![1f32, 2.0, 1.0, 2.0]).unwrap());
        let mut input = Input::new("s", DType::Str);
        input.default = Some(Array::from_strings([], ["a"]).unwrap());
        assert_eq!(input.default_rows(2).unwrap(), Array::from_strings([2], ["a", "a"]).unwrap());
    }
}
