//! [`Reader`]: the options for reading columnar files of any format.

use estimand_data::{Dataset, Files};
use estimand_tensor::FeatureSpec;

use crate::arrow::source::{Input, Records};
use crate::columns::Selection;
use crate::parquet::scan::Scan;

/// The files and columns to read; [`dataset`](Reader::dataset) builds the plan.
///
/// | columns of Arrow's type | become |
/// |---|---|
/// | bool; u8; other integers up to 32 bits; larger integers | bool; u8; i32; i64 (a u64 that does not fit is an error) |
/// | f16, f32; f64 | f32; f64 |
/// | strings and binary, of every layout | strings |
/// | dates, times, timestamps, durations | i64: days, or the column's own unit |
/// | dictionaries | what their values become |
/// | lists | ragged rows |
/// | lists of a fixed size, also nested | dense rows of that shape |
///
/// Decimals, structs, maps, unions and lists of lists are refused. Leave such columns out with
/// [`select`](Reader::select).
///
/// Every file must have the columns of the first file, with types that become the same. The columns
/// may have another order, and there may be more of them.
#[must_use = "a reader reads nothing; `dataset` makes a plan of it"]
#[derive(Clone)]
pub struct Reader {
    source: Source,
    selection: Selection,
}

#[derive(Clone)]
pub(crate) enum Source {
    Parquet(Files),
    Arrow(Input),
}

impl Reader {
    pub(crate) fn new(source: Source) -> Reader {
        Reader { source, selection: Selection::default() }
    }

    /// The columns to read. They keep the order of the file, and other columns are not decoded. By
    /// default, all columns are read.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Reader {
        self.selection.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Declares the type of a column. [`FeatureSpec::dense_or`] also sets the value for missing
    /// values; without it, a missing value is an error. For a column that is not declared, the type
    /// is that of the table above, and a missing value is 0, false or the empty string.
    ///
    /// Integers can be read as other integers, if they fit, and as floats; floats can be read as
    /// floats. Missing lists are empty rows, and missing values in lists are zeros.
    pub fn feature(mut self, name: impl Into<String>, spec: FeatureSpec) -> Reader {
        self.selection.specs.insert(name.into(), spec);
        self
    }

    /// Declares the types of columns, as the spec of feature columns lists them.
    pub fn features<N: Into<String>>(mut self, specs: impl IntoIterator<Item = (N, FeatureSpec)>) -> Reader {
        self.selection.specs.extend(specs.into_iter().map(|(name, spec)| (name.into(), spec)));
        self
    }

    /// The column that is the label. By default, there is none.
    pub fn label(mut self, name: impl Into<String>) -> Reader {
        self.selection.label = Some(name.into());
        self
    }

    /// Makes a missing value an error in every column that was not declared with a default. By
    /// default, missing values become zeros.
    pub fn refuse_missing(mut self) -> Reader {
        self.selection.refuse_missing = true;
        self
    }

    /// Builds the dataset. Reads nothing yet.
    pub fn dataset(self) -> Dataset {
        let label = self.selection.label.clone();
        let data = match self.source {
            Source::Parquet(files) => Dataset::new(Scan::new(files, self.selection)),
            Source::Arrow(input) => Dataset::new(Records::new(input, self.selection)),
        };
        match label {
            Some(label) => data.label(&label),
            None => data,
        }
    }
}
