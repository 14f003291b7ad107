//! Global heaps: collections of variable-length strings.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use estimand_tensor::{Error, Result};

use super::cursor::Cursor;
use super::source::{Metadata, Source};

/// The collections that a value refers to. Each is read once.
pub(super) struct Heaps<'a> {
    metadata: Metadata<'a>,
    collections: HashMap<u64, Collection<'a>>,
}

struct Collection<'a> {
    bytes: Cow<'a, [u8]>,
    objects: HashMap<u32, Range<usize>>,
}

impl<'a> Heaps<'a> {
    pub fn new(source: &'a Source) -> Heaps<'a> {
        Heaps { metadata: Metadata::new(source), collections: HashMap::new() }
    }

    /// The string that an element refers to.
    pub fn string(&mut self, element: &[u8]) -> Result<&[u8]> {
        let mut cursor = Cursor::new(element, self.metadata.widths());
        let n = cursor.u32()? as usize;
        let address = cursor.address()?;
        let index = cursor.u32()?;
        let Some(address) = address.filter(|&address| n > 0 && address > 0) else { return Ok(&[]) };
        if !self.collections.contains_key(&address) {
            let collection = Collection::read(&mut self.metadata, address)?;
            self.collections.insert(address, collection);
        }
        let collection = &self.collections[&address];
        let range = collection.objects.get(&index).filter(|range| range.len() >= n).ok_or_else(|| {
            let message =
                format!("a string of {n} bytes is expected in the heap at {address} under the number {index}");
            Error::data(message).help("the file is damaged")
        })?;
        Ok(&collection.bytes[range.start..][..n])
    }
}

impl<'a> Collection<'a> {
    fn read(metadata: &mut Metadata<'a>, address: u64) -> Result<Collection<'a>> {
        let widths = metadata.widths();
        // The headers of a collection and of an object end with a length, and fill multiples of
        // eight bytes.
        let header_len = (8 + usize::from(widths.length)).next_multiple_of(8);
        let padding = header_len - 8 - usize::from(widths.length);
        let header = metadata.source.read(address, header_len as u64)?;
        let mut cursor = Cursor::new(&header, widths);
        cursor.signature(b"GCOL", "a global heap")?;
        cursor.version(&[1], "a global heap")?;
        cursor.skip(3)?;
        let n = cursor.length()?;
        let bytes = metadata.block(address, n)?;
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
