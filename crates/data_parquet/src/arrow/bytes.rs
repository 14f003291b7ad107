//! The input of Arrow streams: a file, which can skip bytes, or any reader, which can be read once.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use estimand_tensor::{Error, Result};

pub(super) enum Bytes {
    File {
        reader: BufReader<File>,
        /// The number of bytes after those that were read.
        left: u64,
    },
    Stream(Box<dyn Read + Send>),
}

impl Bytes {
    pub(super) fn open(path: &Path, buffer_size: usize) -> Result<Bytes> {
        let file = File::open(path).map_err(|e| Error::io(path, "open", &e))?;
        let left = file.metadata().map_err(|e| Error::io(path, "read", &e))?.len();
        Ok(Bytes::File { reader: BufReader::with_capacity(buffer_size, file), left })
    }

    /// Appends the next `n` bytes. Allocates as bytes arrive, not by the claimed length.
    pub(super) fn append(&mut self, n: u64, to: &mut Vec<u8>) -> io::Result<()> {
        let read = match self {
            Bytes::File { reader, left } => {
                *left = left.checked_sub(n).ok_or_else(|| cut_short(n))?;
                to.reserve(usize::try_from(n).map_err(|_| cut_short(n))?);
                reader.take(n).read_to_end(to)?
            }
            Bytes::Stream(reader) => reader.take(n).read_to_end(to)?,
        };
        if (read as u64) < n { Err(cut_short(n)) } else { Ok(()) }
    }

    /// Skips the next `n` bytes.
    pub(super) fn skip(&mut self, n: u64) -> io::Result<()> {
        match self {
            Bytes::File { reader, left } => {
                *left = left.checked_sub(n).ok_or_else(|| cut_short(n))?;
                reader.seek_relative(i64::try_from(n).map_err(|_| cut_short(n))?)
            }
            Bytes::Stream(reader) => {
                let skipped = io::copy(&mut reader.take(n), &mut io::sink())?;
                if skipped < n { Err(cut_short(n)) } else { Ok(()) }
            }
        }
    }
}

/// Reads single bytes only at the start of a message.
impl Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Bytes::File { reader, left } => {
                let n = reader.read(out)?;
                *left = left.saturating_sub(n as u64);
                Ok(n)
            }
            Bytes::Stream(reader) => reader.read(out),
        }
    }
}

fn cut_short(n: u64) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the data end, but {n} more bytes should follow"))
}
