//! The links of a group: symbol nodes under a B-tree, and the names in a local heap.

use super::blocks::{Blocks, UNDEFINED};

/// A symbol node has room for twice as many links.
pub(super) const LEAF_K: u16 = 4;

/// A node of the B-tree has room for twice as many children.
pub(super) const INTERNAL_K: u16 = 16;

/// Links of a symbol node, and children of a tree node.
const PER_LEAF: usize = 2 * LEAF_K as usize;
const PER_NODE: usize = 2 * INTERNAL_K as usize;

/// A node of the tree below: its address, and where the last name under it is in the heap.
#[derive(Clone, Copy)]
struct Child {
    address: u64,
    last_name: u64,
}

/// Adds the blocks of a group's links, which are ordered by name. Returns the addresses of the
/// B-tree and the heap.
pub(super) fn add(links: &[(&str, u64)], blocks: &mut Blocks) -> [u64; 2] {
    // The heap begins with the empty name, which is smaller than all others.
    let mut names = vec![0; 8];
    let mut offsets = Vec::with_capacity(links.len());
    for (name, _) in links {
        offsets.push(names.len() as u64);
        names.extend(name.as_bytes());
        names.resize((names.len() + 1).next_multiple_of(8), 0);
    }
    let mut level: Vec<Child> = links
        .chunks(PER_LEAF)
        .zip(offsets.chunks(PER_LEAF))
        .map(|(links, offsets)| {
            let address = blocks.add(symbol_node(links, offsets));
            Child { address, last_name: offsets.last().copied().unwrap_or_default() }
        })
        .collect();
    let mut height = 0;
    let tree = loop {
        // A group without links has a root without children.
        if level.len() <= PER_NODE {
            break blocks.add(tree_node(&level, height, 0, UNDEFINED, UNDEFINED));
        }
        level = add_level(&level, height, blocks);
        height += 1;
    };
    let heap = blocks.next();
    let mut bytes = b"HEAP\0\0\0\0".to_vec();
    bytes.extend((names.len() as u64).to_le_bytes());
    // The heap has no free space. Its names follow this header.
    bytes.extend(1u64.to_le_bytes());
    bytes.extend((heap + 32).to_le_bytes());
    bytes.extend(names);
    [tree, blocks.add(bytes)]
}

/// Adds the nodes of one level. Neighbours know each other's addresses.
fn add_level(children: &[Child], height: u8, blocks: &mut Blocks) -> Vec<Child> {
    let n_nodes = children.len().div_ceil(PER_NODE);
    let node_len = tree_node(&[], 0, 0, 0, 0).len() as u64;
    let first = blocks.next();
    let address_of = |i: usize| first + i as u64 * node_len;
    let mut nodes = Vec::with_capacity(n_nodes);
    let mut before = 0;
    for (i, part) in children.chunks(PER_NODE).enumerate() {
        let left = if i == 0 { UNDEFINED } else { address_of(i - 1) };
        let right = if i + 1 == n_nodes { UNDEFINED } else { address_of(i + 1) };
        let address = blocks.add(tree_node(part, height, before, left, right));
        before = part.last().map_or(before, |child| child.last_name);
        nodes.push(Child { address, last_name: before });
    }
    nodes
}

/// A node of the tree. `before` is the name that is smaller than all names under the node.
fn tree_node(children: &[Child], height: u8, before: u64, left: u64, right: u64) -> Vec<u8> {
    let mut bytes = b"TREE".to_vec();
    bytes.extend([0, height]);
    bytes.extend((children.len() as u16).to_le_bytes());
    bytes.extend(left.to_le_bytes());
    bytes.extend(right.to_le_bytes());
    bytes.extend(before.to_le_bytes());
    for child in children {
        bytes.extend(child.address.to_le_bytes());
        bytes.extend(child.last_name.to_le_bytes());
    }
    bytes.resize(24 + 8 * (2 * PER_NODE + 1), 0);
    bytes
}

fn symbol_node(links: &[(&str, u64)], offsets: &[u64]) -> Vec<u8> {
    let mut bytes = b"SNOD\x01\0".to_vec();
    bytes.extend((links.len() as u16).to_le_bytes());
    for ((_, header), offset) in links.iter().zip(offsets) {
        bytes.extend(offset.to_le_bytes());
        bytes.extend(header.to_le_bytes());
        // Nothing of the object is repeated here.
        bytes.extend([0; 24]);
    }
    bytes.resize(8 + 40 * PER_LEAF, 0);
    bytes
}
