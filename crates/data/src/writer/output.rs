//! A file in the making: packed if asked for, and under its own name only when all of it is on the
//! disk.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};
use estimand_wire::temporary::{TemporaryFile, remove_leftovers_of, sync_folder};
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::Compression;

/// A file in the making, for a format of one's own: written beside its target, and removed again if
/// it is dropped before [`publish`].
pub struct Output {
    sink: Sink,
    target: PathBuf,
}

enum Sink {
    Plain(TemporaryFile),
    Gzip(GzEncoder<TemporaryFile>),
    Zlib(ZlibEncoder<TemporaryFile>),
}

impl Output {
    /// Starts a file that will be `target`. Folders on the way are made, and what a killed writer
    /// of the same file has left is removed.
    pub fn create(target: &Path, compression: Compression) -> Result<Output> {
        let file = || {
            remove_leftovers_of(target);
            TemporaryFile::create(target)
        };
        let level = flate2::Compression::default();
        let sink = match compression {
            Compression::None => Sink::Plain(file()?),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(file()?, level)),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(file()?, level)),
            Compression::Zstd => {
                return Err(Error::unsupported(format!("zstd is read but not written: {}", target.display()))
                    .help("write gzip (`.gz`), or no compression"));
            }
        };
        Ok(Output { sink, target: target.to_path_buf() })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|e| self.failed(&e))
    }

    /// The error of a failed write, with the name that the user knows.
    pub(crate) fn failed(&self, error: &io::Error) -> Error {
        Error::io(&self.target, "write", error)
    }

    /// Ends the packing and waits until every byte is on the disk; returns how many there are.
    fn finish(&mut self) -> Result<u64> {
        let packed = match &mut self.sink {
            Sink::Plain(_) => Ok(()),
            Sink::Gzip(encoder) => encoder.try_finish(),
            Sink::Zlib(encoder) => encoder.try_finish(),
        };
        packed.map_err(|e| self.failed(&e))?;
        self.file().sync()
    }

    fn file(&mut self) -> &mut TemporaryFile {
        match &mut self.sink {
            Sink::Plain(file) => file,
            Sink::Gzip(encoder) => encoder.get_mut(),
            Sink::Zlib(encoder) => encoder.get_mut(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Plain(file) => file.write(bytes),
            Sink::Gzip(encoder) => encoder.write(bytes),
            Sink::Zlib(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Plain(file) => file.flush(),
            Sink::Gzip(encoder) => encoder.flush(),
            Sink::Zlib(encoder) => encoder.flush(),
        }
    }
}

/// Gives complete files their names, in place of what had them; returns their bytes and paths.
///
/// All are on the disk before the first is renamed, so that a full disk leaves the old files as
/// they were.
pub fn publish(mut outputs: Vec<Output>) -> Result<(u64, Vec<PathBuf>)> {
    let mut n_bytes = 0;
    for output in &mut outputs {
        n_bytes += output.finish()?;
    }
    for output in &mut outputs {
        output.file().rename()?;
    }
    if let Some(first) = outputs.first() {
        sync_folder(&first.target)?;
    }
    Ok((n_bytes, outputs.into_iter().map(|output| output.target.clone()).collect()))
}
