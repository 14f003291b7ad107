//! Writing a file. [`Writer`] holds the tree; [`blocks`] gives every block of the file its address,
//! children before their parents; [`messages`], [`links`] and [`heap`] make the bytes of blocks.

mod blocks;
mod heap;
mod links;
mod messages;
mod tree;

use std::io::Write;

use estimand_tensor::{Array, Error, Result};

use blocks::Blocks;
use messages::Value;
use tree::{Node, Tree};

/// Builds an HDF5 file.
///
/// The file has the oldest format (superblock 0, symbol tables, contiguous datasets), which every
/// version of h5py reads. It has no times: the same calls give the same bytes, and groups and
/// attributes may be added in any order. Arrays are shared, not copied.
///
/// ```
/// use estimand_hdf5::Writer;
/// use estimand_tensor::Array;
///
/// let mut writer = Writer::new();
/// writer.dataset("dense/dense/kernel:0", &Array::from([1f32, 2.0]))?;
/// writer.fixed_attribute("dense", "weight_names", &Array::from_strings([1], ["dense/kernel:0"])?)?;
/// writer.fixed_attribute("/", "layer_names", &Array::from_strings([1], ["dense"])?)?;
/// assert!(writer.to_bytes()?.starts_with(b"\x89HDF"));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Default)]
pub struct Writer {
    tree: Tree,
}

impl Writer {
    /// A file with an empty root group.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// Adds a group and the groups above it, unless they exist.
    pub fn group(&mut self, path: &str) -> Result<()> {
        self.tree.group(path).map(drop)
    }

    /// Adds a dataset and the groups above it. Strings have variable length, as h5py writes `str`.
    pub fn dataset(&mut self, path: &str, array: &Array) -> Result<()> {
        self.tree.dataset(path, Value::variable(array)?)
    }

    /// Adds a dataset of strings that all take the length of the longest one, as h5py writes arrays
    /// of `bytes`. Numbers are stored as by [`dataset`](Self::dataset).
    pub fn fixed_dataset(&mut self, path: &str, array: &Array) -> Result<()> {
        self.tree.dataset(path, Value::fixed(array)?)
    }

    /// Adds an attribute to a group or a dataset that exists, or replaces it. Strings have variable
    /// length, as h5py writes `str`.
    pub fn attribute(&mut self, path: &str, name: &str, array: &Array) -> Result<()> {
        self.tree.attribute(path, name, Value::variable(array)?)
    }

    /// Adds an attribute of strings that all take the length of the longest one, as h5py writes
    /// `bytes` of NumPy. Numbers are stored as by [`attribute`](Self::attribute).
    ///
    /// An attribute has at most 64 kB. Keras divides longer lists of names into several attributes.
    pub fn fixed_attribute(&mut self, path: &str, name: &str, array: &Array) -> Result<()> {
        self.tree.attribute(path, name, Value::fixed(array)?)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the file. Only names and other metadata are copied; the bytes of arrays are not.
    pub fn write_to(&self, out: &mut impl Write) -> Result<()> {
        let mut blocks = Blocks::new();
        let mut strings = heap::store(&self.tree, &mut blocks);
        let root = add(&self.tree.root, &mut strings, &mut blocks)?;
        blocks.write(&root, out).map_err(|e| Error::io("HDF5 file", "write", &e))
    }
}

/// The addresses of an object that its parent needs.
struct Written {
    header: u64,
    /// The B-tree and the heap of a group.
    symbols: Option<[u64; 2]>,
}

/// Adds the blocks of an object and everything below it. The tree checks its depth.
fn add(node: &Node, strings: &mut heap::References, blocks: &mut Blocks) -> Result<Written> {
    let mut messages = Vec::new();
    // The order in which `heap::store` has met the strings: attributes, the value, children.
    for (name, value) in &node.attributes {
        messages.push(messages::attribute(name, value, strings));
    }
    let mut symbols = None;
    match &node.kind {
        tree::Kind::Dataset(value) => {
            let n_bytes = value.n_bytes();
            let address = blocks.add_value(value, strings);
            let own = [
                messages::dataspace(value.dims()),
                messages::datatype(value),
                messages::fill(),
                messages::layout(address, n_bytes),
            ];
            messages.splice(0..0, own);
        }
        tree::Kind::Group(children) => {
            let mut entries = Vec::with_capacity(children.len());
            for (name, child) in children {
                entries.push((name.as_str(), add(child, strings, blocks)?.header));
            }
            let addresses = links::add(&entries, blocks);
            messages.insert(0, messages::symbol_table(addresses));
            symbols = Some(addresses);
        }
    }
    Ok(Written { header: blocks.add(messages::header(&messages)?), symbols })
}
