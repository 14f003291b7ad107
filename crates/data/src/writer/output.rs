//! A file in the making: packed if asked for, and under its own name only when all of it is on the disk.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand_tensor::{Error, Result};
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::Compression;

/// A file in the making, for a format of one's own: written beside its target, and removed again if it is dropped before [`publish`].
pub struct Output {
    sink: Sink,
    path: PathBuf,
    target: PathBuf,
}

enum Sink {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zlib(ZlibEncoder<BufWriter<File>>),
}

impl Output {
    /// Starts a file that will be `target`. Folders on the way are made.
    pub fn create(target: &Path, compression: Compression) -> Result<Output> {
        fs::create_dir_all(folder_of(target)).map_err(|e| Error::io(target, "make the folder of", &e))?;
        let path = beside(target);
        let plain =
            || File::create_new(&path).map(BufWriter::new).map_err(|e| Error::io(target, "create a file beside", &e));
        let level = flate2::Compression::default();
        let sink = match compression {
            Compression::None => Sink::Plain(plain()?),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(plain()?, level)),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(plain()?, level)),
            Compression::Zstd => {
                return Err(Error::unsupported(format!("zstd is read but not written: {}", target.display()))
                    .help("write gzip (`.gz`), or no compression"));
            }
        };
        Ok(Output { sink, path, target: target.to_path_buf() })
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
        let mut finish = || {
            let file = match &mut self.sink {
                Sink::Plain(file) => file,
                Sink::Gzip(encoder) => {
                    encoder.try_finish()?;
                    encoder.get_mut()
                }
                Sink::Zlib(encoder) => {
                    encoder.try_finish()?;
                    encoder.get_mut()
                }
            };
            file.flush()?;
            file.get_ref().sync_all()?;
            Ok(file.get_ref().metadata()?.len())
        };
        finish().map_err(|e| self.failed(&e))
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

impl Drop for Output {
    fn drop(&mut self) {
        // Nobody can be told of a failure here, and after a success there is nothing left under this name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives complete files their names, in place of what had them; returns their bytes and paths.
///
/// All are on the disk before the first is renamed, so that a full disk leaves the old files as they were.
pub fn publish(mut outputs: Vec<Output>) -> Result<(u64, Vec<PathBuf>)> {
    let mut n_bytes = 0;
    for output in &mut outputs {
        n_bytes += output.finish()?;
    }
    for output in &outputs {
        fs::rename(&output.path, &output.target).map_err(|e| Error::io(&output.target, "rename to", &e))?;
    }
    // Only Unix lets a folder be opened and synced; without that a power failure may lose the new names.
    if let (true, Some(first)) = (cfg!(unix), outputs.first()) {
        let folder = folder_of(&first.target);
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| Error::io(folder, "sync", &e))?;
    }
    Ok((n_bytes, outputs.iter().map(|output| output.target.clone()).collect()))
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A name that no other writer has, in this process or another.
fn beside(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = OsString::from(target);
    name.push(format!(".tmp-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    PathBuf::from(name)
}
