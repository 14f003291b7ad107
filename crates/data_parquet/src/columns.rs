//! The columns to read and their types: matches the user's selection with a schema.

use std::fmt;
use std::path::{Path, PathBuf};

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::Schema;
use estimand_data::{Files, OnError, slice_rows};
use estimand_tensor::{Array, Batch, BatchSpec, Error, ErrorKind, Feature, FeatureSpec, Result};

use crate::bad::Bad;
use crate::cast::is_castable;
use crate::column_type::{ColumnType, Layout};
use crate::convert::{MISSING, Target, feature, taken_over};

/// The user's selection, before any schema is known.
#[derive(Clone, Default)]
pub(crate) struct Selection {
    /// `None` selects all columns.
    pub(crate) select: Option<Vec<String>>,
    pub(crate) label: Option<String>,
    pub(crate) specs: BatchSpec,
    pub(crate) refuse_missing: bool,
}

/// The selected columns of one schema.
#[derive(Debug)]
pub(crate) struct Columns {
    list: Vec<Column>,
    /// The origin of the schema, for errors about another that differs.
    origin: Origin,
}

#[derive(Debug)]
struct Column {
    name: String,
    kind: ColumnType,
    target: Target,
    spec: FeatureSpec,
}

/// The origin of data, for errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    File(PathBuf),
    Batches,
}

impl Origin {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Origin::File(path) => Some(path),
            Origin::Batches => None,
        }
    }

    /// An error about one of its columns.
    fn error(&self, column: &str, row: Option<u64>, message: impl Into<String>) -> Error {
        let path = self.path().map(Into::into);
        Error::new(ErrorKind::Data { path, row, column: Some(column.to_string()) }, message)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Batches => f.write_str("the record batches"),
        }
    }
}

impl Selection {
    /// The text for `explain`.
    pub(crate) fn describe(&self) -> String {
        match &self.select {
            Some(names) => format!("{} columns", names.len()),
            None => "all columns".to_string(),
        }
    }

    /// Checks the selection by itself.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(names) = &self.select else { return Ok(()) };
        if names.is_empty() {
            return Err(
                Error::config("no column is selected").help("select at least one, or leave out `select` to read all")
            );
        }
        if let Some((_, name)) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(Error::config(format!("column `{name}` is selected twice")).help("select it once"));
        }
        match self.label.as_ref().filter(|label| !names.contains(label)) {
            Some(label) => Err(Error::config(format!("the label `{label}` is not among the selected columns"))
                .help("add it to `select`")),
            None => Ok(()),
        }
    }

    /// Resolves the selection to columns, in the order of the schema.
    pub(crate) fn resolve(&self, schema: &Schema, origin: &Origin) -> Result<Columns> {
        let known = schema.fields().iter().map(|field| field.name().as_str());
        for name in self.select.iter().flatten().chain(self.specs.keys()).chain(&self.label) {
            if known.clone().all(|known| known != name) {
                return Err(no_column(name, schema, origin));
            }
        }
        let is_selected = |name: &&str| self.select.as_ref().is_none_or(|names| names.iter().any(|n| n == name));
        let list =
            known.filter(is_selected).map(|name| self.column(name, schema, origin)).collect::<Result<Vec<_>>>()?;
        if list.is_empty() {
            return Err(Error::config(format!("{origin} has no columns")));
        }
        Ok(Columns { list, origin: origin.clone() })
    }

    fn column(&self, name: &str, schema: &Schema, origin: &Origin) -> Result<Column> {
        let (kind, is_nullable) = kind_of(name, schema, origin)?;
        let spec = match self.specs.get(name) {
            Some(spec) => spec.clone(),
            None => match &kind.layout {
                Layout::Dense(dims) if is_nullable && !self.refuse_missing => {
                    FeatureSpec::dense_or(Array::zeros(kind.dtype, dims)?)
                }
                Layout::Dense(dims) => FeatureSpec::dense(kind.dtype, dims.clone()),
                Layout::Ragged => FeatureSpec::ragged(kind.dtype),
            },
        };
        let target = self.target(&spec, &kind).map_err(|e| e.context(format!("in column `{name}` of {origin}")))?;
        Ok(Column { name: name.to_string(), kind, target, spec })
    }

    /// Decides how to read a column of this type as its spec.
    fn target(&self, spec: &FeatureSpec, kind: &ColumnType) -> Result<Target> {
        let dtype = spec.dtype();
        if !is_castable(kind.dtype, dtype) {
            return Err(Error::dtype(
                Some(kind.dtype),
                dtype,
                format!("the spec asks for {dtype}, but the column holds {kind}"),
            )
            .help("read integers as integers or floats, and floats as floats; convert others in `map`"));
        }
        match (spec, &kind.layout) {
            (FeatureSpec::Dense { dims, default, .. }, Layout::Dense(found))
                if dims == found || (found.is_empty() && dims.iter().all(|&size| size == 1)) =>
            {
                let width: usize = dims.iter().product();
                if let Some(bad) = default.as_ref().filter(|d| d.dtype() != dtype || d.len() != width || width == 0) {
                    let bad = format!("{}{:?}", bad.dtype(), bad.dims());
                    return Err(Error::config(format!("the default is {bad}, expected {dtype}{dims:?}")));
                }
                Ok(Target { dtype, dims: dims.clone(), default: default.clone() })
            }
            (FeatureSpec::Ragged { .. }, Layout::Ragged) => {
                let default = (!self.refuse_missing).then(|| Array::zeros(dtype, [])).transpose()?;
                Ok(Target { dtype, dims: Vec::new(), default })
            }
            (FeatureSpec::Padded { .. }, _) => {
                Err(Error::unsupported("the spec is padded, but rows cannot be padded before `batch`")
                    .help("read it with FeatureSpec::ragged, and pad with `padded_batch`"))
            }
            _ => Err(Error::shape(format!("the spec asks for {spec:?}, but the column holds {kind}"))
                .help("give the spec the shape that the column has in the file")),
        }
    }
}

