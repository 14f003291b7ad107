//! Reads a table from front to back.

use std::borrow::Cow;
use std::path::Path;

use estimand_tensor::{Error, Limits, Result};
use estimand_wire::{crc, varint};

use super::{FOOTER_LEN, Handle, MAGIC, PLAIN, SNAPPY, TRAILER_LEN, snappy};

/// The error text of a damaged table. [`read`] adds the file's name and makes an [`Error`] of it.
type Parse<T> = Result<T, String>;

/// The limit on the expansion of keys: a key can repeat the key before at no cost, so a small file
/// can hold long keys.
const MAX_KEY_EXPANSION: usize = 64;

/// Reads all keys and values of a table, in order, at most [`Limits::entries`]. `path` appears only
/// in errors.
///
/// Memory is bounded by the table's length: blocks do not overlap, snappy expands a byte to 22 at
/// most, and keys have a budget.
pub fn read(path: &Path, table: &[u8], limits: &Limits) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    pairs(table, limits.entries).map_err(|message| {
        let error = Error::checkpoint(path, message.clone());
        if message.ends_with(ENTRIES) { error.help(Limits::remedy("entries")) } else { error }
    })
}

/// The end of the message about that limit.
const ENTRIES: &str = "(`entries`)";

fn pairs(table: &[u8], max_entries: usize) -> Parse<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut key_bytes_left = table.len().max(1 << 14) * MAX_KEY_EXPANSION;
    // Blocks follow each other, so the work is bounded by the file's length.
    let mut previous_end = 0;
    for_each_entry(&block(table, index_handle(table)?)?, |_, mut value| {
        let handle = Handle::take(&mut value).ok_or("an index entry is not a block's position")?;
        if handle.offset < previous_end {
            return Err("data blocks overlap".to_string());
        }
        let data = block(table, handle)?;
        previous_end = handle.offset + handle.size;
        for_each_entry(&data, |key, value| {
            if pairs.last().is_some_and(|(last, _)| last.as_slice() >= key) {
                return Err("keys are not in order".to_string());
            }
            if pairs.len() == max_entries {
                return Err(format!(
                    "the table has more than {max_entries} entries; the limit is {max_entries} {ENTRIES}"
                ));
            }
            key_bytes_left = key_bytes_left.checked_sub(key.len()).ok_or("keys are longer than is plausible")?;
            pairs.push((key.to_vec(), value.to_vec()));
            Ok(())
        })
    })?;
    Ok(pairs)
}

fn index_handle(table: &[u8]) -> Parse<Handle> {
    let Some(start) = table.len().checked_sub(FOOTER_LEN) else {
        return Err(format!("{} bytes are too few for an index, which has at least {FOOTER_LEN}", table.len()));
    };
    let (mut handles, magic) = table[start..].split_at(FOOTER_LEN - 8);
    if magic != MAGIC.to_le_bytes() {
        return Err(
            "the file does not end like the index of a checkpoint: it is truncated or something else".to_string()
        );
    }
    let metaindex = Handle::take(&mut handles);
    metaindex.and_then(|_| Handle::take(&mut handles)).ok_or_else(|| "the footer is damaged".to_string())
}

/// Returns the contents of a block, after verifying its checksum.
fn block(table: &[u8], handle: Handle) -> Parse<Cow<'_, [u8]>> {
    let outside = || format!("a block of {} bytes at {} is outside the file", handle.size, handle.offset);
    let start = usize::try_from(handle.offset).map_err(|_| outside())?;
    let size = usize::try_from(handle.size).map_err(|_| outside())?;
    let end = start.checked_add(size).and_then(|end| end.checked_add(TRAILER_LEN)).ok_or_else(outside)?;
    let stored = table.get(start..end).ok_or_else(outside)?;
    let (checked, checksum) = stored.split_at(size + 1);
    if crc::masked_crc32c(checked).to_le_bytes() != checksum {
        return Err(format!("the checksum of the block at {start} is wrong"));
    }
    let contents = &checked[..size];
    match checked[size] {
        PLAIN => Ok(Cow::Borrowed(contents)),
        SNAPPY => match snappy::decompress(contents) {
            Ok(plain) => Ok(Cow::Owned(plain)),
            Err(why) => Err(format!("the block at {start} is damaged inside its compression: {why}")),
        },
        other => Err(format!("the block at {start} has the unknown compression {other}")),
    }
}

fn for_each_entry(block: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> Parse<()>) -> Parse<()> {
    let damaged = || "a block's entries are damaged".to_string();
    let mut rest = entries(block).ok_or_else(damaged)?;
    let mut key = Vec::new();
    while !rest.is_empty() {
        let (shared, own, value) = entry(&mut rest).ok_or_else(damaged)?;
        if shared > key.len() as u64 {
            return Err(damaged());
        }
        key.truncate(shared as usize);
        key.extend_from_slice(own);
        visit(&key, value)?;
    }
    Ok(())
}

/// The part of a block before its restarts.
fn entries(block: &[u8]) -> Option<&[u8]> {
    let (rest, n_restarts) = block.split_last_chunk::<4>()?;
    let restarts_len = usize::try_from(u32::from_le_bytes(*n_restarts)).ok()?.checked_mul(4)?;
    rest.get(..rest.len().checked_sub(restarts_len)?)
}

/// Takes an entry: the length shared with the key before, the rest of the key, and the value.
fn entry<'a>(rest: &mut &'a [u8]) -> Option<(u64, &'a [u8], &'a [u8])> {
    let shared = varint::take(rest)?;
    let own_len = usize::try_from(varint::take(rest)?).ok()?;
    let value_len = usize::try_from(varint::take(rest)?).ok()?;
    let (own, after) = rest.split_at_checked(own_len)?;
    let (value, after) = after.split_at_checked(value_len)?;
    *rest = after;
    Some((shared, own, value))
}
