//! The bytes of a file, in memory or on disk, and the budget for reading its metadata.

use std::borrow::Cow;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use estimand_tensor::{Error, Result};

use super::cursor::{Cursor, Widths};
use crate::checksum;

/// The bytes of a file. Addresses count from the superblock's base.
pub(super) struct Source {
    bytes: Bytes,
    len: u64,
    base: u64,
    pub widths: Widths,
}

enum Bytes {
    Memory(Vec<u8>),
    Disk(Mutex<fs::File>, PathBuf),
}

impl Source {
    pub fn open(path: &Path) -> Result<Source> {
        let file = fs::File::open(path).map_err(|e| Error::io(path, "open", &e))?;
        let len = file.metadata().map_err(|e| Error::io(path, "read", &e))?.len();
        Ok(Source::new(Bytes::Disk(Mutex::new(file), path.to_path_buf()), len))
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Source {
        let len = bytes.len() as u64;
        Source::new(Bytes::Memory(bytes), len)
    }

    fn new(bytes: Bytes, len: u64) -> Source {
        Source { bytes, len, base: 0, widths: Widths { address: 8, length: 8 } }
    }

    /// The number of bytes of the whole file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Moves address 0 to the superblock.
    pub fn set_base(&mut self, base: u64) {
        self.base = base;
    }

    /// The file's path, unless it is in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.bytes {
            Bytes::Disk(_, path) => Some(path),
            Bytes::Memory(_) => None,
        }
    }

    /// Refuses bytes that are not in the file. Nothing is reserved for such bytes.
    pub fn check(&self, address: u64, n: u64) -> Result<u64> {
        let start = address.checked_add(self.base);
        match start.and_then(|start| start.checked_add(n)) {
            Some(end) if end <= self.len => Ok(end - n),
            _ => {
                let message = format!("{n} bytes at {address} are expected; the file has {} bytes", self.len);
                Err(Error::data(message).help("the file is damaged or was cut off"))
            }
        }
    }

    /// `n` bytes from an address on.
    pub fn read(&self, address: u64, n: u64) -> Result<Cow<'_, [u8]>> {
        let start = self.check(address, n)?;
        let n = usize::try_from(n).map_err(|_| Error::data(format!("{n} bytes do not fit into memory")))?;
        match &self.bytes {
            Bytes::Memory(bytes) => Ok(Cow::Borrowed(&bytes[start as usize..][..n])),
            Bytes::Disk(file, path) => {
                let failed = |e| Error::io(path, "read", &e);
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(start)).map_err(failed)?;
                let mut bytes = vec![0; n];
                file.read_exact(&mut bytes).map_err(failed)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// Up to `n` bytes from an address on; fewer if the file ends.
    pub fn read_up_to(&self, address: u64, n: u64) -> Result<Cow<'_, [u8]>> {
        let start = self.check(address, 0)?;
        self.read(address, n.min(self.len - start))
    }
}

/// Reads metadata within a budget.
///
/// An honest file stores every block once, so all its blocks together are not longer than the file.
/// A file whose blocks point at each other in a circle, or share bytes, spends more and is refused.
pub(super) struct Metadata<'a> {
    pub source: &'a Source,
    left: u64,
}

impl<'a> Metadata<'a> {
    pub fn new(source: &'a Source) -> Metadata<'a> {
        Metadata { source, left: source.len }
    }

    pub fn widths(&self) -> Widths {
        self.source.widths
    }

    /// A block of metadata.
    pub fn block(&mut self, address: u64, n: u64) -> Result<Cow<'a, [u8]>> {
        let Some(left) = self.left.checked_sub(n) else {
            let message = format!(
                "the blocks of metadata have more bytes than the file, which has {}: they overlap or form a circle",
                self.source.len
            );
            return Err(Error::data(message).help("the file is damaged"));
        };
        let bytes = self.source.read(address, n)?;
        self.left = left;
        Ok(bytes)
    }

    /// A block that begins with a signature and ends with its checksum, which is left out.
    pub fn checked_block(&mut self, address: u64, n: u64, signature: &[u8; 4], what: &str) -> Result<Cow<'a, [u8]>> {
        let mut block = self.block(address, n)?;
        Cursor::new(&block, self.widths()).signature(signature, what)?;
        let parts = block.split_last_chunk::<4>();
        let Some(covered) = parts.filter(|(covered, stored)| checksum::is_right(covered, u32::from_le_bytes(**stored)))
        else {
            return Err(Error::data(format!("the checksum of {what} is wrong")).help("the file is damaged"));
        };
        let covered = covered.0.len();
        match &mut block {
            Cow::Borrowed(bytes) => *bytes = &bytes[..covered],
            Cow::Owned(bytes) => bytes.truncate(covered),
        }
        Ok(block)
    }
}
