//! The blocks of a file in the order of their addresses. Each begins at a multiple of eight bytes.

use std::io::{self, Write};

use super::Written;
use super::heap::References;
use super::links::{INTERNAL_K, LEAF_K};
use super::messages::Value;

/// The number of bytes of the superblock.
const SUPERBLOCK: u64 = 96;

/// The address of nothing.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// The blocks after the superblock.
pub(super) struct Blocks {
    blocks: Vec<Block>,
    end: u64,
}

enum Block {
    Bytes(Vec<u8>),
    Value(Value),
}

impl Blocks {
    pub fn new() -> Blocks {
        Blocks { blocks: Vec::new(), end: SUPERBLOCK }
    }

    /// Adds a block and returns its address.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        let n = bytes.len() as u64;
        self.push(Block::Bytes(bytes), n)
    }

    /// Adds the elements of a dataset. An empty one has no address.
    pub fn add_value(&mut self, value: &Value, strings: &mut References) -> u64 {
        let n = value.n_bytes();
        if n == 0 {
            return UNDEFINED;
        }
        match value.stored(strings) {
            Some(bytes) => self.add(bytes),
            None => self.push(Block::Value(value.clone()), n),
        }
    }

    /// The address of the next block.
    pub fn next(&self) -> u64 {
        self.end
    }

    fn push(&mut self, block: Block, n: u64) -> u64 {
        let address = self.end;
        self.blocks.push(block);
        self.end = (address + n).next_multiple_of(8);
        address
    }

    /// Writes the superblock and all blocks.
    pub fn write(&self, root: &Written, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.superblock(root))?;
        for block in &self.blocks {
            let bytes = match block {
                Block::Bytes(bytes) => bytes,
                Block::Value(value) => value.array_bytes(),
            };
            out.write_all(bytes)?;
            out.write_all(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()])?;
        }
        Ok(())
    }

    fn superblock(&self, root: &Written) -> Vec<u8> {
        let mut bytes = b"\x89HDF\r\n\x1a\n".to_vec();
        // Versions, then addresses and lengths of eight bytes.
        bytes.extend([0, 0, 0, 0, 0, 8, 8, 0]);
        bytes.extend(LEAF_K.to_le_bytes());
        bytes.extend(INTERNAL_K.to_le_bytes());
        bytes.extend([0; 4]);
        // The base, no free space, the end, no driver.
        for address in [0, UNDEFINED, self.end, UNDEFINED] {
            bytes.extend(address.to_le_bytes());
        }
        // The root: no name, its header, and its B-tree and heap.
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(root.header.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        for address in root.symbols.unwrap_or([UNDEFINED; 2]) {
            bytes.extend(address.to_le_bytes());
        }
        bytes
    }
}
