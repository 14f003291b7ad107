//! Files cut into chunks of whole records, by what a format says of their ends.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_tensor::{Batch, Error, Limits, Result};

use super::Files;
use super::ceiling::read_error;

/// How records lie in the bytes of a file, and what they hold.
pub(crate) trait Format: Send + Sync + 'static {
    /// What messages call a record: "row", "record".
    const RECORD: &'static str;

    /// The limit of the bytes that a record may have, and its name.
    fn longest(limits: &Limits) -> (usize, &'static str);

    /// Finds the end of the last whole record. `is_last` says that no bytes follow these in the
    /// file.
    fn cut(&self, bytes: &[u8], is_last: bool) -> Cut;

    /// Reads all records of a chunk.
    fn parse(&self, chunk: &Chunk) -> Parsed;

    /// Where byte `offset` of a file is, in words that help to find it.
    fn place(&self, files: &Files, path: &Path, offset: u64) -> String {
        let _ = (files, path);
        format!("at byte {offset}")
    }
}

/// What a format found in some bytes.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cut {
    /// The end of the last whole record; 0 if none is.
    pub(crate) end: usize,
    /// Why no record can begin at `end`: what follows is lost. With it, the limit that was met, if
    /// one was.
    pub(crate) damage: Option<Damage>,
}

/// What a format found instead of a record.
#[derive(Debug, PartialEq)]
pub(crate) struct Damage {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl From<String> for Damage {
    fn from(message: String) -> Damage {
        Damage { message, help: None }
    }
}

impl Damage {
    /// A record beyond a limit.
    pub(crate) fn limit(field: &str, limit: usize, found: &str) -> Damage {
        let message = format!("{found}; the limit is {limit} (`{field}`)");
        Damage { message, help: Some(Limits::remedy(field)) }
    }
}

/// Whole records, one after another.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// The number of its file.
    pub(crate) file: usize,
    pub(crate) path: PathBuf,
    /// Where it begins in the unpacked file.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The records of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The good ones.
    pub(crate) batch: Batch,
    /// Where each of the good ones ends in the chunk.
    pub(crate) ends: Vec<usize>,
    /// The others, in order.
    pub(crate) bad: VecDeque<Bad>,
    /// Why nothing of the file can be read.
    pub(crate) fatal: Option<Error>,
}

/// A record that cannot be read.
#[derive(Debug)]
pub(crate) struct Bad {
    /// How many good records stand before it in its chunk.
    pub(crate) n_good: usize,
    /// Where it lies in the chunk.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) column: Option<String>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Reads files one after another as chunks.
pub(crate) struct Chunks<F> {
    files: Files,
    paths: Arc<[PathBuf]>,
    format: Arc<F>,
    file: usize,
    /// Where the rest begins in the file.
    offset: u64,
    reader: Option<Box<dyn Read + Send>>,
    /// Read, but not yet in a chunk.
    rest: Vec<u8>,
}

/// A chunk, or the end of what can be read: records are lost from `offset` on.
pub(crate) type NextChunk = Result<Chunk, Broken>;

/// Where a file cannot be read any further.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) reason: Reason,
}

#[derive(Debug)]
pub(crate) enum Reason {
    /// The operating system, or the unpacking.
    Unreadable(Error),
    /// What the format found instead of a record.
    Damage(Damage),
}

impl<F: Format> Chunks<F> {
    /// From a byte of a file on; `file` may be the number of files.
    pub(crate) fn new(files: Files, paths: Arc<[PathBuf]>, format: Arc<F>, file: usize, offset: u64) -> Result<Self> {
        let reader = paths.get(file).map(|path| files.open(path, offset)).transpose()?;
        Ok(Chunks { files, paths, format, file, offset, reader, rest: Vec::new() })
    }

    pub(crate) fn next(&mut self) -> Option<NextChunk> {
        loop {
            let path = self.paths.get(self.file)?.clone();
            match self.read(&path) {
                Ok(Some(bytes)) => {
                    let offset = self.offset;
                    self.offset += bytes.len() as u64;
                    return Some(Ok(Chunk { file: self.file, path, offset, bytes }));
                }
                Ok(None) => {
                    self.file += 1;
                    (self.offset, self.reader, self.rest) = (0, None, Vec::new());
                }
                Err(reason) => {
                    let file = std::mem::replace(&mut self.file, self.paths.len());
                    return Some(Err(Broken { file, offset: self.offset, reason }));
                }
            }
        }
    }

    /// The next whole records of the file, or `None` at its end.
    fn read(&mut self, path: &Path) -> Result<Option<Vec<u8>>, Reason> {
        if self.reader.is_none() {
            self.reader = Some(self.files.open(path, 0).map_err(Reason::Unreadable)?);
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let mut bytes = std::mem::take(&mut self.rest);
        let mut want = self.files.buffer_size;
        let (longest, field) = F::longest(&self.files.limits);
        loop {
            let missing = want.saturating_sub(bytes.len());
            bytes.reserve(missing);
            let n_read = reader.by_ref().take(missing as u64).read_to_end(&mut bytes);
            let n_read = n_read.map_err(|e| Reason::Unreadable(read_error(path, &e)))?;
            let is_last = n_read < missing;
            if bytes.is_empty() {
                return Ok(None);
            }
            let cut = self.format.cut(&bytes, is_last);
            if cut.end > 0 {
                self.rest = bytes.split_off(cut.end);
                return Ok(Some(bytes));
            }
            if let Some(damage) = cut.damage {
                return Err(Reason::Damage(damage));
            }
            if is_last {
                return Err(Reason::Damage(format!("the file ends within a {}", F::RECORD).into()));
            }
            if bytes.len() >= longest {
                let found = format!("a {} has no end within {} bytes", F::RECORD, bytes.len());
                return Err(Reason::Damage(Damage::limit(field, longest, &found)));
            }
            want = bytes.len().saturating_mul(2).min(longest);
        }
    }
}
