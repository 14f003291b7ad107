//! Writes a table, uncompressed, with the same bytes as TensorFlow.

use std::io::{self, Write};

use estimand_wire::{crc, varint};

use super::{FOOTER_LEN, Handle, MAGIC, PLAIN, TRAILER_LEN};

const BLOCK_SIZE: usize = 256 << 10;
const RESTART_INTERVAL: usize = 16;

/// Writes a table to an output, with keys in ascending order.
pub struct TableWriter<W> {
    output: W,
    offset: u64,
    data: Block,
    index: Block,
    /// The block just written. Its index entry waits for the next key, so that a short key can
    /// separate the two blocks.
    finished: Option<Handle>,
    last_key: Option<Vec<u8>>,
}

impl<W: Write> TableWriter<W> {
    /// Starts an empty table.
    pub fn new(output: W) -> TableWriter<W> {
        let (data, index) = (Block::new(RESTART_INTERVAL), Block::new(1));
        TableWriter { output, offset: 0, data, index, finished: None, last_key: None }
    }

    /// Appends a key and its value. The key must be greater than all keys before it.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if let Some(last) = &self.last_key {
            if key <= last.as_slice() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "keys of a table must ascend"));
            }
            if let Some(handle) = self.finished.take() {
                self.index.add_handle(&separator(last, key), handle);
            }
        }
        self.data.add(key, value);
        self.last_key = Some(key.to_vec());
        if self.data.stored_len() >= BLOCK_SIZE {
            self.finish_block()?;
        }
        Ok(())
    }

    /// Writes the last block, the index and the footer.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.data.bytes.is_empty() {
            self.finish_block()?;
        }
        if let (Some(handle), Some(last)) = (self.finished, &self.last_key) {
            self.index.add_handle(&successor(last), handle);
        }
        let metaindex = self.write_block(Block::new(RESTART_INTERVAL).finish())?;
        let index = self.index.finish();
        let index = self.write_block(index)?;
        let mut footer = Vec::new();
        metaindex.put(&mut footer);
        index.put(&mut footer);
        footer.resize(FOOTER_LEN - 8, 0);
        footer.extend(MAGIC.to_le_bytes());
        self.output.write_all(&footer)?;
        Ok(self.output)
    }

    fn finish_block(&mut self) -> io::Result<()> {
        let contents = self.data.finish();
        self.finished = Some(self.write_block(contents)?);
        Ok(())
    }

    fn write_block(&mut self, mut block: Vec<u8>) -> io::Result<Handle> {
        let handle = Handle { offset: self.offset, size: block.len() as u64 };
        block.push(PLAIN);
        let checksum = crc::masked_crc32c(&block);
        self.output.write_all(&block)?;
        self.output.write_all(&checksum.to_le_bytes())?;
        self.offset += handle.size + TRAILER_LEN as u64;
        Ok(handle)
    }
}

/// A block that is being built.
struct Block {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl Block {
    fn new(restart_interval: usize) -> Block {
        Block { bytes: Vec::new(), restarts: vec![0], restart_interval, since_restart: 0, last_key: Vec::new() }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart < self.restart_interval {
            shared = self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count();
        } else {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
        }
        for length in [shared, key.len() - shared, value.len()] {
            varint::put(length as u64, &mut self.bytes);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.since_restart += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    fn add_handle(&mut self, key: &[u8], handle: Handle) {
        let mut value = Vec::new();
        handle.put(&mut value);
        self.add(key, &value);
    }

    fn stored_len(&self) -> usize {
        self.bytes.len() + 4 * (self.restarts.len() + 1)
    }

    /// Returns the contents and empties the block.
    fn finish(&mut self) -> Vec<u8> {
        let mut block = std::mem::replace(self, Block::new(self.restart_interval));
        for restart in &block.restarts {
            block.bytes.extend(restart.to_le_bytes());
        }
        block.bytes.extend((block.restarts.len() as u32).to_le_bytes());
        block.bytes
    }
}

/// A short key that is not less than `last` and less than `next`.
fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let same = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    let mut key = last.to_vec();
    if let (Some(&a), Some(&b)) = (last.get(same), next.get(same))
        && a < 0xff
        && a + 1 < b
    {
        key[same] += 1;
        key.truncate(same + 1);
    }
    key
}

/// A short key that is not less than `last`.
fn successor(last: &[u8]) -> Vec<u8> {
    let mut key = last.to_vec();
    if let Some(i) = key.iter().position(|&byte| byte < 0xff) {
        key[i] += 1;
        key.truncate(i + 1);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_by_hand() {
        assert_eq!(separator(b"abc", b"abx"), b"abd");
        assert_eq!(separator(b"abcde", b"abd"), b"abcde"); // nothing shorter is between c and d
        assert_eq!(separator(b"ab", b"abc"), b"ab");
        assert_eq!(successor(b"abc"), b"b");
        assert_eq!(successor(b"\xff\xffz"), b"\xff\xff{");
        assert_eq!(successor(b"\xff"), b"\xff");
    }
}
