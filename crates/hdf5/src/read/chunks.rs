//! Datasets in chunks: blocks of equal sizes, each stored and packed on its own.

use estimand_tensor::{Error, Limits, Result, element_count};

use super::btree::{self, Indexed};
use super::budget::Cost;
use super::cursor::Cursor;
use super::filter;
use super::message::pipeline::Filter;
use super::source::{Metadata, Source};

/// The chunks of a dataset.
pub(super) struct Chunks<'a> {
    source: &'a Source,
    chunks: Vec<Chunk>,
    filters: Vec<Filter>,
    /// The sizes of the dataset and of a chunk.
    dims: Vec<usize>,
    chunk_dims: Vec<usize>,
    element_size: usize,
    /// The number of bytes of an unpacked chunk.
    chunk_bytes: usize,
}

struct Chunk {
    address: u64,
    packed: u32,
    mask: u32,
    /// The indices of the first element.
    origin: Vec<usize>,
}

impl<'a> Chunks<'a> {
    /// Finds the chunks. Sizes are checked here, before any value is read.
    pub fn find(
        source: &'a Source,
        tree: Option<u64>,
        dims: &[usize],
        chunk_dims: Vec<usize>,
        element_size: usize,
        filters: Vec<Filter>,
        limits: &Limits,
    ) -> Result<Chunks<'a>> {
        if dims.is_empty() || chunk_dims.len() != dims.len() || chunk_dims.contains(&0) {
            return Err(Error::data(format!("chunks of {chunk_dims:?} for an array of {dims:?}")));
        }
        if filters.iter().filter(|&&filter| filter == Filter::Deflate).count() > 1 {
            return Err(Error::unsupported("the chunks are deflated twice, which is not read"));
        }
        let chunk_bytes = element_count(&chunk_dims)?
            .checked_mul(element_size)
            .filter(|&n| n <= u32::MAX as usize)
            .ok_or_else(|| Error::data(format!("chunks of {chunk_dims:?} have more than 4 GiB")))?;
        let mut found =
            Chunks { source, chunks: Vec::new(), filters, dims: dims.to_vec(), chunk_dims, element_size, chunk_bytes };
        if let Some(tree) = tree {
            found.read_tree(tree, limits)?;
        }
        let Cost { stored, unpacked } = found.cost();
        if stored > source.len() {
            let message = format!("the chunks have {stored} bytes, and the file has {}: they overlap", source.len());
            return Err(Error::data(message).help("the file is damaged"));
        }
        limits.check_unpacked(unpacked, "the chunks of a dataset")?;
        limits.check_ratio(unpacked, stored)?;
        Ok(found)
    }

    /// What it costs to read all chunks.
    pub fn cost(&self) -> Cost {
        let stored = self.chunks.iter().map(|chunk| u64::from(chunk.packed)).sum();
        let in_chunks = self.chunks.len() as u64 * self.chunk_bytes as u64;
        let in_array = self.dims.iter().product::<usize>() as u64 * self.element_size as u64;
        Cost { stored, unpacked: in_chunks.max(in_array) }
    }

    fn read_tree(&mut self, tree: u64, limits: &Limits) -> Result<()> {
        let key_len = 8 + 8 * (self.dims.len() + 1);
        let entries = btree::read(&mut Metadata::new(self.source), tree, Indexed::Chunks, key_len, limits)?;
        for (key, address) in entries {
            let mut cursor = Cursor::new(&key, self.source.widths);
            let (packed, mask) = (cursor.u32()?, cursor.u32()?);
            let mut origin = Vec::with_capacity(self.dims.len());
            for (&size, &step) in self.dims.iter().zip(&self.chunk_dims) {
                let at = cursor.u64()?;
                match usize::try_from(at) {
                    Ok(at) if at < size && at % step == 0 => origin.push(at),
                    _ => return Err(Error::data(format!("a chunk begins at {at} of an axis of {size} elements"))),
                }
            }
            // Keys in order are all different, so no chunk is read twice.
            if self.chunks.last().is_some_and(|last| last.origin >= origin) {
                return Err(Error::data("the chunks are not in order").help("the file is damaged"));
            }
            self.chunks.push(Chunk { address, packed, mask, origin });
        }
        Ok(())
    }

    /// Reads all chunks. `sink` is given the index of an element and the bytes of the elements that
    /// follow in a row.
    pub fn runs(&self, sink: &mut dyn FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        for chunk in &self.chunks {
            let packed = self.source.read(chunk.address, chunk.packed.into())?;
            let bytes = filter::undo(&self.filters, chunk.mask, packed, self.chunk_bytes, self.element_size)?;
            self.scatter(&chunk.origin, &bytes, sink)?;
        }
        Ok(())
    }

    /// The rows of a chunk. Elements beyond the end of the dataset are left out.
    fn scatter(&self, origin: &[usize], bytes: &[u8], sink: &mut dyn FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let last = self.dims.len() - 1;
        let kept: Vec<usize> =
            (0..=last).map(|axis| self.chunk_dims[axis].min(self.dims[axis] - origin[axis])).collect();
        let run = kept[last] * self.element_size;
        let mut at = vec![0; last];
        loop {
            let (mut from, mut to) = (0, 0);
            for (axis, &start) in origin.iter().enumerate() {
                let index = at.get(axis).copied().unwrap_or(0);
                from = from * self.chunk_dims[axis] + index;
                to = to * self.dims[axis] + start + index;
            }
            sink(to, &bytes[from * self.element_size..][..run])?;
            // The next row, counting from the last of the outer axes.
            let Some(axis) = (0..last).rev().find(|&axis| at[axis] + 1 < kept[axis]) else { return Ok(()) };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }
}
