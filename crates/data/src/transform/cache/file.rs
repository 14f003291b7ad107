//! The file of a cache: records with the framing and checksums of TFRecord files.
//!
//! The first record is a line that names the format, followed by the identity of the plan, stage by
//! stage. Then come the pieces (`batch_bytes.rs`) and an index: the number of elements, the number
//! of pieces, and the offset of each piece, as varints. Each offset but the first is the distance
//! from the one before. The last record is the offset of the index, 8 bytes, little-endian.

use std::fs::File;
use std::io::{BufReader, ErrorKind as IoKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use estimand_tensor::{Batch, Error, ErrorKind, Result};
use estimand_wire::record::{RecordError, RecordReader, RecordWriter};
use estimand_wire::varint;

use super::batch_bytes;
use crate::Compression;
use crate::stage::PIECE;
use crate::writer::output::{Output, publish};

/// The beginning of the first line, in every version.
const NAME: &str = "estimand cache ";

/// The version of the format.
const VERSION: u32 = 1;

/// The bytes of a record in addition to its payload.
const FRAME: u64 = 16;

fn first_line() -> String {
    format!("{NAME}{VERSION}, pieces of {PIECE} rows\n")
}

/// A cache that is being written. Its file appears only when it is complete.
pub(super) struct CacheWriter {
    records: RecordWriter<Output>,
    offset: u64,
    pieces: Vec<u64>,
}

impl CacheWriter {
    pub(super) fn new(path: &Path, identity: &str) -> Result<CacheWriter> {
        let records = RecordWriter::new(Output::create(path, Compression::None)?);
        let mut writer = CacheWriter { records, offset: 0, pieces: Vec::new() };
        writer.write((first_line() + identity).as_bytes())?;
        Ok(writer)
    }

    pub(super) fn add(&mut self, piece: &Batch) -> Result<()> {
        self.pieces.push(self.offset);
        self.write(&batch_bytes::encode(piece)?)
    }

    pub(super) fn finish(mut self, n_elements: u64) -> Result<()> {
        let index_at = self.offset;
        let mut index = Vec::new();
        varint::put(n_elements, &mut index);
        varint::put(self.pieces.len() as u64, &mut index);
        let mut before = 0;
        for offset in &self.pieces {
            varint::put(offset - before, &mut index);
            before = *offset;
        }
        self.write(&index)?;
        self.write(&index_at.to_le_bytes())?;
        publish(vec![self.records.into_inner()])?;
        Ok(())
    }

    fn write(&mut self, payload: &[u8]) -> Result<()> {
        self.records.write(payload).map_err(|e| self.records.get_ref().failed(&e))?;
        self.offset += FRAME + payload.len() as u64;
        Ok(())
    }
}

/// A complete cache.
pub(super) struct CacheFile {
    path: PathBuf,
    file: File,
    pieces: Vec<u64>,
    n_elements: u64,
    /// A reader, and the number of the piece it reads next.
    reader: Option<(usize, RecordReader<BufReader<File>>)>,
}

impl CacheFile {
    /// Opens the cache at a path; `None` if there is no file. A cache of other rows is an error.
    pub(super) fn open(path: &Path, identity: &str) -> Result<Option<CacheFile>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == IoKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(path, "open", &error)),
        };
        let header = record_at(path, &mut file, 0).map_err(|error| match error.kind() {
            ErrorKind::Io { .. } => error,
            _ => foreign(path),
        })?;
        check_header(path, &header, identity)?;

        let length = file.metadata().map_err(|e| Error::io(path, "read", &e))?.len();
        let trailer = record_at(path, &mut file, length.saturating_sub(FRAME + 8))?;
        let index_at = u64::from_le_bytes(*trailer.first_chunk().ok_or_else(|| damaged(path, "it has no index"))?);
        let index = record_at(path, &mut file, index_at)?;
        let (n_elements, pieces) = read_index(&index).ok_or_else(|| damaged(path, "its index cannot be read"))?;
        Ok(Some(CacheFile { path: path.to_path_buf(), file, pieces, n_elements, reader: None }))
    }

    pub(super) fn n_elements(&self) -> u64 {
        self.n_elements
    }

    /// Reads a piece by its number; `None` after the last.
    pub(super) fn piece(&mut self, number: usize) -> Result<Option<Batch>> {
        let Some(&offset) = self.pieces.get(number) else { return Ok(None) };
        let mut reader = match self.reader.take() {
            Some((at, reader)) if at == number => reader,
            _ => reader_at(&self.path, &mut self.file, offset)?,
        };
        let bytes = read(&self.path, &mut reader)?;
        let batch = batch_bytes::decode(&bytes)
            .ok_or_else(|| damaged(&self.path, &format!("piece {number} is not a batch")))?;
        self.reader = Some((number + 1, reader));
        Ok(Some(batch))
    }
}

