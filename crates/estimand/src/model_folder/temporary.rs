//! The temporary folder of an estimator without a `model_dir`. It is made when the estimator is
//! built and removed when it is dropped.
//!
//! A killed process cannot remove its folder. After a day, the next process that needs a folder
//! removes it. The kernel's lock on a file in the folder shows whether its estimator is still
//! alive.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use estimand_tensor::{Error, Result};

/// The prefix of the names of these folders.
const PREFIX: &str = "estimand-model-";

/// The file that is locked while the estimator is alive.
const LOCK: &str = "estimand.temporary";

/// How long a folder of a dead process is kept, for inspection.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// A folder that is removed when it is dropped.
pub(crate) struct TemporaryFolder {
    path: PathBuf,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes a folder among the system's temporary files.
    pub(crate) fn new() -> Result<TemporaryFolder> {
        let base = std::env::temp_dir();
        remove_dead(&base, KEPT);
        let random = RandomState::new().build_hasher().finish();
        let path = base.join(format!("{PREFIX}{random:016x}"));
        fs::create_dir(&path).map_err(|e| Error::io(&path, "make", &e))?;
        let lock = path.join(LOCK);
        let file = File::create_new(&lock).map_err(|e| Error::io(&lock, "create", &e))?;
        // Without locks, the folder of a killed process stays.
        let _ = file.try_lock();
        Ok(TemporaryFolder { path, _lock: file })
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A drop cannot report an error, and the system cleans its temporary folder too.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of dead processes that are old enough.
fn remove_dead(base: &Path, kept: Duration) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let lock = entry.path().join(LOCK);
        if is_ours && is_old(&lock, kept) && File::open(&lock).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_old(path: &Path, kept: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_removed_and_those_of_the_living_stay() {
        let base = std::env::temp_dir().join(format!("estimand-temporary-folders-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let [dead, living, foreign] =
            [format!("{PREFIX}1"), format!("{PREFIX}2"), "other".to_string()].map(|name| base.join(name));
        for folder in [&dead, &living, &foreign] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(LOCK), b"").unwrap();
        }
        let lock = File::open(living.join(LOCK)).unwrap();
        lock.try_lock().unwrap();
        remove_dead(&base, KEPT);
        assert!(dead.exists(), "it is not a day old");
        remove_dead(&base, Duration::ZERO);
        assert!(!dead.exists() && living.exists() && foreign.exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_folder_goes_with_its_owner() -> Result<()> {
        let folder = TemporaryFolder::new()?;
        let path = folder.path().to_path_buf();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        Ok(())
    }
}
