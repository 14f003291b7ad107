//! Writes the rows of a dataset to files. A file appears under its name only when it is complete.
//!
//! `output.rs` is a file that is being written; each format has its own module.
//!
//! ```
//! use estimand_data::Dataset;
//! use estimand_tensor::{Array, Result};
//!
//! let data = Dataset::from_arrays([("x", Array::from([0.1f32, f32::NAN])), ("name", Array::from_strings([2], ["a", "b, c"])?)]);
//! # let folder = std::env::temp_dir().join(format!("estimand-writer-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("rows.csv");
//! assert_eq!(data.write_csv(&path)?.n_rows, 2);
//! assert_eq!(std::fs::read_to_string(&path).unwrap(), "x,name\n0.1,a\n,\"b, c\"\n");
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod csv;
mod libsvm;
pub(crate) mod output;
mod tfrecord;

pub use csv::CsvWriter;
pub use libsvm::LibSvmWriter;
pub use output::{Output, publish};
pub use tfrecord::TfRecordWriter;

use std::path::{Path, PathBuf};

use estimand_tensor::{Batch, Error, Feature, Result};

use crate::stage::{InputContext, PIECE};
use crate::{Compression, Dataset, Position};

/// The result of a writer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The number of rows in all files.
    pub n_rows: u64,
    /// The number of bytes of all files on disk.
    pub n_bytes: u64,
    /// The files, in order.
    pub paths: Vec<PathBuf>,
}

/// Writes a small file, whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = Output::create(path, Compression::None)?;
    file.write(bytes)?;
    publish(vec![file]).map(drop)
}

/// Passes every piece of a dataset to `write`, in order, with the number of rows before it. Returns
/// the number of all rows.
pub fn each_piece(data: &Dataset, mut write: impl FnMut(u64, &Batch) -> Result<()>) -> Result<u64> {
    let mut stream = data.open(&InputContext::default(), &Position::default())?;
    let mut n_rows = 0;
    while let Some(item) = stream.pull(PIECE)? {
        write(n_rows, &item.batch)?;
        n_rows += item.batch.n_rows() as u64;
    }
    Ok(n_rows)
}

/// The columns to write: features, labels, and the weights under the given name.
pub fn columns(batch: &Batch, weights: Option<&str>) -> Result<Vec<(String, Feature)>> {
    let mut columns: Vec<(String, Feature)> = Vec::new();
    let mut add = |name: &str, feature: Feature| {
        if columns.iter().any(|(other, _)| other == name) {
            return Err(Error::config(format!("two columns would have the name `{name}`"))
                .help("rename one of them: features, labels and weights need different names in a file"));
        }
        columns.push((name.to_string(), feature));
        Ok(())
    };
    for (name, feature) in batch.features().iter().chain(batch.labels()) {
        add(name, feature.clone())?;
    }
    match (batch.weights(), weights) {
        (Some(array), Some(name)) => add(name, array.clone().into())?,
        (Some(_), None) => {
            return Err(Error::config("the rows have weights, but no name was given for their column")
                .help("name them with the writer's `weights`"));
        }
        (None, Some(name)) => {
            return Err(Error::config(format!("the rows have no weights to write as column `{name}`"))
                .help("leave the writer's `weights` out"));
        }
        (None, None) => {}
    }
    Ok(columns)
}
