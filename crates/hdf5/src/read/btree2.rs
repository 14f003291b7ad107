//! B-trees of version 2. They index the objects of a fractal heap.

use estimand_tensor::{Error, Limits, Result};

use super::cursor::Cursor;
use super::source::Metadata;

/// What a tree indexes, by the number of its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Records {
    HugeObjects = 1,
    Links = 5,
    Attributes = 8,
}

/// The bytes of a node besides its records and pointers: signature, version, type, checksum.
const AROUND: u64 = 10;

/// More levels than any file needs: a node has at least two children.
const MAX_DEPTH: u16 = 32;

/// The widths of the numbers in a pointer to a node, by the node's level; the lowest has level 0.
struct Pointers {
    /// The number of records in the node. It has one width at all levels.
    records: u8,
    /// The number of records in the node and below it.
    totals: Vec<u8>,
}

/// All records, ordered by the tree.
pub(super) fn read(metadata: &mut Metadata<'_>, address: u64, kind: Records, limits: &Limits) -> Result<Vec<Vec<u8>>> {
    let widths = metadata.widths();
    let n = 22 + u64::from(widths.address) + u64::from(widths.length);
    let header = metadata.checked_block(address, n, b"BTHD", "a B-tree")?;
    let mut cursor = Cursor::new(&header, widths);
    cursor.skip(4)?;
    cursor.version(&[0], "a B-tree")?;
    let found = cursor.u8()?;
    let (node_len, record_len, depth) = (u64::from(cursor.u32()?), u64::from(cursor.u16()?), cursor.u16()?);
    cursor.skip(2)?;
    let (root, n_root, total) = (cursor.address()?, u64::from(cursor.u16()?), cursor.length()?);
    if found != kind as u8 || record_len == 0 || depth > MAX_DEPTH || node_len <= AROUND {
        let message = format!("a B-tree of type {found} with records of {record_len} bytes and {depth} levels");
        return Err(Error::data(message).help("the file is damaged"));
    }
    limits.check_entries(usize::try_from(total).unwrap_or(usize::MAX), "entries in a B-tree")?;
    let Some(root) = root else { return Ok(Vec::new()) };
    let pointers = Pointers::new(node_len, record_len, depth, widths.address)?;
    let mut records = Vec::new();
    let mut stack = vec![(root, n_root, usize::from(depth))];
    while let Some((address, n, level)) = stack.pop() {
        limits.check_entries(records.len() + n as usize, "entries in a B-tree")?;
        let pointer_len = match level {
            0 => 0,
            _ => u64::from(widths.address + pointers.records + pointers.totals[level - 1]),
        };
        let n_children = if level == 0 { 0 } else { n + 1 };
        let len = AROUND + n * record_len + n_children * pointer_len;
        if len > node_len {
            return Err(Error::data(format!("a node of a B-tree has {len} bytes, and there is room for {node_len}")));
        }
        let signature = if level == 0 { b"BTLF" } else { b"BTIN" };
        let block = metadata.checked_block(address, len, signature, "a node of a B-tree")?;
        let mut cursor = Cursor::new(&block, widths);
        cursor.skip(6)?;
        for _ in 0..n {
            records.push(cursor.take(record_len as usize)?.to_vec());
        }
        for _ in 0..n_children {
            let child = cursor.defined_address("a child in a B-tree")?;
            let n = cursor.number(pointers.records)?;
            cursor.number(pointers.totals[level - 1])?;
            stack.push((child, n, level - 1));
        }
    }
    Ok(records)
}

impl Pointers {
    /// The widths follow from the largest number of records that fits into a node of each level.
    fn new(node_len: u64, record_len: u64, depth: u16, address: u8) -> Result<Pointers> {
        let too_small = || Error::data("a node of a B-tree has no room for a record").help("the file is damaged");
        let in_leaf = (node_len - AROUND) / record_len;
        if in_leaf == 0 {
            return Err(too_small());
        }
        let records = width(in_leaf);
        let (mut below, mut totals) = (in_leaf, vec![0]);
        for level in 1..usize::from(depth) {
            let pointer = u64::from(address + records + totals[level - 1]);
            let room = node_len.checked_sub(AROUND + pointer).ok_or_else(too_small)?;
            let n = room / (record_len + pointer);
            below = (n + 1).saturating_mul(below).saturating_add(n);
            totals.push(width(below));
        }
        Ok(Pointers { records, totals })
    }
}

/// The number of bytes that hold all numbers up to this one.
fn width(largest: u64) -> u8 {
    (largest.max(1).ilog2() / 8 + 1) as u8
}
