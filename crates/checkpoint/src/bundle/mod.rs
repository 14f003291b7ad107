//! Bundles: an index and its data files, TensorFlow's checkpoint format of version 2.
//!
//! `index.rs` parses the index; `read.rs` reads and `write.rs` writes bundles. `objects.rs` finds
//! variables in checkpoints of Keras. `strings.rs` is the layout of string tensors. `slice.rs`
//! names the slices of a partitioned variable and joins them.

mod index;
mod objects;
mod read;
mod slice;
mod strings;
mod write;

use std::path::{Path, PathBuf};

pub use index::BundleIndex;
pub use objects::Objects;
pub use read::BundleReader;
pub use write::BundleWriter;

use estimand_tensor::{Array, DType, Result};
use estimand_wire::crc::Crc;

/// The checksum that a bundle stores for a tensor: a masked CRC-32C of its bytes.
pub fn checksum(array: &Array) -> Result<u32> {
    Ok(crc(array)?.masked())
}

fn crc(array: &Array) -> Result<Crc> {
    if array.dtype() == DType::Str {
        let (_, mut crc) = strings::header(array.strings()?);
        array.strings()?.for_each(|string| crc.update(string));
        return Ok(crc);
    }
    let mut crc = Crc::default();
    crc.update(array.bytes());
    Ok(crc)
}

/// The version of the bundle format that we write, and the newest that we read.
const VERSION: i32 = 1;

/// The key of the header, which is the first key of the index.
const HEADER_KEY: &[u8] = b"";

/// The file that holds the index of a checkpoint.
pub(super) fn index_path(prefix: &Path) -> PathBuf {
    with_suffix(prefix, ".index")
}

fn data_path(prefix: &Path, shard: usize, n_shards: usize) -> PathBuf {
    with_suffix(prefix, &format!(".data-{shard:05}-of-{n_shards:05}"))
}

/// Unlike `Path::with_extension`, keeps the `.ckpt-7` of a prefix.
fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}
