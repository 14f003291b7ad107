//! Compressed files, decompressed while they are read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use estimand_tensor::{Error, Limits, Result};
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::ceiling::{Ceiling, Counted, read_error};

/// The compression of a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip, also with several members one after another: `.gz`, `.gzip`.
    Gzip,
    /// zlib, TensorFlow's `ZLIB`: `.zlib`, `.zz`.
    Zlib,
    /// Zstandard: `.zst`, `.zstd`.
    Zstd,
}

const BUFFER: usize = 128 << 10;

impl Compression {
    /// The compression that the extension of a file's name stands for.
    pub fn of(path: &Path) -> Compression {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        match extension.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Compression::Gzip,
            "zlib" | "zz" => Compression::Zlib,
            "zst" | "zstd" => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// Opens the decompressed bytes of a file from `offset` on, with the default [`Limits`]. For a
    /// compressed file, the bytes before `offset` are decompressed and dropped.
    pub fn open(self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        self.open_within(path, offset, Limits::default())
    }

    pub(super) fn open_within(self, path: &Path, offset: u64, limits: Limits) -> Result<Box<dyn Read + Send>> {
        let file = File::open(path).map_err(|e| Error::io(path, "open", &e))?;
        let packed = |file: Counted<File>| BufReader::with_capacity(BUFFER, file);
        let mut bytes: Box<dyn Read + Send> = match self {
            Compression::None => return seek(file, path, offset),
            Compression::Gzip => Box::new(Ceiling::over(file, limits, |file| MultiGzDecoder::new(packed(file)))),
            Compression::Zlib => Box::new(Ceiling::over(file, limits, |file| ZlibDecoder::new(packed(file)))),
            Compression::Zstd => {
                Box::new(Ceiling::over(file, limits, |file| Zstd { packed: packed(file), frame: None }))
            }
        };
        let skipped = io::copy(&mut bytes.by_ref().take(offset), &mut io::sink()).map_err(|e| read_error(path, &e))?;
        if skipped < offset {
            return Err(behind_the_end(path, offset, skipped));
        }
        Ok(bytes)
    }
}

fn seek(mut file: File, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
    let failed = |error| Error::io(path, "read", &error);
    let length = file.metadata().map_err(failed)?.len();
    if offset > length {
        return Err(behind_the_end(path, offset, length));
    }
    if offset > 0 {
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    }
    Ok(Box::new(file))
}

fn behind_the_end(path: &Path, offset: u64, length: u64) -> Error {
    Error::config(format!("the position is at byte {offset} of {}, but the file has {length} bytes", path.display()))
        .help("the file has changed since the position was taken: restore it, or start from the beginning")
}

/// A reader of several frames, one after another, as `zstd -T` and `cat` make them.
struct Zstd<R> {
    packed: R,
    frame: Option<FrameDecoder>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                while frame.can_collect() == 0 && !frame.is_finished() {
                    let strategy = BlockDecodingStrategy::UptoBlocks(1);
                    frame.decode_blocks(&mut self.packed, strategy).map_err(io::Error::other)?;
                }
                let n = frame.read(out)?;
                if n > 0 {
                    return Ok(n);
                }
                self.frame = None;
            }
            if self.packed.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let mut frame = FrameDecoder::new();
            frame.reset(&mut self.packed).map_err(io::Error::other)?;
            self.frame = Some(frame);
        }
    }
}
