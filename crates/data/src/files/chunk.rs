//! Cuts files into chunks of whole records. A format says where records end.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_tensor::{Batch, Error, Limits, Result};

use super::Files;
use super::ceiling::read_error;

/// The layout of records in the bytes of a file, and how to parse them.
pub(crate) trait Format: Send + Sync + 'static {
    /// The word for a record in messages: "row", "record".
    const RECORD: &'static str;

    /// The limit on the bytes of a record, and the name of that limit.
    fn longest(limits: &Limits) -> (usize, &'static str);

    /// Finds the end of the last whole record. `offset` is the place of these bytes in the file;
    /// `is_last` means that they end it.
    fn cut(&self, bytes: &[u8], offset: u64, is_last: bool) -> Cut;

    /// Parses all records of a chunk.
    fn parse(&self, chunk: &Chunk) -> Parsed;

    /// Describes the place of byte `offset` in a file, so that a user can find it.
    fn place(&self, files: &Files, path: &Path, offset: u64) -> String {
        let _ = (files, path);
        format!("at byte {offset}")
    }
}

/// The result of cutting some bytes into records.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cut {
    /// The end of the last whole record; 0 if there is none.
    pub(crate) end: usize,
    /// Why no record can begin at `end`: the rest of the file is lost. Names the exceeded limit, if
    /// any.
    pub(crate) damage: Option<Damage>,
}

/// The reason why a format found no record.
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
    /// A record that exceeds a limit.
    pub(crate) fn limit(field: &str, limit: usize, found: &str) -> Damage {
        let message = format!("{found}; the limit is {limit} (`{field}`)");
        Damage { message, help: Some(Limits::remedy(field)) }
    }
}

/// Whole records, one after another.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// The index of its file.
    pub(crate) file: usize,
    pub(crate) path: PathBuf,
    /// Its offset in the decompressed file.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The records of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The records that could be parsed.
    pub(crate) batch: Batch,
    /// For each of them, its end in the chunk.
    pub(crate) ends: Vec<usize>,
    /// The records that could not be parsed, in order.
    pub(crate) bad: VecDeque<Bad>,
    /// Why no record of the file can be read.
    pub(crate) fatal: Option<Error>,
}

/// A record that cannot be read.
#[derive(Debug)]
pub(crate) struct Bad {
    /// The number of good records before it in its chunk.
    pub(crate) n_good: usize,
    /// Its start in the chunk.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) column: Option<String>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Reads files one after another, as chunks.
pub(crate) struct Chunks<F> {
    files: Files,
    paths: Arc<[PathBuf]>,
    format: Arc<F>,
    file: usize,
    /// The offset of `rest` in the file.
    offset: u64,
    reader: Option<Box<dyn Read + Send>>,
    /// Bytes that were read and are not yet in a chunk.
    rest: Vec<u8>,
}

/// A chunk, or the place where reading failed: records from `offset` on are lost.
pub(crate) type NextChunk = Result<Chunk, Broken>;

/// The place where a file cannot be read any further.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) reason: Reason,
}

#[derive(Debug)]
pub(crate) enum Reason {
    /// The operating system or the decoder failed.
    Unreadable(Error),
    /// The format found no record.
    Damage(Damage),
}

impl<F: Format> Chunks<F> {
    /// Starts at a byte of a file; `file` may equal the number of files.
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

    /// Returns the next whole records of the file, or `None` at its end.
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
            let cut = self.format.cut(&bytes, self.offset, is_last);
            if cut.end > 0 {
                self.rest = bytes.split_off(cut.end);
                return Ok(Some(bytes));
            }
            if let Some(damage) = cut.damage {
                return Err(Reason::Damage(damage));
            }
            if is_last {
                return Err(Reason::Damage(format!("the file ends in the middle of a {}", F::RECORD).into()));
            }
            if bytes.len() >= longest {
                let found = format!("a {} does not end within {} bytes", F::RECORD, bytes.len());
                return Err(Reason::Damage(Damage::limit(field, longest, &found)));
            }
            want = bytes.len().saturating_mul(2).min(longest);
        }
    }
}
