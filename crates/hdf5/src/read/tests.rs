//! Damage behind checksums, which ordinary damage does not pass.

use std::path::PathBuf;

use estimand_tensor::Limits;

use super::{File, Group, Node};
use crate::checksum::IGNORED;

fn fixture(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../oracles/fixtures/hdf5", name].iter().collect();
    std::fs::read(path).unwrap()
}

/// Reads everything. Returns the number of values, and the errors of objects.
fn read(bytes: Vec<u8>) -> (usize, Vec<String>) {
    fn walk(node: &Node<'_>, found: &mut (usize, Vec<String>)) {
        let names = node.attribute_names().unwrap_or_else(|error| {
            found.1.push(error.to_string());
            Vec::new()
        });
        let mut values: Vec<_> = names.iter().map(|name| node.attribute(name)).collect();
        match node {
            Node::Dataset(dataset) => values.push(dataset.read()),
            Node::Group(group) => children(group, found),
        }
        for value in values {
            match value {
                Ok(_) => found.0 += 1,
                Err(error) => found.1.push(error.to_string()),
            }
        }
    }
    fn children(group: &Group<'_>, found: &mut (usize, Vec<String>)) {
        for child in group.children() {
            match child {
                Ok(child) => walk(&child, found),
                Err(error) => found.1.push(error.to_string()),
            }
        }
    }
    let limits = Limits { unpacked_bytes: 1 << 20, free_bytes: 1 << 20, ..Limits::default() };
    let mut found = (0, Vec::new());
    match File::from_bytes(bytes, &limits) {
        Ok(file) => walk(&Node::Group(file.root()), &mut found),
        Err(error) => found.1.push(error.to_string()),
    }
    found
}

#[test]
fn every_byte_changed_behind_the_checksums() {
    IGNORED.set(true);
    for name in ["latest.h5", "v108.h5"] {
        let mut bytes = fixture(name);
        let (whole, errors) = read(bytes.clone());
        assert!(whole >= 8 && errors.is_empty(), "{whole} {errors:?}");
        for at in 0..bytes.len() {
            let old = bytes[at];
            for new in [0, 1, 0x10, 0x7f, 0xff, old ^ 1, old ^ 0x80, old.wrapping_add(8)] {
                bytes[at] = new;
                read(bytes.clone());
            }
            bytes[at] = old;
        }
    }
    IGNORED.set(false);
}

#[test]
fn wrong_checksums_are_errors() {
    let bytes = fixture("v108.h5");
    let signatures: [(&[u8; 4], &str); 6] = [
        (b"\x89HDF", "the superblock"),
        (b"OHDR", "an object header"),
        (b"OCHK", "an object header"),
        (b"FRHP", "a fractal heap"),
        (b"BTHD", "a B-tree"),
        (b"BTLF", "a node of a B-tree"),
    ];
    for (signature, what) in signatures {
        let at = (0..bytes.len()).find(|&at| bytes[at..].starts_with(signature)).unwrap();
        let mut damaged = bytes.clone();
        // Bits that no reader looks at: the end of the file's extension, flags, sizes of messages.
        damaged[at + if what == "the superblock" { 20 } else { 13 }] ^= 0x40;
        let (_, errors) = read(damaged);
        let expected = format!("the checksum of {what} is wrong");
        assert!(errors.iter().any(|error| error.contains(&expected)), "{what}: {errors:?}");
    }
}

/// The identifier of the first link or attribute is made to be one of a huge object, of which there
/// is none.
#[test]
fn huge_objects_that_do_not_exist() {
    IGNORED.set(true);
    let bytes = fixture("v108.h5");
    for (kind, at) in [(5, 6 + 4), (8, 6)] {
        let is_leaf = |&at: &usize| bytes[at..].starts_with(&[b'B', b'T', b'L', b'F', 0, kind]);
        let leaf = (0..bytes.len()).find(is_leaf).unwrap();
        let mut damaged = bytes.clone();
        assert_eq!(damaged[leaf + at], 0);
        damaged[leaf + at] = 0x10;
        let (_, errors) = read(damaged);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with("the huge object ") && errors[0].contains("in the group `/"), "{errors:?}");
    }
    IGNORED.set(false);
}
