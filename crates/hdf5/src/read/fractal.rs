//! Fractal heaps: the links of large groups and the attributes of objects that have many.
//!
//! A heap is a space of offsets. Direct blocks hold pieces of it; indirect blocks list them in rows
//! of equal sizes, which double from the second row on.

use std::borrow::Cow;
use std::collections::HashMap;

use estimand_tensor::{Error, Limits, Result};

use super::btree2::{self, Records};
use super::cursor::Cursor;
use super::source::Metadata;

/// A heap whose blocks are known.
pub(super) struct FractalHeap {
    /// The widths of an object's offset and length in its identifier.
    offset_width: u8,
    length_width: u8,
    /// The direct blocks, in the order of their offsets.
    blocks: Vec<Block>,
    huge: Huge,
}

/// Objects that are too large for blocks: where each is.
enum Huge {
    /// The identifier has the address and the length.
    InIdentifier,
    /// The identifier has a number of this width, and a B-tree has addresses and lengths.
    Indexed { width: usize, places: HashMap<u64, [u64; 2]> },
}

struct Block {
    offset: u64,
    size: u64,
    address: u64,
}

/// The sizes of blocks.
struct Table {
    /// The number of blocks in a row.
    width: u64,
    /// The size of blocks in the first two rows.
    first: u64,
    /// The number of rows of direct blocks. Rows after them have indirect ones.
    direct_rows: u32,
}

impl FractalHeap {
    /// Finds the blocks of the heap at an address.
    pub fn open(metadata: &mut Metadata<'_>, address: u64, limits: &Limits) -> Result<FractalHeap> {
        let widths = metadata.widths();
        let start = metadata.source.read(address, 9)?;
        if start.starts_with(b"FRHP") && start[7..9] != [0, 0] {
            return Err(Error::unsupported("a fractal heap with filters is not read"));
        }
        let n = 26 + 12 * u64::from(widths.length) + 3 * u64::from(widths.address);
        let header = metadata.checked_block(address, n, b"FRHP", "a fractal heap")?;
        let mut cursor = Cursor::new(&header, widths);
        cursor.skip(4)?;
        cursor.version(&[0], "a fractal heap")?;
        let id_len = usize::from(cursor.u16()?);
        cursor.skip(3)?;
        let largest_object = cursor.u32()?;
        cursor.length()?;
        let huge_tree = cursor.address()?;
        cursor.skip(9 * usize::from(widths.length) + usize::from(widths.address))?;
        let (width, first, largest) = (u64::from(cursor.u16()?), cursor.length()?, cursor.length()?);
        let bits = cursor.u16()?;
        cursor.skip(2)?;
        let (root, n_rows) = (cursor.address()?, u32::from(cursor.u16()?));
        let are_powers = [width, first, largest].iter().all(|n| n.is_power_of_two());
        if !are_powers || first > largest || !(1..=64).contains(&bits) {
            let message =
                format!("a fractal heap of {width} blocks in a row, of {first} to {largest} bytes, {bits} bits");
            return Err(Error::data(message).help("the file is damaged"));
        }
        let table = Table { width, first, direct_rows: largest.ilog2() - first.ilog2() + 2 };
        let offset_width = bits.div_ceil(8) as u8;
        let length_width = largest.ilog2().min(largest_object.max(1).ilog2()).div_ceil(8).max(1) as u8;
        let huge = Huge::find(metadata, huge_tree, id_len, limits)?;
        let mut heap = FractalHeap { offset_width, length_width, blocks: Vec::new(), huge };
        match (root, n_rows) {
            (None, _) => {}
            (Some(address), 0) => heap.blocks.push(Block { offset: 0, size: first, address }),
            (Some(address), n_rows) => heap.add_rows(metadata, &table, address, n_rows)?,
        }
        heap.blocks.sort_by_key(|block| block.offset);
        Ok(heap)
    }

