//! Writes TFRecord files with one `tf.Example` per row.

use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};
use estimand_wire::example::encode_batch;
use estimand_wire::record::RecordWriter;

use super::output::{Output, publish};
use super::{Written, columns, each_piece};
use crate::{Compression, Dataset};

/// The largest number of shards: more files than anyone needs open at once.
const MAX_SHARDS: usize = 4096;

/// Writes the rows of a dataset as `tf.Example`s, which TensorFlow's `TFRecordDataset` and
/// [`Dataset::from_tfrecord`] can read.
///
/// Integers and booleans become `int64_list`s, f32 becomes `float_list`s, and strings become
/// `bytes_list`s. Rows of several axes are flattened; a ragged row without values is an empty list.
/// Labels are written like features.
///
/// ```no_run
/// use estimand_data::{Compression, Dataset, writer::TfRecordWriter};
/// # fn write(data: &Dataset) -> estimand_tensor::Result<()> {
/// // train-00000-of-00005.gz .. train-00004-of-00005.gz
/// let written = TfRecordWriter::new("train.gz").n_shards(5).write(data)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct TfRecordWriter {
    path: PathBuf,
    n_shards: Option<usize>,
    compression: Option<Compression>,
    weights: Option<String>,
}

impl TfRecordWriter {
    /// Writes to a path. Missing folders are created.
    pub fn new(path: impl AsRef<Path>) -> TfRecordWriter {
        TfRecordWriter { path: path.as_ref().to_path_buf(), n_shards: None, compression: None, weights: None }
    }

    /// Distributes the rows over `n` files, `name-00000-of-00005` and so on: row i goes to file i
    /// modulo `n`. By default, there is one file with the plain name.
    ///
    /// The extension of a compressed file stays at the end: `name-00000-of-00005.gz`.
    pub fn n_shards(self, n: usize) -> TfRecordWriter {
        TfRecordWriter { n_shards: Some(n), ..self }
    }

    /// Compresses the files. By default, the extension decides: `.gz` is gzip, `.zlib` zlib.
    pub fn compression(self, compression: Compression) -> TfRecordWriter {
        TfRecordWriter { compression: Some(compression), ..self }
    }

    /// Also writes the weights of the rows, as a feature with this name. Required if rows have
    /// weights.
    pub fn weights(self, name: impl Into<String>) -> TfRecordWriter {
        TfRecordWriter { weights: Some(name.into()), ..self }
    }

    /// Writes all rows of a dataset.
    pub fn write(&self, data: &Dataset) -> Result<Written> {
        let paths = self.paths()?;
        let compression = self.compression.unwrap_or_else(|| Compression::of(&self.path));
        let files = paths.iter().map(|path| Ok(RecordWriter::new(Output::create(path, compression)?)));
        let mut files = files.collect::<Result<Vec<_>>>()?;
        let n_files = files.len();
        let n_rows = each_piece(data, |first, batch| {
            let columns = columns(batch, self.weights.as_deref())?;
            let examples = encode_batch(columns.iter().map(|(name, feature)| (name.as_str(), feature)))?;
            for (row, example) in (first..).zip(examples.iter()) {
                let file = &mut files[(row % n_files as u64) as usize];
                file.write(example).map_err(|e| file.get_ref().failed(&e))?;
            }
            Ok(())
        })?;
        let (n_bytes, paths) = publish(files.into_iter().map(RecordWriter::into_inner).collect())?;
        Ok(Written { n_rows, n_bytes, paths })
    }

    fn paths(&self) -> Result<Vec<PathBuf>> {
        let Some(n) = self.n_shards else { return Ok(vec![self.path.clone()]) };
        if n == 0 || n > MAX_SHARDS {
            return Err(Error::config(format!("the number of record files is {n}; expected 1 to {MAX_SHARDS}")));
        }
        // A reader finds the compression from the extension.
        let ending = match Compression::of(&self.path) {
            Compression::None => None,
            _ => self.path.extension(),
        };
        let stem = if ending.is_some() { self.path.with_extension("") } else { self.path.clone() };
        let name = |i: usize| {
            let mut name = stem.clone().into_os_string();
            name.push(format!("-{i:05}-of-{n:05}"));
            if let Some(ending) = ending {
                name.push(".");
                name.push(ending);
            }
            PathBuf::from(name)
        };
        Ok((0..n).map(name).collect())
    }
}

impl Dataset {
    /// Writes all rows to a TFRecord file of `tf.Example`s, compressed if the name ends in `.gz` or
    /// `.zlib`. [`TfRecordWriter`] has options.
    pub fn write_tfrecord(&self, path: impl AsRef<Path>) -> Result<Written> {
        TfRecordWriter::new(path).write(self)
    }
}
