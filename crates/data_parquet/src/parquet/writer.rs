//! Writes Parquet files.

use std::path::{Path, PathBuf};

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic;
use ::parquet::file::properties::WriterProperties;
use estimand_data::writer::{Output, Written, publish};
use estimand_data::{Compression as Packing, Dataset};
use estimand_tensor::{Error, ErrorKind, Result};

use crate::records::Rows;

/// The compression of the pages of a Parquet file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// No compression.
    None,
    /// Fast; every reader supports it.
    Snappy,
    /// Slow to write.
    Gzip,
    /// Small and slow to write.
    Brotli,
    /// Fast to read.
    Lz4,
    /// Small and fast to read. Needs this crate's feature `zstd`, which is on by default.
    Zstd,
}

/// Writes the rows of a dataset to a Parquet file.
///
/// Dense rows of several values become lists of a fixed size, and ragged rows become lists. Strings
/// are UTF-8. Labels are written like features. No column is nullable. A dataset without rows makes
/// a file with the columns of its specs.
///
/// ```no_run
/// use estimand_data::Dataset;
/// use estimand_data_parquet::parquet::{Compression, Writer};
/// # fn write(data: &Dataset) -> estimand_tensor::Result<()> {
/// let written = Writer::new("train.parquet").compression(Compression::Zstd).row_group_size(50_000).write(data)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Writer {
    path: PathBuf,
    compression: Compression,
    row_group_size: usize,
    rows: Rows,
}

impl Writer {
    /// Writes to a path. Missing folders are created.
    pub fn new(path: impl AsRef<Path>) -> Writer {
        Writer {
            path: path.as_ref().to_path_buf(),
            compression: Compression::Snappy,
            row_group_size: 1 << 17,
            rows: Rows::default(),
        }
    }

    /// The compression of pages. By default, Snappy.
    pub fn compression(self, compression: Compression) -> Writer {
        Writer { compression, ..self }
    }

    /// The number of rows in a row group, which a reader decodes in one thread. By default,
    /// 131,072.
    pub fn row_group_size(self, n_rows: usize) -> Writer {
        Writer { row_group_size: n_rows, ..self }
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
        if self.row_group_size == 0 {
            return Err(Error::config("the size of a row group is 0 rows; expected at least 1")
                .help("a hundred thousand rows are usual"));
        }
        let properties = WriterProperties::builder()
            .set_compression(self.codec()?)
            .set_max_row_group_row_count(Some(self.row_group_size))
            .build();
        let failed = |error: ::parquet::errors::ParquetError| {
            Error::new(
                ErrorKind::Io { path: self.path.clone() },
                format!("cannot write {}: {error}", self.path.display()),
            )
        };
        let mut output = Some(Output::create(&self.path, Packing::None)?);
        let mut writer = None;
        let n_rows = self.rows.each(data, |schema, records| {
            if let Some(output) = output.take() {
                writer = Some(ArrowWriter::try_new(output, schema.clone(), Some(properties.clone())).map_err(failed)?);
            }
            match (&mut writer, records) {
                (Some(writer), Some(records)) => writer.write(records).map_err(failed),
                _ => Ok(()),
            }
        })?;
        let writer = writer.ok_or_else(|| Error::internal("a Parquet file without a schema"))?;
        let (n_bytes, paths) = publish(vec![writer.into_inner().map_err(failed)?])?;
        Ok(Written { n_rows, n_bytes, paths })
    }

    fn codec(&self) -> Result<basic::Compression> {
        Ok(match self.compression {
            Compression::None => basic::Compression::UNCOMPRESSED,
            Compression::Snappy => basic::Compression::SNAPPY,
            Compression::Gzip => basic::Compression::GZIP(Default::default()),
            Compression::Brotli => basic::Compression::BROTLI(Default::default()),
            Compression::Lz4 => basic::Compression::LZ4_RAW,
            Compression::Zstd if cfg!(feature = "zstd") => basic::Compression::ZSTD(Default::default()),
            Compression::Zstd => {
                return Err(Error::unsupported(
                    "cannot write zstd pages: this program was built without the feature `zstd`",
                )
                .help("turn on the feature `zstd` of estimand-data-parquet, or choose another compression"));
            }
        })
    }
}

/// Writes all rows of a dataset to a Parquet file, compressed with Snappy. [`Writer`] has options.
pub fn write(data: &Dataset, path: impl AsRef<Path>) -> Result<Written> {
    Writer::new(path).write(data)
}
