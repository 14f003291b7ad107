//! Checkpoints: any input gives an index or an error, and reading the tensors of an index gives
//! arrays or errors.
//!
//! A checksum guards every block of an index, and hardly any mutation passes it. So the first byte
//! chooses how the others are used: as a whole file, as a block (plain or packed) with a right
//! checksum, as the keys and values of a well-formed table, or as the table of objects of a
//! well-formed checkpoint.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use estimand_checkpoint::sstable::TableWriter;
use estimand_checkpoint::{BundleIndex, BundleReader, BundleWriter, Objects};
use estimand_tensor::Array;
use estimand_wire::bundle::BundleHeaderProto;
use estimand_wire::{Message, crc, varint};

/// The bytes are a file.
pub const FILE: u8 = 0;
/// The bytes are the only data block of a file.
pub const BLOCK: u8 = 1;
/// The bytes are keys and values, each with a length of one byte.
pub const PAIRS: u8 = 2;

/// The bytes are the only data block of a file, packed by snappy.
pub const SNAPPY: u8 = 3;

/// The bytes are the table of objects, beside two variables.
pub const OBJECTS: u8 = 4;

/// Reads an index and, if there is one, the tensors it lists.
pub fn check(input: &[u8]) {
    let Some((&mode, rest)) = input.split_first() else { return };
    let index = match mode % 5 {
        OBJECTS => return objects(rest),
        FILE => rest.to_vec(),
        BLOCK => table_of(rest, 0),
        SNAPPY => table_of(rest, 1),
        _ => table_from(rest),
    };
    let path = Path::new("fuzz.index");
    let Ok(parsed) = BundleIndex::parse(path, &index) else { return };
    if parsed.names().next().is_some() {
        read_all(&index);
    }
}

/// Builds a table of one data block with a compression.
fn table_of(block: &[u8], compression: u8) -> Vec<u8> {
    fn stored(block: &[u8], compression: u8, out: &mut Vec<u8>) -> [u64; 2] {
        let handle = [out.len() as u64, block.len() as u64];
        let typed = [block, &[compression]].concat();
        out.extend(&typed);
        out.extend(crc::masked_crc32c(&typed).to_le_bytes());
        handle
    }
    let one_restart = [0, 0, 0, 0, 1, 0, 0, 0];
    let mut table = Vec::new();
    let [offset, size] = stored(block, compression, &mut table);
    let metaindex = stored(&one_restart, 0, &mut table);
    // One entry: no shared prefix, a key of one byte, the handle.
    let mut handle = Vec::new();
    varint::put(offset, &mut handle);
    varint::put(size, &mut handle);
    let entry = [&[0, 1, handle.len() as u8, 0xff], handle.as_slice(), &one_restart].concat();
    let index = stored(&entry, 0, &mut table);
    let mut footer = Vec::new();
    metaindex.into_iter().chain(index).for_each(|number| varint::put(number, &mut footer));
    footer.resize(40, 0);
    table.extend(footer);
    table.extend(0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    table
}

/// Builds a table of the pairs in some bytes; adds a header if there is none.
fn table_from(mut bytes: &[u8]) -> Vec<u8> {
    let header = BundleHeaderProto { num_shards: 1, ..Default::default() }.encode_to_vec();
    let mut pairs = BTreeMap::from([(&[][..], header.as_slice())]);
    while let (Some(key), Some(value)) = (take(&mut bytes), take(&mut bytes)) {
        pairs.insert(key, value);
    }
    let mut writer = TableWriter::new(Vec::new());
    for (key, value) in pairs {
        writer.add(key, value).expect("keys of a map are in order");
    }
    writer.finish().expect("memory does not fail")
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&length, rest) = bytes.split_first()?;
    let (taken, rest) = rest.split_at_checked(length.into())?;
    *bytes = rest;
    Some(taken)
}

/// Writes a checkpoint with this table of objects, and follows every path of up to three names.
fn objects(table: &[u8]) {
    let thread = std::thread::current().id();
    let folder = std::env::temp_dir().join(format!("estimand-fuzz-objects-{}-{thread:?}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder in the temporary folder");
    let prefix = folder.join("m");
    let mut writer = BundleWriter::create(&prefix).expect("a file in the temporary folder");
    for name in ["_CHECKPOINTABLE_OBJECT_GRAPH", "layer/bias/.ATTRIBUTES/VARIABLE_VALUE"] {
        writer.add(name, &Array::from_strings([], [table]).expect("one string")).expect("names in order");
    }
    writer.finish().expect("a file in the temporary folder");
    let reader = BundleReader::open(&prefix).expect("just written");
    let _ = reader.object_keys();
    if let Ok(Some(objects)) = reader.objects() {
        let mut found = vec![Objects::ROOT];
        for _ in 0..3 {
            let children = |object: &usize| objects.children(*object).map(|(_, child)| child).collect::<Vec<_>>();
            found = found.iter().flat_map(children).take(1000).collect();
            found.iter().for_each(|object| drop(objects.key(*object).map(|key| reader.read(key))));
        }
    }
    let _ = fs::remove_dir_all(&folder);
}

/// Opens the index as a file, beside a small data file, and reads every tensor.
fn read_all(index: &[u8]) {
    let thread = std::thread::current().id();
    let folder = std::env::temp_dir().join(format!("estimand-fuzz-{}-{thread:?}", std::process::id()));
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes);
    let data: Vec<u8> = (0..=255).collect();
    let written = fs::create_dir_all(&folder)
        .and_then(|()| write("m.index", index))
        .and_then(|()| write("m.data-00000-of-00001", &data));
    if written.is_ok()
        && let Ok(reader) = BundleReader::open(folder.join("m"))
    {
        let names: Vec<String> = reader.names().map(str::to_string).collect();
        names.iter().for_each(|name| drop(reader.read(name)));
    }
    let _ = fs::remove_dir_all(&folder);
}
