//! Files that hold whole arrays. Each format has a function from bytes to arrays, and a source that
//! reads the file when rows are first needed.

pub mod cifar10;
pub mod idx;
pub mod npy;
mod npy_header;
pub mod npz;
mod numbers;
pub mod zip;

use estimand_tensor::{Array, Batch, Error, Result};

use crate::source::loaded::Loaded;
use crate::{Dataset, Files};

/// Creates a dataset from one array per named file.
fn from_files<N: Into<String>, F: Into<Files>>(
    format: &'static str,
    files: impl IntoIterator<Item = (N, F)>,
    parse: fn(&[u8]) -> Result<Array>,
) -> Dataset {
    let files: Vec<(String, Files)> = files.into_iter().map(|(name, file)| (name.into(), file.into())).collect();
    let places: Vec<_> = files.iter().map(|(name, file)| format!("`{name}` from {file}")).collect();
    let named = files.clone();
    let load = move || {
        let mut rows = Batch::new();
        for (name, file) in &files {
            if rows.features().contains_key(name.as_str()) {
                return Err(
                    Error::config(format!("two {format} files are named `{name}`")).help("give them different names")
                );
            }
            let path = file.only()?;
            let bytes = file.read(&path)?;
            rows = parse(&bytes).and_then(|array| rows.with_feature(name, array)).map_err(|e| e.in_file(&path))?;
        }
        if files.is_empty() {
            return Err(
                Error::config(format!("the dataset was given no {format} files")).help("name at least one path")
            );
        }
        Ok(rows)
    };
    let paths = move || named.iter().map(|(_, file)| file.only()).collect();
    Dataset::new(Loaded::new(format!("{format}: {}", places.join(", ")), load).read_from(paths))
}