fn read_index(mut bytes: &[u8]) -> Option<(u64, Vec<u64>)> {
    let n_elements = varint::take(&mut bytes)?;
    let mut pieces = Vec::new();
    let mut offset = 0u64;
    for _ in 0..varint::take(&mut bytes)? {
        offset = offset.checked_add(varint::take(&mut bytes)?)?;
        pieces.push(offset);
    }
    bytes.is_empty().then_some((n_elements, pieces))
}

fn check_header(path: &Path, header: &[u8], identity: &str) -> Result<()> {
    let text = std::str::from_utf8(header).map_err(|_| foreign(path))?;
    let Some(theirs) = text.strip_prefix(&first_line()) else {
        return Err(if text.starts_with(NAME) {
            let line = text.lines().next().unwrap_or_default();
            at(path, format!("{} is a cache of another version: `{line}`", path.display()))
                .help("delete it; the next pass writes it again")
        } else {
            foreign(path)
        });
    };
    if theirs == identity {
        return Ok(());
    }
    let nothing = "nothing";
    let mut pairs = theirs.lines().map(Some).chain([None]).zip(identity.lines().map(Some).chain([None]));
    let (theirs, ours) = pairs.find(|(theirs, ours)| theirs != ours).unwrap_or_default();
    let (theirs, ours) = (theirs.unwrap_or(nothing).trim_start(), ours.unwrap_or(nothing).trim_start());
    let message = format!(
        "{} is the cache of another plan: that plan has `{theirs}` where this one has `{ours}`",
        path.display()
    );
    Err(at(path, message).help("delete it if it is out of date, or give this plan a file of its own"))
}

fn reader_at(path: &Path, file: &mut File, offset: u64) -> Result<RecordReader<BufReader<File>>> {
    let seek = |file: &mut File| {
        file.seek(SeekFrom::Start(offset))?;
        file.try_clone()
    };
    let file = seek(file).map_err(|e| Error::io(path, "read", &e))?;
    // This library wrote the file, so a piece of rows may be as large as memory allows.
    Ok(RecordReader::new(BufReader::with_capacity(256 << 10, file)).record_bytes(usize::MAX))
}

fn record_at(path: &Path, file: &mut File, offset: u64) -> Result<Vec<u8>> {
    read(path, &mut reader_at(path, file, offset)?)
}

fn read(path: &Path, reader: &mut RecordReader<impl Read>) -> Result<Vec<u8>> {
    match reader.read() {
        Ok(Some(bytes)) => Ok(bytes.to_vec()),
        Ok(None) => Err(damaged(path, "it ends too early")),
        Err(RecordError::Io(error)) => Err(Error::io(path, "read", &error)),
        Err(RecordError::Corrupt { message, .. }) => Err(damaged(path, &message)),
    }
}

fn at(path: &Path, message: String) -> Error {
    Error::new(ErrorKind::Data { path: Some(path.to_path_buf()), row: None, column: None }, message)
}

fn damaged(path: &Path, what: &str) -> Error {
    at(path, format!("the cache {} is damaged: {what}", path.display()))
        .help("delete it; the next pass writes it again")
}

fn foreign(path: &Path) -> Error {
    at(path, format!("{} is not the cache of a dataset", path.display()))
        .help("name another file; this one was not changed")
}
