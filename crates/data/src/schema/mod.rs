//! Schemas: descriptions of the rows that a dataset should have. A schema is inferred from data,
//! written as TOML that people edit, read back, and checked against data.
//!
//! ```
//! use estimand_data::{Dataset, Schema};
//! use estimand_tensor::{Array, Result};
//!
//! let people = |ages: [i64; 2], jobs: [&str; 2]| -> Result<Dataset> {
//!     Ok(Dataset::from_arrays([("age", Array::from(ages)), ("job", Array::from_strings([2], jobs)?)]))
//! };
//! let schema = Schema::of(&people([39, 50], ["clerk", "farmer"])?)?;
//! let text = schema.to_toml().replace("max = 50", "max = 120");    // a person's work
//!
//! let misfits = people([61, 40], ["farmer", "clark"])?.check_schema(&Schema::from_toml(&text)?)?;
//! assert_eq!(misfits.to_string(), "\
//! column `job`, row 2: \"clark\" is not in the domain; did you mean \"clerk\"?
//! ");
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! `column.rs` holds the constraints on a column, and `infer.rs` infers them. `write.rs` and
//! `read.rs` convert them to and from text. `check.rs` checks batches, and `misfits.rs` is the
//! report.

mod check;
mod column;
mod infer;
mod misfits;
mod nesting;
mod read;
mod write;

pub use column::{ColumnKind, SchemaColumn, Value};
pub use misfits::{Misfit, Misfits};

use std::path::Path;

use estimand_tensor::{Batch, BatchSpec, Error, Limits, Result};

use crate::statistics::Role;
use crate::writer::write_whole;
use crate::{Dataset, Statistics};

/// A description of the columns that a dataset should have.
#[derive(Clone, Debug)]
pub struct Schema {
    columns: Vec<SchemaColumn>,
    /// The text as it was written or read, including comments.
    text: String,
}

impl Schema {
    /// Infers a schema from all rows of a dataset. To use only some rows:
    /// `Schema::of(&data.take(10_000))`.
    pub fn of(data: &Dataset) -> Result<Schema> {
        Schema::infer(&data.statistics()?)
    }

    /// Infers a schema from statistics.
    pub fn infer(statistics: &Statistics) -> Result<Schema> {
        let columns = infer::columns(statistics)?;
        let text = write::text(&columns, statistics);
        Ok(Schema { columns, text })
    }

    /// Parses the text of a schema. An error names the line and the key.
    pub fn from_toml(text: &str) -> Result<Schema> {
        Ok(Schema { columns: read::columns(text, None)?, text: text.to_string() })
    }

    /// Reads a schema from a file. An error names the file, the line and the key.
    pub fn read(path: impl AsRef<Path>) -> Result<Schema> {
        Schema::read_within(path, &Limits::default())
    }

    /// Reads a schema from a file of at most [`Limits::text_bytes`].
    pub fn read_within(path: impl AsRef<Path>, limits: &Limits) -> Result<Schema> {
        let path = path.as_ref();
        let text = String::from_utf8(limits.read_text(path).map_err(|e| e.context("while reading a schema"))?)
            .map_err(|e| Error::data(format!("the schema is not UTF-8 text: {}", e.utf8_error())).in_file(path))?;
        Ok(Schema { columns: read::columns(&text, Some(path))?, text })
    }

    /// Writes the schema to a file. The file appears whole or not at all.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        write_whole(path.as_ref(), self.text.as_bytes())
    }

    /// The text of the schema. A schema that was read keeps its text and comments; an inferred
    /// schema has comments that give reasons.
    pub fn to_toml(&self) -> &str {
        &self.text
    }

    /// The columns, in the order of the text.
    pub fn columns(&self) -> &[SchemaColumn] {
        &self.columns
    }

    /// The column with a name.
    pub fn column(&self, name: &str) -> Result<&SchemaColumn> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.name.as_str());
            Error::unknown("column", name, names).context("in the schema")
        })
    }

    /// The specs to read all columns from files, including labels and weights.
    /// [`Dataset::from_tfrecord`] and [`Csv::features`](crate::Csv::features) take them.
    pub fn feature_specs(&self) -> Result<BatchSpec> {
        self.columns.iter().map(|column| Ok((column.name.clone(), column.feature_spec()?))).collect()
    }

    /// Turns columns into labels and weights, as the schema specifies.
    pub fn with_roles(&self, data: &Dataset) -> Dataset {
        self.columns.iter().fold(data.clone(), |data, column| match column.role {
            Role::Feature => data,
            Role::Label => data.label(&column.name),
            Role::Weights => data.weights(&column.name),
        })
    }

    /// Checks a batch and reports the values that do not fit. Rows are counted from 1.
    pub fn check(&self, batch: &Batch) -> Misfits {
        let mut checker = check::Checker::new(self);
        checker.check(batch);
        checker.finish()
    }
}

impl Dataset {
    /// Checks all rows against a schema and reports the values that do not fit. Rows are counted
    /// from 1. Returns an error only if rows cannot be read.
    pub fn check_schema(&self, schema: &Schema) -> Result<Misfits> {
        check::dataset(self, schema)
    }
}
