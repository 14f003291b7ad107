//! Arrow: files and streams in its IPC formats, and record batches from other code.
//!
//! From the bottom up: `bytes.rs` and `messages.rs` parse the formats, `reader.rs` decodes record
//! batches, and `source.rs` is the source. `writer.rs` writes files.

mod bytes;
mod messages;
mod reader;
pub(crate) mod source;
mod writer;

pub use writer::{Compression, Writer, write};

use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use estimand_data::Files;
use estimand_tensor::{Limits, Result};

use self::bytes::Bytes;
use self::reader::{Batches, Foreign, IpcReader};
use self::source::Input;
use crate::columns::Origin;
use crate::reader::{Reader, Source};

/// Reads files in Arrow's IPC formats, one after another. The first bytes show whether a file has
/// the file format (Feather 2) or the stream format. Files may be compressed as a whole (`.gz`,
/// `.zst`).
pub fn read(files: impl Into<Files>) -> Reader {
    Reader::new(Source::Arrow(Input::Files(files.into())))
}

/// Reads Arrow's stream format from another process: a pipe, a socket, standard input.
///
/// `open` is called each time reading begins. Its stream is read from the beginning, even to resume
/// from a position. An input that can be opened only once can be read only once.
///
/// ```no_run
/// use estimand_data_parquet::arrow;
///
/// let data = arrow::from_stream(|| Ok(std::io::stdin())).label("y").dataset().batch(32);
/// # let _ = data;
/// ```
pub fn from_stream<R: Read + Send + 'static>(open: impl Fn() -> Result<R> + Send + Sync + 'static) -> Reader {
    let opener = move || -> Result<Box<dyn Batches>> {
        Ok(Box::new(IpcReader::new(Bytes::Stream(Box::new(open()?)), Origin::Batches, Limits::default())?))
    };
    Reader::new(Source::Arrow(Input::Opened(Arc::new(opener))))
}

/// Takes record batches from other code. [`RecordBatchIterator`](arrow_array::RecordBatchIterator)
/// turns an iterator into a reader.
///
/// `open` is called each time reading begins. To resume from a position, the batches before it are
/// made again.
///
/// ```
/// use std::sync::Arc;
///
/// use estimand_data_parquet::arrow;
/// use estimand_data_parquet::arrow_array::{Int64Array, RecordBatch, RecordBatchIterator};
///
/// let squares = || {
///     let batch = |i: i64| RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![i, i * i])) as _)]);
///     let batches = (0..3).map(batch);
///     Ok(RecordBatchIterator::new(batches, batch(0).unwrap().schema()))
/// };
/// let data = arrow::from_batches(squares).dataset().batch(4);
/// let rows: Vec<usize> = data.iter().map(|batch| Ok(batch?.n_rows())).collect::<estimand_tensor::Result<_>>()?;
/// assert_eq!(rows, [4, 2]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn from_batches<R: RecordBatchReader + Send + 'static>(
    open: impl Fn() -> Result<R> + Send + Sync + 'static,
) -> Reader {
    let opener = move || -> Result<Box<dyn Batches>> { Ok(Box::new(Foreign(Box::new(open()?)))) };
    Reader::new(Source::Arrow(Input::Opened(Arc::new(opener))))
}
