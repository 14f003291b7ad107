//! What the rows of a dataset should look like: inferred from data, written as TOML that people
//! edit, read back, and held against data.
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
//! `column.rs` is what is said about a column, `infer.rs` how it is found, `write.rs` and `read.rs`
//! its text, `check.rs` holds it against batches and `misfits.rs` is what that finds.

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

/// What the columns of a dataset should look like.
#[derive(Clone, Debug)]
pub struct Schema {
    columns: Vec<SchemaColumn>,
    /// As it was written or read, comments included.
    text: String,
}

impl Schema {
    /// Inferred from all rows of a dataset. Of some rows: `Schema::of(&data.take(10_000))`.
    pub fn of(data: &Dataset) -> Result<Schema> {
        Schema::infer(&data.statistics()?)
    }

    /// Inferred from statistics.
    pub fn infer(statistics: &Statistics) -> Result<Schema> {
        let columns = infer::columns(statistics)?;
        let text = write::text(&columns, statistics);
        Ok(Schema { columns, text })
    }

    /// Reads a schema's text. An error names the line and the key.
    pub fn from_toml(text: &str) -> Result<Schema> {
        Ok(Schema { columns: read::columns(text, None)?, text: text.to_string() })
    }

    /// Reads a schema's file. An error names the file, the line and the key.
    pub fn read(path: impl AsRef<Path>) -> Result<Schema> {
        Schema::read_within(path, &Limits::default())
    }

    /// Reads a schema's file of at most [`Limits::text_bytes`].
    pub fn read_within(path: impl AsRef<Path>, limits: &Limits) -> Result<Schema> {
        let path = path.as_ref();
        let text = String::from_utf8(limits.read_text(path).map_err(|e| e.context("reading a schema"))?)
            .map_err(|e| Error::data(format!("a schema that is no UTF-8: {}", e.utf8_error())).in_file(path))?;
        Ok(Schema { columns: read::columns(&text, Some(path))?, text })
    }

    /// Writes the schema's text to a file, whole or not at all.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        write_whole(path.as_ref(), self.text.as_bytes())
    }

    /// The text: what was read, with all its comments, or what was inferred, with comments that say
    /// why.
    pub fn to_toml(&self) -> &str {
        &self.text
    }

    /// The columns, in the order of the text.
    pub fn columns(&self) -> &[SchemaColumn] {
        &self.columns
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Result<&SchemaColumn> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.name.as_str());
            Error::unknown("column", name, names).context("in the schema")
        })
    }

    /// How the columns are read from files, labels and weights included: what
    /// [`Dataset::from_tfrecord`] and [`Csv::features`](crate::Csv::features) take.
    pub fn feature_specs(&self) -> Result<BatchSpec> {
        self.columns.iter().map(|column| Ok((column.name.clone(), column.feature_spec()?))).collect()
    }

    /// Gives columns the roles that the schema says: labels and weights.
    pub fn with_roles(&self, data: &Dataset) -> Dataset {
        self.columns.iter().fold(data.clone(), |data, column| match column.role {
            Role::Feature => data,
            Role::Label => data.label(&column.name),
            Role::Weights => data.weights(&column.name),
        })
    }

    /// What in a batch does not fit. Rows are counted from 1.
    pub fn check(&self, batch: &Batch) -> Misfits {
        let mut checker = check::Checker::new(self);
        checker.check(batch);
        checker.finish()
    }
}

impl Dataset {
    /// What in all rows does not fit a schema. Rows are counted from 1; an error only if rows
    /// cannot be read.
    pub fn check_schema(&self, schema: &Schema) -> Result<Misfits> {
        check::dataset(self, schema)
    }
}
