//! The model folder: its lock, its newest and its best checkpoint.
//!
//! A training takes [`owner`]'s lock on the folder before it reads or writes anything. All readers
//! use [`newest`] and [`best`], which tolerate a trainer that removes old checkpoints meanwhile.
//! `temporary.rs` makes folders for estimators without a `model_dir`.

pub(crate) mod best;
pub(crate) mod newest;
pub(crate) mod owner;
pub(crate) mod temporary;

pub use newest::MissingState;
pub use owner::FolderLock;

use std::fs::File;
use std::path::{Path, PathBuf};

/// The checkpoint that an evaluation or a prediction uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Which {
    /// The newest of the model folder.
    #[default]
    Newest,
    /// The one at a path: a prefix, an exported model, or the newest of a folder.
    At(PathBuf),
    /// That of the best evaluation of this name, or of the first evaluation.
    Best(Option<String>),
}

/// Returns whether a path still leads to an open file.
#[cfg(unix)]
pub(crate) fn is_in_place(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => id(open) == id(named),
        _ => false,
    }
}

/// Returns whether a path still leads to an open file. On this system an open file cannot be
/// removed.
#[cfg(not(unix))]
pub(crate) fn is_in_place(_: &File, path: &Path) -> bool {
    path.exists()
}
