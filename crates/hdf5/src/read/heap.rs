//! Global heaps: collections of variable-length strings.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use estimand_tensor::{Error, Result};

use super::cursor::Cursor;
use super::source::Source;

/// The collections of a file that values referred to so far. Each is read once.
#[derive(Default)]
pub(super) struct Heaps(Mutex<State>);

#[derive(Default)]
struct State {
    collections: HashMap<u64, Arc<Collection>>,
    n_bytes: u64,
}

struct Collection {
    bytes: Vec<u8>,
    objects: HashMap<u32, Range<usize>>,
}

/// Finds the strings of a value.
pub(super) struct StringReader<'a> {
    source: &'a Source,
    heaps: &'a Heaps,
    /// The collection of the last string, which often has the next one too.
    last: Option<(u64, Arc<Collection>)>,
}

impl<'a> StringReader<'a> {
    pub fn new(source: &'a Source, heaps: &'a Heaps) -> StringReader<'a> {
        StringReader { source, heaps, last: None }
    }

    /// The string that an element refers to.
    pub fn string(&mut self, element: &[u8]) -> Result<&[u8]> {
        let mut cursor = Cursor::new(element, self.source.widths);
        let n = cursor.u32()? as usize;
        let address = cursor.address()?;
        let index = cursor.u32()?;
        let Some(address) = address.filter(|&address| n > 0 && address > 0) else { return Ok(&[]) };
        let last = self.last.take().filter(|(known, _)| *known == address);
        let (_, collection) = match last {
            Some(last) => self.last.insert(last),
            None => self.last.insert((address, self.heaps.collection(self.source, address)?)),
        };
        let range = collection.objects.get(&index).filter(|range| range.len() >= n).ok_or_else(|| {
            let message =
                format!("a string of {n} bytes is expected in the heap at {address} under the number {index}");
            Error::data(message).help("the file is damaged")
        })?;
        Ok(&collection.bytes[range.start..][..n])
    }
}

impl Heaps {
    fn collection(&self, source: &Source, address: u64) -> Result<Arc<Collection>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = state.collections.get(&address) {
            return Ok(known.clone());
        }
        // Collections that overlap have more bytes than the file.
        let left = source.len() - state.n_bytes;
        let collection = Arc::new(Collection::read(source, address, left)?);
        state.n_bytes += collection.bytes.len() as u64;
        state.collections.insert(address, collection.clone());
        Ok(collection)
    }
}

impl Collection {
    /// Reads a collection of at most `largest` bytes.
    fn read(source: &Source, address: u64, largest: u64) -> Result<Collection> {
        let widths = source.widths;
        // The headers of a collection and of an object end with a length, and fill multiples of
        // eight bytes.
        let header_len = (8 + usize::from(widths.length)).next_multiple_of(8);
        let padding = header_len - 8 - usize::from(widths.length);
        let header = source.read(address, header_len as u64)?;
        let mut cursor = Cursor::new(&header, widths);
        cursor.signature(b"GCOL", "a global heap")?;
        cursor.version(&[1], "a global heap")?;
        cursor.skip(3)?;
        let n = cursor.length()?;
        if n > largest {
            let message =
                format!("a global heap of {n} bytes; without the others, the file has {largest}: they overlap");
            return Err(Error::data(message).help("the file is damaged"));
        }
        let bytes = source.read(address, n)?.into_owned();
        let mut cursor = Cursor::new(&bytes, widths);
        cursor.skip(header_len)?;
        let mut objects = HashMap::new();
        while cursor.remaining() >= header_len {
            let index = u32::from(cursor.u16()?);
            cursor.skip(6)?;
            let size = cursor.length()?;
            cursor.skip(padding)?;
            // Object 0 is the free space at the end.
            if index == 0 {
                break;
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let start = bytes.len() - cursor.remaining();
            cursor.skip(size)?;
            objects.insert(index, start..start + size);
            let rest = size.wrapping_neg() % 8;
            cursor.skip(rest.min(cursor.remaining()))?;
        }
        Ok(Collection { bytes, objects })
    }
}
