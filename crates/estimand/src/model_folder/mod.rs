//! The model folder: its lock, its newest and its best checkpoint.
//!
//! A training takes [`owner`]'s lock on the folder before it reads or writes anything. All readers
//! use [`newest`] and [`best`], which tolerate a trainer that removes old checkpoints meanwhile.
//! `temporary.rs` makes folders for estimators without a `model_dir`.

pub(crate) mod best;
pub(crate) mod best_so_far;
pub(crate) mod newest;
pub(crate) mod owner;
pub(crate) mod temporary;

pub use newest::MissingState;
pub use owner::FolderLock;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};

/// The prefix of the names of checkpoints.
pub(crate) const BASENAME: &str = "model.ckpt";

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

/// Reads a file of a model folder; `None` if there is none. The caller refuses more than
/// `max_bytes` bytes: at most one byte more is read, because the reported size may be wrong.
pub(crate) fn read_up_to(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path, "open", &error)),
    };
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, "read", &e))?;
    Ok(Some(bytes))
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
