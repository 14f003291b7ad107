//! The file `checkpoint` of a model directory, which names the newest checkpoint.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fs, str};

use estimand_tensor::{Error, Limits, Result};
use estimand_wire::CheckpointState;
use estimand_wire::temporary::write_whole;

use super::bundle::index_path;

const FILE_NAME: &str = "checkpoint";

/// Reads the list of checkpoints of a directory; `None` if there is no state file.
pub fn read_state(folder: impl AsRef<Path>) -> Result<Option<CheckpointState>> {
    let path = folder.as_ref().join(FILE_NAME);
    if matches!(fs::metadata(&path), Err(e) if e.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let bytes = Limits::default().read_text(&path)?;
    let text = str::from_utf8(&bytes).map_err(|_| Error::checkpoint(&path, "the file is not text"))?;
    let state = CheckpointState::parse(text).map_err(|e| {
        Error::checkpoint(&path, e.to_string())
            .help("correct the file, or remove it if no checkpoint of the folder is wanted")
    })?;
    Ok(Some(state))
}

/// Replaces the list of checkpoints of a directory.
pub fn write_state(folder: impl AsRef<Path>, state: &CheckpointState) -> Result<()> {
    write_whole(folder.as_ref().join(FILE_NAME), state.to_string().as_bytes())
}

/// Writes a text file. Afterwards the file has all of the text, or its old contents.
pub fn write_text(path: impl AsRef<Path>, text: &str) -> Result<()> {
    write_whole(path, text.as_bytes())
}

/// Returns the prefix of the newest checkpoint in a directory.
///
/// Returns `None` if there is no state file, if it names no checkpoint, or if that checkpoint has
/// no files.
pub fn latest_checkpoint(folder: impl AsRef<Path>) -> Result<Option<PathBuf>> {
    let folder = folder.as_ref();
    let newest = match read_state(folder)? {
        Some(state) if !state.model_checkpoint_path.is_empty() => folder.join(state.model_checkpoint_path),
        _ => return Ok(None),
    };
    Ok(index_path(&newest).is_file().then_some(newest))
}
