//! B-trees of version 1. They index the links of a group and the chunks of a dataset.

use estimand_tensor::{Error, Limits, Result};

use super::cursor::Cursor;
use super::source::Metadata;

/// What a tree indexes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Indexed {
    Links = 0,
    Chunks = 1,
}

/// An entry of the lowest level: the key, as bytes, and the address.
pub(super) type Entry = (Vec<u8>, u64);

/// All entries of the lowest level, in order.
pub(super) fn read(
    metadata: &mut Metadata<'_>,
    root: u64,
    indexed: Indexed,
    key_len: usize,
    limits: &Limits,
) -> Result<Vec<Entry>> {
    let widths = metadata.widths();
    let header_len = 8 + 2 * u64::from(widths.address);
    let mut entries = Vec::new();
    let mut stack = vec![(root, None)];
    while let Some((address, expected)) = stack.pop() {
        let header = metadata.block(address, header_len)?;
        let mut cursor = Cursor::new(&header, widths);
        cursor.signature(b"TREE", "a node of a B-tree")?;
        let (kind, level, n) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
        if kind != indexed as u8 || expected.is_some_and(|expected| expected != level) {
            let message =
                format!("a node of a B-tree has the type {kind} and the level {level}, which is not expected");
            return Err(Error::data(message).help("the file is damaged"));
        }
        // Datasets may share a tree. Nodes without entries would cost time in each of them.
        if n == 0 && expected.is_some() {
            return Err(Error::data("a node of a B-tree has no entries").help("the file is damaged"));
        }
        limits.check_entries(entries.len() + usize::from(n), "entries in a B-tree")?;
        let entry_len = key_len as u64 + u64::from(widths.address);
        let body = metadata.block(address.saturating_add(header_len), u64::from(n) * entry_len)?;
        let mut cursor = Cursor::new(&body, widths);
        let first = stack.len();
        for _ in 0..n {
            let key = cursor.take(key_len)?;
            let child = cursor.defined_address("a child in a B-tree")?;
            match level.checked_sub(1) {
                None => entries.push((key.to_vec(), child)),
                below => stack.push((child, below)),
            }
        }
        // The last one pushed is the first one read.
        stack[first..].reverse();
    }
    Ok(entries)
}
