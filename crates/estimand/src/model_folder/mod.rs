//! The folder of a model: who may write to it, and which of its checkpoints is the newest.
//!
//! A training takes the folder with [`owner`]'s lock before it reads or writes anything. Everyone
//! who reads goes through [`newest`], which copes with a trainer that removes old checkpoints
//! meanwhile. `temporary.rs` makes folders for estimators without a `model_dir`.

pub(crate) mod newest;
pub(crate) mod owner;
pub(crate) mod temporary;

pub use newest::MissingState;
pub use owner::FolderLock;

use std::fs::File;
use std::path::Path;

/// Whether a path still leads to a file that is open.
#[cfg(unix)]
pub(crate) fn is_in_place(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => id(open) == id(named),
        _ => false,
    }
}

/// Whether a path still leads to a file that is open: elsewhere an open file cannot be removed.
#[cfg(not(unix))]
pub(crate) fn is_in_place(_: &File, path: &Path) -> bool {
    path.exists()
}
