//! Parquet files.
//!
//! From the bottom up: `chunks.rs` serves bytes, `file.rs` decodes a row group, `workers.rs`
//! decodes row groups on several threads, and `scan.rs` is the source. `writer.rs` writes files.

mod chunks;
mod file;
pub(crate) mod scan;
mod workers;
mod writer;

pub use writer::{Compression, Writer, write};

use estimand_data::Files;
use estimand_data::datasets::TableFormat;

use crate::reader::{Reader, Source};

/// Reads Parquet files, one after another, given by a path, a list of paths, or patterns.
///
/// ```no_run
/// # use estimand_data_parquet::parquet;
/// let data = parquet::read("train/*.parquet").select(["age", "education", "income"]).label("income").dataset();
/// # let _ = data;
/// ```
pub fn read(files: impl Into<Files>) -> Reader {
    Reader::new(Source::Parquet(files.into()))
}

/// Parquet files of data sets, which a [`Folder`](estimand_data::datasets::Folder) then finds as it
/// finds CSV files.
///
/// ```no_run
/// use estimand_data::datasets::Folder;
/// use estimand_data_parquet::parquet;
///
/// let houses = Folder::new("data").tables(parquet::TABLES).load("california_housing", "train")?;
/// # let _ = houses;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub const TABLES: TableFormat = TableFormat {
    extension: "parquet",
    read: |path, spec| read(path).select(spec.keys()).features(spec.clone()).dataset(),
};
