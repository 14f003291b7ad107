//! A file that is being written, with optional compression. It gets its own name only when all of
//! it is on disk.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};
use estimand_wire::temporary::{TemporaryFile, remove_leftovers_of, sync_folder};
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::Compression;

/// A file that is being written, also for custom formats. It lies beside its target, and is removed
/// if it is dropped before [`publish`].
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
    /// Starts a file that will become `target`. Creates missing folders, and removes leftovers of a
    /// killed writer of the same file.
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
                return Err(Error::unsupported(format!(
                    "cannot write {}: zstd files can be read but not written",
                    target.display()
                ))
                .help("write gzip (`.gz`), or no compression"));
            }
        };
        Ok(Output { sink, target: target.to_path_buf() })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|e| self.failed(&e))
    }

    /// An error of a failed write, with the name of the target.
    pub(crate) fn failed(&self, error: &io::Error) -> Error {
        Error::io(&self.target, "write", error)
    }

    /// Ends the compression and waits until every byte is on disk. Returns the number of bytes.
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

/// Renames complete files to their targets, replacing older files. Returns the number of bytes and
/// the paths.
///
/// All files are on disk before the first is renamed, so a full disk leaves the old files
/// unchanged.
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
