//! HDF5: any input gives a tree or an error, and reading every value gives an array or an error.

use estimand_hdf5::{File, Group, Node};
use estimand_tensor::Limits;

/// The limits of the target: small inputs may claim no more.
pub const LIMITS: Limits = Limits {
    unpacked_bytes: 4 << 20,
    ratio: 100,
    free_bytes: 1 << 20,
    entries: 10_000,
    columns: 0,
    field_bytes: 0,
    line_bytes: 0,
    record_bytes: 0,
    text_bytes: 0,
    pixels: 0,
};

/// Opens the bytes as a file and reads everything in it.
pub fn check(input: &[u8]) {
    if let Ok(file) = File::from_bytes(input.to_vec(), &LIMITS) {
        read(&file.root());
    }
}

fn read(group: &Group<'_>) {
    attributes(&Node::Group(group.clone()));
    let _ = group.names_by_creation();
    for child in group.children().flatten() {
        match &child {
            Node::Group(group) => read(group),
            Node::Dataset(dataset) => {
                if let Ok(array) = dataset.read() {
                    assert_eq!((array.dims(), Some(array.dtype())), (dataset.shape(), dataset.dtype().ok()));
                }
                attributes(&child);
            }
        }
    }
}

fn attributes(node: &Node<'_>) {
    for name in node.attribute_names().unwrap_or_default() {
        let _ = node.attribute(&name);
    }
}
