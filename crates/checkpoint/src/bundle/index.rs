//! The index of a bundle: its tensors and their offsets. Parsing is a pure function from bytes to a
//! value.

use std::collections::BTreeMap;
use std::path::Path;

use estimand_tensor::{DType, Dims, Error, Limits, Result, element_count};
use estimand_wire::bundle::{BundleEntryProto, BundleHeaderProto, Endianness};
use estimand_wire::{DataType, Message};

use super::{HEADER_KEY, VERSION, slice};
use crate::sstable;

/// The contents of a `.index` file.
pub struct BundleIndex {
    pub(super) n_shards: usize,
    /// By name: whole tensors, and partitioned ones, which have no data of their own.
    pub(super) tensors: BTreeMap<String, BundleEntryProto>,
    /// By key: the slices of partitioned tensors.
    pub(super) slices: BTreeMap<Vec<u8>, BundleEntryProto>,
}

impl BundleIndex {
    /// Parses the bytes of an index, with the default [`Limits`]. `path` appears only in errors.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<BundleIndex> {
        BundleIndex::parse_within(path, bytes, &Limits::default())
    }

    /// Parses the bytes of an index with at most [`Limits::entries`] tensors.
    pub fn parse_within(path: &Path, bytes: &[u8], limits: &Limits) -> Result<BundleIndex> {
        let damaged = |message: String| Error::checkpoint(path, message);
        let mut pairs = sstable::read(path, bytes, limits)?.into_iter();
        let header = match pairs.next() {
            Some((key, value)) if key == HEADER_KEY => BundleHeaderProto::decode(value.as_slice()).ok(),
            _ => None,
        };
        let header = header.ok_or_else(|| damaged("the header is missing".to_string()))?;
        let n_shards = check_header(header).map_err(damaged)?;

        let (mut tensors, mut slices) = (BTreeMap::new(), BTreeMap::new());
        for (key, value) in pairs {
            let entry = BundleEntryProto::decode(value.as_slice())
                .map_err(|e| damaged(format!("the entry of `{}`: {e}", String::from_utf8_lossy(&key))))?;
            if key.first() == Some(&slice::KEY_MARK) {
                slices.insert(key, entry);
            } else {
                let name = String::from_utf8(key).map_err(|_| damaged("a name is not UTF-8".to_string()))?;
                tensors.insert(name, entry);
            }
        }
        Ok(BundleIndex { n_shards, tensors, slices })
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }
}

/// Returns the number of data files, if the format is supported.
fn check_header(header: BundleHeaderProto) -> Result<usize, String> {
    if header.endianness != Endianness::Little as i32 {
        return Err("the checkpoint was written on a big-endian machine".to_string());
    }
    let version = header.version.unwrap_or_default();
    if version.min_consumer > VERSION || version.bad_consumers.contains(&VERSION) {
        return Err(format!("the format is newer than version {VERSION}, the newest that Estimand reads"));
    }
    usize::try_from(header.num_shards)
        .map_err(|_| format!("the header names {} data files; expected at least 0", header.num_shards))
}

/// The element type and sizes of an entry, if arrays support them.
pub(super) fn spec(entry: &BundleEntryProto) -> Result<(DType, Dims), String> {
    let dtype = DataType::try_from(entry.dtype)
        .ok()
        .and_then(DataType::dtype)
        .ok_or_else(|| format!("it holds {}, which is not supported", DataType::describe(entry.dtype)))?;
    let sizes = entry.shape.iter().flat_map(|shape| shape.dim.iter()).map(|dim| usize::try_from(dim.size));
    let dims = sizes.collect::<Result<Dims, _>>().map_err(|_| "its shape has a negative size".to_string())?;
    count(&dims)?;
    Ok((dtype, dims))
}

/// The number of elements for these sizes; an error if it overflows.
pub(super) fn count(dims: &[usize]) -> Result<usize, String> {
    element_count(dims).map_err(|e| e.message().to_string())
}