    /// Adds the direct blocks below an indirect one.
    fn add_rows(&mut self, metadata: &mut Metadata<'_>, table: &Table, address: u64, n_rows: u32) -> Result<()> {
        let widths = metadata.widths();
        let mut stack = vec![(address, 0, n_rows)];
        while let Some((address, start, n_rows)) = stack.pop() {
            let n_entries = u64::from(n_rows) * table.width;
            let around = 9 + u64::from(widths.address) + u64::from(self.offset_width);
            let n = around + n_entries * u64::from(widths.address);
            let block = metadata.checked_block(address, n, b"FHIB", "a block of a fractal heap")?;
            let mut cursor = Cursor::new(&block, widths);
            cursor.skip(around as usize - 4)?;
            for row in 0..n_rows {
                let (size, row_start) =
                    table.row(row).ok_or_else(|| Error::data("a fractal heap has too many rows"))?;
                for column in 0..table.width {
                    let Some(address) = cursor.address()? else { continue };
                    let offset = (column.checked_mul(size))
                        .and_then(|offset| offset.checked_add(row_start)?.checked_add(start))
                        .ok_or_else(|| Error::data("a block of a fractal heap is beyond its end"))?;
                    if row < table.direct_rows {
                        self.blocks.push(Block { offset, size, address });
                    } else {
                        stack.push((address, offset, table.rows_below(size)));
                    }
                }
            }
        }
        Ok(())
    }

    /// The object with an identifier.
    pub fn object<'a>(&self, metadata: &mut Metadata<'a>, id: &[u8]) -> Result<Cow<'a, [u8]>> {
        let mut cursor = Cursor::new(id, metadata.widths());
        match cursor.u8()? {
            0x00 => {}
            first @ 0x20..0x30 => {
                let n = usize::from(first & 15) + 1;
                return Ok(Cow::Owned(cursor.take(n)?.to_vec()));
            }
            0x10..0x20 => {
                let [address, n] = self.huge.place(&mut cursor)?;
                return metadata.block(address, n);
            }
            other => return Err(Error::data(format!("an object of a fractal heap has the unknown type {other}"))),
        }
        let (offset, n) = (cursor.number(self.offset_width)?, cursor.number(self.length_width)?);
        let after = self.blocks.partition_point(|block| block.offset <= offset);
        let block = after.checked_sub(1).map(|i| &self.blocks[i]);
        let inside = block.and_then(|block| {
            let at = offset - block.offset;
            let is_inside = at.checked_add(n).is_some_and(|end| end <= block.size);
            is_inside.then(|| block.address.checked_add(at))?
        });
        let address = inside.ok_or_else(|| {
            let message = format!("an object of {n} bytes at {offset} of a fractal heap is in no block");
            Error::data(message).help("the file is damaged")
        })?;
        metadata.block(address, n)
    }
}

impl Huge {
    fn find(metadata: &mut Metadata<'_>, tree: Option<u64>, id_len: usize, limits: &Limits) -> Result<Huge> {
        let widths = metadata.widths();
        let (address, length) = (usize::from(widths.address), usize::from(widths.length));
        if id_len > address + length {
            return Ok(Huge::InIdentifier);
        }
        let records = match tree {
            Some(tree) => btree2::read(metadata, tree, Records::HugeObjects, limits)?,
            None => Vec::new(),
        };
        let mut places = HashMap::new();
        for record in records {
            let mut cursor = Cursor::new(&record, widths);
            let place = [cursor.defined_address("a huge object")?, cursor.length()?];
            places.insert(cursor.length()?, place);
        }
        Ok(Huge::Indexed { width: length.min(id_len.saturating_sub(1)), places })
    }

    /// The address and the length of the object with an identifier.
    fn place(&self, id: &mut Cursor<'_>) -> Result<[u64; 2]> {
        match self {
            Huge::InIdentifier => Ok([id.defined_address("a huge object")?, id.length()?]),
            Huge::Indexed { width, places } => {
                let number = id.number(*width as u8)?;
                let missing = || Error::data(format!("the huge object {number} is not in its fractal heap"));
                places.get(&number).copied().ok_or_else(missing)
            }
        }
    }
}

impl Table {
    /// The size of the blocks of a row, and where it begins.
    fn row(&self, row: u32) -> Option<(u64, u64)> {
        let Some(above) = row.checked_sub(1) else { return Some((self.first, 0)) };
        let factor = 1u64.checked_shl(above)?;
        Some((self.first.checked_mul(factor)?, self.first.checked_mul(self.width)?.checked_mul(factor)?))
    }

    /// The number of rows of an indirect block that stands for so many bytes.
    fn rows_below(&self, size: u64) -> u32 {
        (size.ilog2() + 1).saturating_sub(self.first.ilog2() + self.width.ilog2())
    }
}
