//! Infers the types of columns from a sample of every file, and records the reason for each.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use estimand_tensor::cpu::text::ParseNumber;
use estimand_tensor::{Array, DType, Error, ErrorKind, FeatureSpec, Result};

use super::missing::is_missing;

/// The type of a column's fields, from narrow to wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FieldType {
    I32,
    I64,
    F32,
    F64,
    Str,
}

impl FieldType {
    fn of(text: &[u8]) -> FieldType {
        if i32::parse(text).is_some() {
            return FieldType::I32;
        }
        if i64::parse(text).is_some() {
            return FieldType::I64;
        }
        // White space alone would parse as 0, but counts as text.
        match f64::parse(text).filter(|_| !text.trim_ascii().is_empty()) {
            Some(value) if value.is_finite() && value.abs() > f64::from(f32::MAX) => FieldType::F64,
            Some(_) => FieldType::F32,
            None => FieldType::Str,
        }
    }

    fn dtype(self) -> DType {
        match self {
            FieldType::I32 => DType::I32,
            FieldType::I64 => DType::I64,
            FieldType::F32 => DType::F32,
            FieldType::F64 => DType::F64,
            FieldType::Str => DType::Str,
        }
    }
}

/// The type of one column, inferred from samples.
#[derive(Clone, Debug)]
pub struct InferredColumn {
    name: String,
    kind: Option<FieldType>,
    /// The field that required this type.
    because: Option<Evidence>,
    n_values: usize,
    n_missing: usize,
}

#[derive(Clone, Debug)]
struct Evidence {
    path: Arc<Path>,
    row: usize,
    text: String,
}

impl InferredColumn {
    pub(crate) fn new(name: &str) -> InferredColumn {
        InferredColumn { name: name.to_string(), kind: None, because: None, n_values: 0, n_missing: 0 }
    }

    /// Its name in the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type: the narrowest of i32, i64, f32, f64 and str that fits every value of the samples;
    /// str if there were no values.
    pub fn dtype(&self) -> DType {
        self.kind.map_or(DType::Str, FieldType::dtype)
    }

    /// The spec with TensorFlow's defaults: a missing number is 0, a missing string is empty.
    pub(crate) fn spec(&self) -> Result<FeatureSpec> {
        let default = match self.dtype() {
            DType::Str => Array::from_strings([0_usize; 0], [""])?,
            dtype => Array::zeros(dtype, [])?,
        };
        Ok(FeatureSpec::dense_or(default))
    }

    /// Takes one field into account. `is_first` means that this is the first file that was sampled:
    /// only there may the type change from number to text.
    pub(crate) fn see(
        &mut self,
        text: &[u8],
        missing: &[Vec<u8>],
        path: &Arc<Path>,
        row: usize,
        is_first: bool,
    ) -> Result<()> {
        if is_missing(text, missing) {
            self.n_missing += 1;
            return Ok(());
        }
        self.n_values += 1;
        let kind = FieldType::of(text);
        if self.kind.is_some_and(|known| kind <= known) {
            return Ok(());
        }
        let evidence = Evidence { path: path.clone(), row, text: String::from_utf8_lossy(text).into_owned() };
        if let Some(known) = self.kind.filter(|known| *known < FieldType::Str && kind == FieldType::Str && !is_first) {
            let place = ErrorKind::Data {
                path: Some(path.to_path_buf()),
                row: Some(row as u64),
                column: Some(self.name.clone()),
            };
            let message = format!(
                "column `{}` is {} in the earlier files, but has \"{}\" here",
                self.name,
                known.dtype(),
                evidence.text.escape_debug()
            );
            return Err(Error::new(place, message)
                .context(format!("in row {row} of {}", path.display()))
                .help("declare its type, or add the text to na_values if it stands for a missing value"));
        }
        (self.kind, self.because) = (Some(kind), Some(evidence));
        Ok(())
    }

    /// The reason for its type.
    pub fn reason(&self) -> String {
        match &self.because {
            None => "no value in the sample".to_string(),
            Some(Evidence { path, row, text }) => {
                let text: String = text.chars().take(40).collect();
                format!("by \"{}\" in row {row} of {}", text.escape_debug(), path.display())
            }
        }
    }
}

/// `age: i32 by "39" in row 1 of adult.csv; 100 values, 2 missing`
impl fmt::Display for InferredColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}; ", self.name, self.dtype(), self.reason())?;
        write!(f, "{} values, {} missing", self.n_values, self.n_missing)
    }
}
