//! Writes Arrow files.

use std::path::{Path, PathBuf};

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::ArrowError;
use estimand_data::writer::{Output, Written, publish};
use estimand_data::{Compression as Packing, Dataset};
use estimand_tensor::{Error, ErrorKind, Result};

use crate::records::Rows;

/// The compression of the buffers of an Arrow file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// No compression: readers may map the file into memory.
    None,
    /// Fast.
    Lz4,
    /// Smaller. Needs this crate's feature `zstd`, which is on by default.
    Zstd,
}

/// Writes the rows of a dataset to a file in Arrow's IPC file format, also known as Feather 2.
///
/// The columns are the same as those of [`parquet::Writer`](crate::parquet::Writer).
#[derive(Clone, Debug)]
#[must_use]
pub struct Writer {
    path: PathBuf,
    compression: Compression,
    rows: Rows,
}

impl Writer {
    /// Writes to a path. Missing folders are created.
    pub fn new(path: impl AsRef<Path>) -> Writer {
        Writer { path: path.as_ref().to_path_buf(), compression: Compression::None, rows: Rows::default() }
    }

    /// The compression of buffers. By default, none.
    pub fn compression(self, compression: Compression) -> Writer {
        Writer { compression, ..self }
    }

    /// Columns of strings with arbitrary bytes instead of UTF-8. By default, none.
    pub fn binary<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Writer {
        self.rows.binary = names.into_iter().map(Into::into).collect();
        self
    }

    /// Also writes the weights of the rows, as a column with this name. Required if rows have
    /// weights.
    pub fn weights(mut self, name: impl Into<String>) -> Writer {
        self.rows.weights = Some(name.into());
        self
    }

    /// Writes all rows. The file appears under its name when it is complete.
    pub fn write(&self, data: &Dataset) -> Result<Written> {
        let failed = |error: ArrowError| {
            Error::new(
                ErrorKind::Io { path: self.path.clone() },
                format!("cannot write {}: {error}", self.path.display()),
            )
        };
        let codec = match self.compression {
            Compression::None => None,
            Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
            Compression::Zstd if cfg!(feature = "zstd") => Some(CompressionType::ZSTD),
            Compression::Zstd => {
                return Err(Error::unsupported(
                    "cannot write zstd buffers: this program was built without the feature `zstd`",
                )
                .help("turn on the feature `zstd` of estimand-data-parquet, or choose another compression"));
            }
        };
        let options = IpcWriteOptions::default().try_with_compression(codec).map_err(failed)?;
        let mut output = Some(Output::create(&self.path, Packing::None)?);
        let mut writer = None;
        let n_rows = self.rows.each(data, |schema, records| {
            if let Some(output) = output.take() {
                writer = Some(FileWriter::try_new_with_options(output, schema, options.clone()).map_err(failed)?);
            }
            match (&mut writer, records) {
                (Some(writer), Some(records)) => writer.write(records).map_err(failed),
                _ => Ok(()),
            }
        })?;
        let writer = writer.ok_or_else(|| Error::internal("an Arrow file without a schema"))?;
        let (n_bytes, paths) = publish(vec![writer.into_inner().map_err(failed)?])?;
        Ok(Written { n_rows, n_bytes, paths })
    }
}

/// Writes all rows of a dataset to a file in Arrow's IPC file format. [`Writer`] has options.
pub fn write(data: &Dataset, path: impl AsRef<Path>) -> Result<Written> {
    Writer::new(path).write(data)
}
