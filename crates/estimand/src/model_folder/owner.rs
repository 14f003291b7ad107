//! The lock of a model folder: one training at a time.
//!
//! The kernel holds the lock and releases it when the process dies, for whatever reason. The host,
//! process and time in the lock file are only for the error message; no decision depends on them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Once;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use estimand_tensor::{Error, ErrorKind, Result, warn};
use estimand_wire::temporary::{make_folders, remove_leftovers};
use tracing::info;

use super::is_in_place;
use crate::events::host_name;
use crate::saver::finish_removals;

/// The lock file of a model folder. It stays when the lock is released. If it were removed, two
/// processes could lock two files of the same name.
const FILE_NAME: &str = "estimand.lock";

/// The maximum number of bytes of a lock file to show.
const MOST_BYTES: u64 = 300;

/// How many times a refused training tries to read the owner's name.
const SIGNING: usize = 10;

/// Whether a training must be the only one in its model folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderLock {
    /// A second training is refused, with an error that names the first. On a file system without
    /// locks, a warning is logged once instead.
    #[default]
    Exclusive,
    /// Other trainings are not detected. Two at once corrupt each other's checkpoints.
    Ignore,
}

/// This process as the only trainer of a folder.
pub(crate) struct Owner {
    folder: PathBuf,
    mode: FolderLock,
    /// The locked file; `None` if locks are ignored or the file system has none.
    file: Option<File>,
}

impl Owner {
    /// Locks a folder, creating it if needed, and removes leftover files of killed runs.
    pub(crate) fn take(folder: &Path, mode: FolderLock) -> Result<Owner> {
        make_folders(folder).map_err(|e| Error::io(folder, "make the folder", &e))?;
        let file = match mode {
            FolderLock::Exclusive => lock(folder)?,
            FolderLock::Ignore => None,
        };
        if file.is_some() {
            finish_removals(folder)?;
            let removed = remove_leftovers(folder);
            if !removed.is_empty() {
                info!("Removed files that a killed run left in {}: {}", folder.display(), removed.join(", "));
            }
        }
        Ok(Owner { folder: folder.to_path_buf(), mode, file })
    }

    /// Recreates and locks the folder again if it was deleted. Returns whether it was.
    pub(crate) fn keep(&mut self) -> Result<bool> {
        let is_there = match &self.file {
            Some(file) => is_in_place(file, &self.folder.join(FILE_NAME)),
            None => self.folder.is_dir(),
        };
        if !is_there {
            *self = Owner::take(&self.folder, self.mode)?;
        }
        Ok(!is_there)
    }
}

impl Drop for Owner {
    /// Releases the lock at once. To close the file is not enough: a process that another thread is
    /// starting holds a copy of it until it runs its program.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // If that fails, the lock is released when the last copy is closed.
            let _ = file.unlock();
        }
    }
}

/// Returns the locked lock file; `None` if the file system has no locks.
fn lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join(FILE_NAME);
    loop {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(|e| Error::io(&path, "open", &e))?;
        match file.try_lock() {
            // The folder may have been deleted and recreated since the file was opened.
            Ok(()) if !is_in_place(&file, &path) => continue,
            Ok(()) => {
                sign(&mut file).map_err(|e| Error::io(&path, "write", &e))?;
                return Ok(Some(file));
            }
            Err(TryLockError::WouldBlock) => return Err(taken(folder, &mut file)),
            Err(TryLockError::Error(error)) => {
                tell_unlocked(folder, &error);
                return Ok(None);
            }
        }
    }
}

/// Writes the owner of the lock into the file.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("process {} on {}\nsince {}\n", process::id(), host_name(), now()).as_bytes())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn taken(folder: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    // The owner may be about to write its name.
    for _ in 0..SIGNING {
        text.clear();
        // The text is only for the message, so read errors are ignored.
        let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(MOST_BYTES).read_to_string(&mut text));
        if text.lines().count() == 2 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let mut lines = text.lines();
    let owner = lines.next().filter(|line| line.starts_with("process ")).unwrap_or("another process");
    let since = lines.next().and_then(|line| line.strip_prefix("since ")?.parse::<u64>().ok());
    let since = since.map_or_else(String::new, |since| format!(", for {} s", now().saturating_sub(since)));
    let path = folder.to_path_buf();
    Error::new(ErrorKind::Busy { path }, format!("{owner} already trains in {}{since}", folder.display())).help(
        "wait for it or end it; train in another model_dir; or, if you know that nobody trains there, \
         set RunConfig::folder_lock(FolderLock::Ignore)",
    )
}

fn tell_unlocked(folder: &Path, error: &io::Error) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        warn!(
            "The file system of {} has no locks ({error}): nothing keeps a second training from the same model_dir",
            folder.display()
        );
    });
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("estimand-owner-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_second_owner_is_refused_and_told_who_the_first_is() -> Result<()> {
        let folder = folder("second");
        let first = Owner::take(&folder, FolderLock::Exclusive)?;
        let error = Owner::take(&folder, FolderLock::Exclusive).map(drop).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Busy { path: folder.clone() });
        let text = error.to_string();
        let process = format!("process {} on ", process::id());
        for part in [process.as_str(), folder.to_str().unwrap(), "for ", "FolderLock::Ignore"] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        Owner::take(&folder, FolderLock::Ignore)?;
        drop(first);
        Owner::take(&folder, FolderLock::Exclusive)?;
        fs::remove_dir_all(folder).unwrap();
        Ok(())
    }

    #[test]
    fn a_lock_file_of_nonsense_is_no_reason_to_refuse() -> Result<()> {
        let folder = folder("nonsense");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(FILE_NAME), [0xff; 5000]).unwrap();
        let first = Owner::take(&folder, FolderLock::Exclusive)?;
        fs::write(folder.join(FILE_NAME), [0xff; 5000]).unwrap();
        let text = Owner::take(&folder, FolderLock::Exclusive).map(drop).unwrap_err().to_string();
        assert!(text.contains("another process already trains in"), "{text}");
        drop(first);
        fs::remove_dir_all(folder).unwrap();
        Ok(())
    }

    #[test]
    fn a_removed_folder_is_taken_again() -> Result<()> {
        let folder = folder("removed");
        let mut owner = Owner::take(&folder, FolderLock::Exclusive)?;
        assert!(!owner.keep()?);
        fs::remove_dir_all(&folder).unwrap();
        assert!(owner.keep()?);
        assert!(Owner::take(&folder, FolderLock::Exclusive).is_err());
        fs::remove_dir_all(folder).unwrap();
        Ok(())
    }
}
