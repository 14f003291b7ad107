//! NPZ, numpy's archive of named arrays, as `numpy.savez` and `numpy.savez_compressed` write it.

use std::collections::HashSet;
use std::path::Path;

use estimand_tensor::{Array, Batch, Error, Limits, Result};

use super::{npy, zip};
use crate::source::loaded::Loaded;
use crate::{Dataset, Files};

impl Dataset {
    /// Creates a dataset from all arrays of an NPZ file. Each is a feature with the array's name.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// let data = Dataset::from_npz("train.npz").label("y").batch(32);
    /// assert_eq!(data.explain(), "batch(32)\n  label(`y`)\n    npz: train.npz\n");
    /// ```
    ///
    /// `file` is a path, or [`Files`] with one path and options.
    pub fn from_npz(file: impl Into<Files>) -> Dataset {
        let file = file.into();
        let description = format!("npz: {file}");
        let named = file.clone();
        let load = move || {
            let path = file.only()?;
            let arrays = file.read(&path)?;
            let arrays = from_bytes_within(&arrays, file.reading_limits()).map_err(|e| e.in_file(&path))?;
            let mut rows = Batch::new();
            for (name, array) in arrays {
                rows = rows.with_feature(&name, array).map_err(|e| e.in_file(&path))?;
            }
            Ok(rows)
        };
        Dataset::new(Loaded::new(description, load).read_from(move || Ok(vec![named.only()?])))
    }
}

/// Reads the named arrays in a file, in the order of the archive.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<(String, Array)>> {
    let path = path.as_ref();
    from_bytes(&Files::new(path).read(path)?).map_err(|e| e.in_file(path))
}

/// Parses the named arrays in the bytes of a file, with the default [`Limits`].
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<(String, Array)>> {
    from_bytes_within(bytes, &Limits::default())
}

/// Parses the named arrays in the bytes of a file, decompressing no more than the limits allow.
///
/// Members that share bytes are always refused.
pub fn from_bytes_within(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Array)>> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut names = HashSet::new();
    for member in zip::members(bytes, limits)? {
        let name = member.name.strip_suffix(".npy").ok_or_else(|| {
            Error::data(format!("the archive has the member `{}`; the names in an NPZ file end in .npy", member.name))
        })?;
        if !names.insert(name) {
            return Err(Error::data(format!("two arrays are named `{name}`")));
        }
        let array = member.unpack().and_then(|bytes| npy::from_bytes(&bytes));
        arrays.push((name.to_string(), array.map_err(|e| e.context(format!("in the array `{name}`")))?));
    }
    if arrays.is_empty() {
        return Err(Error::data("the archive has no arrays"));
    }
    Ok(arrays)
}
