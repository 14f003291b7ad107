//! The stored elements of a dataset or an attribute, given in runs of neighbours.

use estimand_tensor::{Error, Limits, Result, element_count};

use super::budget::Cost;
use super::chunks::Chunks;
use super::file::File;
use super::header::{Message, kind};
use super::message::layout::Layout;
use super::message::{fill, pipeline};
use super::source::Source;

/// The number of bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Elements as they are stored.
pub(super) struct Storage<'a> {
    place: Stored<'a>,
    element_size: usize,
    /// The bytes of an element that is not stored. `None` stands for zeros.
    pub fill: Option<Vec<u8>>,
}

enum Stored<'a> {
    Bytes(Vec<u8>),
    Slice(&'a [u8]),
    Piece {
        source: &'a Source,
        address: u64,
        n_bytes: u64,
    },
    Chunks(Chunks<'a>),
    /// All elements are fill values, which would take so many bytes.
    Nothing {
        n_bytes: u64,
    },
}

impl<'a> Storage<'a> {
    /// The elements of an attribute: `len` elements at the beginning of some bytes.
    pub fn of_bytes(bytes: &'a [u8], len: usize, element_size: usize) -> Result<Storage<'a>> {
        let n = byte_count(len, element_size)?;
        let stored = bytes.get(..n).ok_or_else(|| {
            Error::data(format!("the value has {} bytes, expected {n}", bytes.len())).help("the file is damaged")
        })?;
        Ok(Storage { place: Stored::Slice(stored), element_size, fill: None })
    }

    /// The elements of a dataset. Nothing is reserved for elements that are not in the file, unless
    /// the limits allow it.
    pub fn of_dataset(
        file: &'a File,
        messages: &[Message],
        layout: &[u8],
        dims: &[usize],
        element_size: usize,
    ) -> Result<Storage<'a>> {
        let (source, limits) = (&file.source, &file.limits);
        let widths = source.widths;
        let len = element_count(dims)?;
        let n_bytes = byte_count(len, element_size)?;
        let find = |kind| messages.iter().find(|message| message.kind == kind);
        if find(kind::EXTERNAL_FILES).is_some() {
            return Err(Error::unsupported("its values are in other files, which is not read"));
        }
        let fill = fill::find(messages, element_size, widths)?;
        let place = match Layout::parse(layout, widths)? {
            _ if len == 0 => Stored::Nothing { n_bytes: 0 },
            Layout::Compact(bytes) if bytes.len() >= n_bytes => {
                Stored::Bytes(bytes.into_iter().take(n_bytes).collect())
            }
            Layout::Compact(bytes) => return Err(too_short(bytes.len() as u64, n_bytes)),
            Layout::Contiguous { address: Some(address), size } => {
                let n_bytes = n_bytes as u64;
                if size < n_bytes {
                    return Err(too_short(size, n_bytes as usize));
                }
                source.check(address, n_bytes)?;
                Stored::Piece { source, address, n_bytes }
            }
            Layout::Contiguous { address: None, .. } => {
                check_unstored(n_bytes as u64, limits)?;
                Stored::Nothing { n_bytes: n_bytes as u64 }
            }
            Layout::Chunked { tree, dims: chunk_dims, element_size: stated } => {
                if stated != element_size {
                    let message = format!("chunks of elements of {stated} bytes, expected {element_size}");
                    return Err(Error::data(message).help("the file is damaged"));
                }
                let filters = match find(kind::FILTERS) {
                    Some(message) => pipeline::parse(&message.data, widths)?,
                    None => Vec::new(),
                };
                Stored::Chunks(Chunks::find(source, tree, dims, chunk_dims, element_size, filters, limits)?)
            }
        };
        Ok(Storage { place, element_size, fill })
    }

    /// What it costs to read all elements.
    pub fn cost(&self) -> Cost {
        match &self.place {
            Stored::Bytes(_) | Stored::Slice(_) => Cost::default(),
            Stored::Piece { n_bytes, .. } => Cost { stored: *n_bytes, unpacked: 0 },
            Stored::Nothing { n_bytes } => Cost { stored: 0, unpacked: *n_bytes },
            Stored::Chunks(chunks) => chunks.cost(),
        }
    }

    /// Gives `sink` the index of an element and the bytes of the elements that follow in a row,
    /// until all stored elements were given.
    pub fn runs(&self, sink: &mut dyn FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        match &self.place {
            Stored::Bytes(bytes) => sink(0, bytes),
            Stored::Slice(bytes) => sink(0, bytes),
            Stored::Nothing { .. } => Ok(()),
            Stored::Chunks(chunks) => chunks.runs(sink),
            Stored::Piece { source, address, n_bytes } => {
                let per_piece = (PIECE / self.element_size).max(1);
                let piece_len = per_piece as u64 * self.element_size as u64;
                let (mut at, mut element) = (0, 0);
                while at < *n_bytes {
                    let n = piece_len.min(n_bytes - at);
                    sink(element, &source.read(address + at, n)?)?;
                    at += n;
                    element += per_piece;
                }
                Ok(())
            }
        }
    }
}

fn byte_count(len: usize, element_size: usize) -> Result<usize> {
    let too_large = || Error::data(format!("{len} elements of {element_size} bytes do not fit into memory"));
    // An element may become wider, by a factor of 4 at most.
    len.checked_mul(element_size).filter(|n| n.checked_mul(8).is_some()).ok_or_else(too_large)
}

fn too_short(found: u64, expected: usize) -> Error {
    Error::data(format!("{found} bytes are stored for an array that needs {expected}")).help("the file is damaged")
}

/// Elements that are all fill values take no byte of the file.
fn check_unstored(n_bytes: u64, limits: &Limits) -> Result<()> {
    limits.check_unpacked(n_bytes, "the values of a dataset")?;
    limits.check_ratio(n_bytes, 0)
}
