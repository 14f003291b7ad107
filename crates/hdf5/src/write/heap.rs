//! Global heaps: all variable-length strings of the file, in collections at its beginning.

use super::blocks::Blocks;
use super::messages::Value;
use super::tree::{Kind, Node, Tree};

/// The smallest size of a collection that the HDF5 library reads.
const SMALLEST: usize = 4096;

/// A collection is closed when it has so many bytes. A longer string has one of its own.
const FULL: usize = 1 << 16;

/// The number of bytes before the first object, and before the bytes of each object.
const HEADER: usize = 16;

/// The places of all strings, in the order in which they are used.
pub(super) struct References {
    places: std::vec::IntoIter<[u8; 16]>,
}

impl References {
    /// The next string: its length, the address of its collection, and its number there.
    pub fn next(&mut self) -> [u8; 16] {
        self.places.next().unwrap_or_default()
    }
}

/// Stores all variable-length strings of a tree.
pub(super) fn store(tree: &Tree, blocks: &mut Blocks) -> References {
    let mut heap = Heap { blocks, places: Vec::new(), open: Vec::new(), n_objects: 0 };
    heap.node(&tree.root);
    heap.close();
    References { places: heap.places.into_iter() }
}

struct Heap<'a> {
    blocks: &'a mut Blocks,
    places: Vec<[u8; 16]>,
    /// The objects of the collection that is being filled. It gets the next address.
    open: Vec<u8>,
    n_objects: u16,
}

impl Heap<'_> {
    fn node(&mut self, node: &Node) {
        node.attributes.values().for_each(|value| self.value(value));
        match &node.kind {
            Kind::Dataset(value) => self.value(value),
            Kind::Group(children) => children.values().for_each(|child| self.node(child)),
        }
    }

    fn value(&mut self, value: &Value) {
        value.variable_strings().for_each(|string| self.string(string));
    }

    fn string(&mut self, string: &[u8]) {
        let mut place = [0; 16];
        // The empty string has no object.
        if !string.is_empty() {
            let size = HEADER + string.len().next_multiple_of(8);
            if HEADER + self.open.len() + size > FULL || self.n_objects == u16::MAX {
                self.close();
            }
            self.n_objects += 1;
            place[..4].copy_from_slice(&(string.len() as u32).to_le_bytes());
            place[4..12].copy_from_slice(&self.blocks.next().to_le_bytes());
            place[12..14].copy_from_slice(&self.n_objects.to_le_bytes());
            self.open.extend(self.n_objects.to_le_bytes());
            // Nothing counts the references of an object.
            self.open.extend([0; 6]);
            self.open.extend((string.len() as u64).to_le_bytes());
            self.open.extend(string);
            self.open.resize(self.open.len().next_multiple_of(8), 0);
        }
        self.places.push(place);
    }

    /// Adds the collection to the file, and begins another.
    fn close(&mut self) {
        if self.n_objects == 0 {
            return;
        }
        let used = HEADER + self.open.len();
        let size = used.max(SMALLEST);
        let mut bytes = b"GCOL\x01\0\0\0".to_vec();
        bytes.extend((size as u64).to_le_bytes());
        bytes.append(&mut self.open);
        // The rest is free space: the object 0, if there is room for its header.
        if size - used >= HEADER {
            bytes.extend([0; 8]);
            bytes.extend(((size - used) as u64).to_le_bytes());
        }
        bytes.resize(size, 0);
        self.blocks.add(bytes);
        self.n_objects = 0;
    }
}
