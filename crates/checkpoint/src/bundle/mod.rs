//! Bundles: one index and its data files, TensorFlow's checkpoint of version 2.
//!
//! `index.rs` understands the index, `read.rs` and `write.rs` are the two directions; `objects.rs`
//! finds variables in the files of Keras, `strings.rs` is how string tensors are laid out,
//! `slice.rs` how the pieces of a partitioned variable are named and put together.

mod index;
mod objects;
mod read;
mod slice;
mod strings;
mod write;

use std::path::{Path, PathBuf};

pub use index::BundleIndex;
pub use read::BundleReader;
pub use write::BundleWriter;

/// The version of the bundle format that we write, and the newest that we read.
const VERSION: i32 = 1;

/// The key of the header, the first of the index.
const HEADER_KEY: &[u8] = b"";

/// The file that holds the index of a checkpoint.
pub(super) fn index_path(prefix: &Path) -> PathBuf {
    with_suffix(prefix, ".index")
}

fn data_path(prefix: &Path, shard: usize, n_shards: usize) -> PathBuf {
    with_suffix(prefix, &format!(".data-{shard:05}-of-{n_shards:05}"))
}

/// Not `Path::with_extension`: the `.ckpt-7` of a prefix stays.
fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}
