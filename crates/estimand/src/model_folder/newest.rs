//! Finds the newest checkpoint of a folder, even while a trainer writes new ones and removes old
//! ones.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use estimand_checkpoint::{self as checkpoint, BundleReader, CheckpointState};
use estimand_tensor::{Error, Result, warn};

use super::BASENAME;
use crate::own_entries;

/// How to handle a folder that has checkpoints but no file `checkpoint`, which lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingState {
    /// Return an error. To begin at step 0 would overwrite the checkpoints one by one.
    #[default]
    Refuse,
    /// Use the newest readable checkpoint; training writes the list again.
    UseNewest,
    /// Ignore the checkpoints and begin training at step 0, as TensorFlow does.
    StartOver,
}

/// Returns the prefix of the newest checkpoint, whose files exist; `None` before the first.
pub(crate) fn newest(folder: &Path, missing: MissingState) -> Result<Option<PathBuf>> {
    let mut before: Option<CheckpointState> = None;
    loop {
        let Some(state) = checkpoint::read_state(folder)? else { return without_state(folder, missing) };
        if state.model_checkpoint_path.is_empty() {
            return Ok(None);
        }
        let prefix = folder.join(&state.model_checkpoint_path);
        if is_there(&prefix) {
            return Ok(Some(prefix));
        }
        // A trainer may have replaced the list and then the files since the list was read.
        if before.as_ref() == Some(&state) {
            return Err(Error::checkpoint(
                &prefix,
                "the file `checkpoint` names this checkpoint as the newest, but it does not exist",
            )
            .help("put the files back, or remove the file `checkpoint` to start over"));
        }
        before = Some(state);
    }
}

/// Calls `read` with the newest checkpoint. If that fails because a trainer has removed the
/// checkpoint meanwhile, calls it with the next one.
pub(crate) fn read_newest<T>(
    folder: &Path,
    missing: MissingState,
    mut read: impl FnMut(&Path) -> Result<T>,
) -> Result<Option<(PathBuf, T)>> {
    loop {
        let Some(prefix) = newest(folder, missing)? else { return Ok(None) };
        match read(&prefix) {
            Ok(value) => return Ok(Some((prefix, value))),
            Err(_) if !is_there(&prefix) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Calls `read` with the checkpoint at a path: a prefix, an exported model, or the newest of a
/// folder.
pub(crate) fn read_at<T>(path: &Path, mut read: impl FnMut(&Path) -> Result<T>) -> Result<(PathBuf, T)> {
    match prefix_at(path) {
        Some(prefix) => read(&prefix).map(|value| (prefix, value)),
        None => read_newest(path, MissingState::Refuse, read)?.ok_or_else(|| {
            Error::config(format!("there is no checkpoint in {}", path.display()))
                .help("name a checkpoint or a folder of checkpoints")
        }),
    }
}

/// Returns the prefix of the checkpoint if the path names a fixed one; `None` for the newest of a
/// folder.
fn prefix_at(path: &Path) -> Option<PathBuf> {
    if !path.is_dir() {
        return Some(path.to_path_buf());
    }
    let saved_model = path.join("variables").join("variables");
    is_there(&saved_model).then_some(saved_model)
}

/// Rewrites the list of a folder's checkpoints, if it is missing and the setting allows it.
pub(crate) fn recover_state(folder: &Path, missing: MissingState) -> Result<()> {
    if missing != MissingState::UseNewest || checkpoint::read_state(folder)?.is_some() {
        return Ok(());
    }
    let all: Vec<String> = listed(folder)?.into_iter().map(|(_, name)| name).collect();
    let usable = all.iter().rev().find(|name| is_usable(&folder.join(name)));
    let Some(newest) = usable.cloned() else { return Ok(()) };
    let state = CheckpointState {
        model_checkpoint_path: newest,
        all_model_checkpoint_paths: all,
        ..CheckpointState::default()
    };
    checkpoint::write_state(folder, &state)
}

/// Returns whether the index of a checkpoint exists. A trainer removes the index before the other
/// files.
pub(crate) fn is_there(prefix: &Path) -> bool {
    let mut index = prefix.as_os_str().to_os_string();
    index.push(".index");
    Path::new(&index).is_file()
}

/// Returns the newest checkpoint of a folder without a list.
fn without_state(folder: &Path, missing: MissingState) -> Result<Option<PathBuf>> {
    let found = listed(folder)?;
    let Some((_, last)) = found.last() else { return Ok(None) };
    match missing {
        MissingState::StartOver => Ok(None),
        MissingState::UseNewest => {
            let usable = found.iter().rev().map(|(_, name)| folder.join(name)).find(|prefix| is_usable(prefix));
            if let Some(prefix) = &usable {
                warn!("The file `checkpoint` is missing in {}: {} is used", folder.display(), prefix.display());
            }
            Ok(usable)
        }
        MissingState::Refuse => Err(Error::checkpoint(
            folder.join("checkpoint"),
            format!("the list of checkpoints is missing, but the folder has {} of them, up to {last}", found.len()),
        )
        .help(
            "put the file back; or set RunConfig::missing_state(MissingState::UseNewest) to continue from the newest \
             checkpoint, or MissingState::StartOver to begin at step 0",
        )),
    }
}

/// Finds the checkpoints in a folder by file name, in the order of their steps.
fn listed(folder: &Path) -> Result<Vec<(u64, String)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| Error::io(folder, "list", &e))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| Error::io(folder, "list", &e))?.file_name();
        let prefix = name.to_str().and_then(|name| name.strip_suffix(".index"));
        let step = prefix.and_then(|prefix| prefix.strip_prefix(BASENAME)?.strip_prefix('-')?.parse().ok());
        if let (Some(prefix), Some(step)) = (prefix, step) {
            found.push((step, prefix.to_string()));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns whether a checkpoint can be read and is not marked as not finite.
fn is_usable(prefix: &Path) -> bool {
    BundleReader::open(prefix).is_ok_and(|reader| !own_entries::is_marked(&reader))
}