impl Columns {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|column| column.name.as_str())
    }

    pub(crate) fn spec(&self) -> BatchSpec {
        self.list.iter().map(|column| (column.name.clone(), column.spec.clone())).collect()
    }

    /// Checks that another schema has the same columns. It may have more columns, in any order.
    pub(crate) fn check(&self, schema: &Schema, origin: &Origin) -> Result<()> {
        for column in &self.list {
            let (found, _) = kind_of(&column.name, schema, origin)
                .map_err(|e| e.context(format!("it is {} in {}", column.kind, self.origin)))?;
            if found != column.kind {
                let (name, expected, first) = (&column.name, &column.kind, &self.origin);
                return Err(origin
                    .error(name, None, format!("column `{name}` is {found} in {origin}, but {expected} in {first}"))
                    .help("write all files with one schema, or read them as separate datasets"));
            }
        }
        Ok(())
    }

    /// Converts a record batch with at least these columns to rows. If a row is bad: returns the
    /// rows before it, if any, and the error.
    ///
    /// `n_before` is the number of rows of the origin before this batch.
    pub(crate) fn rows(&self, records: RecordBatch, origin: &Origin, n_before: u64) -> Result<(Batch, Option<Error>)> {
        let (schema, mut n_rows) = (records.schema(), records.num_rows());
        // Each column is moved out, so that the feature can reuse its memory.
        let mut arrays: Vec<_> = records.columns().iter().cloned().map(Some).collect();
        drop(records);
        let (mut batch, mut error) = (Batch::new(), None);
        for column in &self.list {
            let array = schema.index_of(&column.name).ok().and_then(|i| arrays.get_mut(i)?.take());
            let Some(array) = array else { return Err(Error::internal(format!("`{}` was not read", column.name))) };
            let mut array = if n_rows < array.len() { array.slice(0, n_rows) } else { array };
            let feature = loop {
                match column.convert(array) {
                    Ok(feature) => break feature,
                    // The rows before it may be bad in another way.
                    Err((Bad { row: Some(row), error: reason }, Some(whole))) if row > 0 => {
                        error = Some(column.error(origin, Some(n_before.saturating_add(row as u64 + 1)), &reason));
                        (n_rows, array) = (row, whole.slice(0, row));
                    }
                    Err((Bad { row, error }, _)) => {
                        return Err(column.error(origin, row.map(|_| n_before.saturating_add(1)), &error));
                    }
                }
            };
            if batch.n_rows() > n_rows {
                batch = slice_rows(&batch, 0..n_rows)?;
            }
            batch = batch.with_feature(&column.name, feature)?;
        }
        Ok((batch, error))
    }
}

impl Column {
    /// Converts a column to a feature. On failure returns the error, and the column if it still
    /// exists.
    fn convert(&self, array: ArrayRef) -> Result<Feature, (Bad, Option<ArrayRef>)> {
        // The batch must have the type that the schema declares.
        match ColumnType::of(array.data_type()) {
            Ok(kind) if kind == self.kind => {}
            Ok(_) => {
                let text = format!("the column holds {}; expected {}", array.data_type(), self.kind);
                return Err((Error::config(text).into(), None));
            }
            Err(error) => return Err((error.into(), None)),
        }
        let array = match taken_over(array, &self.target) {
            Ok(Ok(feature)) => return Ok(feature),
            Ok(Err(error)) => return Err((error.into(), None)),
            Err(array) => array,
        };
        feature(&array, &self.kind, &self.target).map_err(|bad| (bad, Some(array)))
    }

    fn error(&self, origin: &Origin, row: Option<u64>, reason: &Error) -> Error {
        let place = match row {
            Some(row) => format!("in row {row} of {origin}, column `{}`", self.name),
            None => format!("in column `{}` of {origin}", self.name),
        };
        let error = origin.error(&self.name, row, reason.message()).context(place);
        if reason.message() == MISSING {
            return error.help("give the column a spec with a default: FeatureSpec::dense_or");
        }
        error
    }
}

/// Refuses a quarantine: rows of columns have no text to write to it.
pub(crate) fn refuse_quarantine(files: &Files) -> Result<()> {
    match files.policy() {
        OnError::Fail => Ok(()),
        OnError::Skip | OnError::Quarantine { .. } => Err(Error::unsupported(
            "bad rows of columnar files cannot be left out",
        )
        .help("give missing values a default with FeatureSpec::dense_or; leave out other bad columns with `select`")),
    }
}

/// The type of a column in a schema, and whether values may be missing.
fn kind_of(name: &str, schema: &Schema, origin: &Origin) -> Result<(ColumnType, bool)> {
    let mut fields = schema.fields().iter().filter(|field| field.name() == name);
    let Some(field) = fields.next() else { return Err(no_column(name, schema, origin)) };
    if fields.next().is_some() {
        return Err(Error::config(format!("{origin} has two columns named `{name}`")).help("give them different names"));
    }
    let kind = ColumnType::of(field.data_type()).map_err(|e| e.context(format!("in column `{name}` of {origin}")))?;
    Ok((kind, field.is_nullable()))
}

fn no_column(name: &str, schema: &Schema, origin: &Origin) -> Error {
    let known = schema.fields().iter().map(|field| field.name().as_str());
    origin.error(name, None, format!("there is no column `{name}` in {origin}")).suggest(name, known)
}
