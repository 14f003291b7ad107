//! The folder of an export. It is made under a temporary name, which a server that polls ignores,
//! and renamed when it is complete.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use estimand_tensor::{Error, Result, warn};
use estimand_tf::golden::DOCUMENT;
use estimand_wire::temporary::{make_folders, sync_folder, write_whole};

/// The names of folders that are not published begin with this.
const TEMPORARY: &str = "temp-";

/// The number of names that are tried, one per second, as in TensorFlow.
const N_TRIES: usize = 10;

/// A folder that is removed unless it is published.
pub(super) struct Unpublished {
    base: PathBuf,
    path: PathBuf,
    /// The open folder, locked. Another export removes a folder that nobody has locked: the process
    /// that made it was killed.
    _lock: Locked,
}

impl Unpublished {
    /// Makes a folder with a random name that begins with `temp-`.
    pub(super) fn new(base: &Path) -> Result<Unpublished> {
        make_folders(base).map_err(|e| Error::io(base, "make", &e))?;
        remove_abandoned(base);
        for _ in 0..N_TRIES {
            let path = base.join(format!("{TEMPORARY}{}-{:016x}", now().as_secs(), random()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = lock(&path);
                    // Another export may take the new folder for an abandoned one and remove it
                    // before it is locked.
                    if !matches!(lock, Locked::Other) && path.is_dir() {
                        return Ok(Unpublished { base: base.to_path_buf(), path, _lock: lock });
                    }
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io(&path, "make", &error)),
            }
        }
        Err(Error::internal("ten random names are taken"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of this library to `assets.extra`.
    pub(super) fn write_extra(&self, name: &str, text: &str) -> Result<()> {
        let folder = self.path.join("assets.extra");
        make_folders(&folder).map_err(|e| Error::io(&folder, "make", &e))?;
        write_whole(folder.join(name), text.as_bytes())
    }

    /// Copies a file to a path below `assets.extra`.
    pub(super) fn copy_extra(&self, to: &Path, source: &Path) -> Result<()> {
        let is_inside = to.components().all(|part| matches!(part, Component::Normal(_)));
        if to.as_os_str().is_empty() || !is_inside {
            return Err(Error::config(format!("the extra asset {} is not a path below assets.extra", to.display()))
                .help("give a relative path without `..`"));
        }
        if to == Path::new(DOCUMENT) {
            return Err(Error::config(format!("the extra asset {} would replace a file of the export", to.display()))
                .help("give it another name"));
        }
        let to = self.path.join("assets.extra").join(to);
        let folder = to.parent().unwrap_or(&self.path);
        make_folders(folder).map_err(|e| Error::io(folder, "make", &e))?;
        fs::copy(source, &to).map_err(|e| Error::io(source, "copy", &e))?;
        File::open(&to).and_then(|file| file.sync_all()).map_err(|e| Error::io(&to, "write", &e))
    }

    /// Gives the folder its name: the time in seconds. If the name is taken, waits for the next.
    pub(super) fn publish(mut self) -> Result<PathBuf> {
        for name in ["saved_model.pb", "variables/variables", "assets/file", "assets.extra/file"] {
            let inside = self.path.join(name);
            if inside.parent().is_some_and(Path::is_dir) {
                sync_folder(&inside)?;
            }
        }
        let mut last = None;
        for _ in 0..N_TRIES {
            let time = now();
            let target = self.base.join(time.as_secs().to_string());
            if !target.exists() {
                match fs::rename(&self.path, &target) {
                    Ok(()) => {
                        self.path = PathBuf::new();
                        sync_folder(&target)?;
                        return Ok(target);
                    }
                    Err(error) if !target.exists() => return Err(Error::io(&target, "make", &error)),
                    Err(_) => {}
                }
            }
            last = Some(target);
            sleep(Duration::from_secs(1) - Duration::from_nanos(u64::from(time.subsec_nanos())));
        }
        let last = last.map_or(String::new(), |path| path.display().to_string());
        Err(Error::config(format!("{N_TRIES} names for the export are taken, the last is {last}"))
            .help("check the clock, and whether another process exports to the same folder"))
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // Whoever sees the error of the export does not need another one.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The result of locking a folder.
enum Locked {
    /// Nobody else has the lock while this file is open.
    Own(File),
    /// Another export has the lock, or has removed the folder.
    Other,
    /// The system cannot lock folders.
    Unsupported,
}

fn lock(path: &Path) -> Locked {
    let folder = match File::open(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == ErrorKind::NotFound => return Locked::Other,
        Err(_) => return Locked::Unsupported,
    };
    match folder.try_lock() {
        Ok(()) => Locked::Own(folder),
        Err(TryLockError::WouldBlock) => Locked::Other,
        Err(TryLockError::Error(_)) => Locked::Unsupported,
    }
}

/// Whether a folder has a temporary name of this library, `temp-SECONDS-RANDOM`. TensorFlow's are
/// `temp-SECONDS`.
fn is_temporary(name: &str) -> bool {
    let parts = name.strip_prefix(TEMPORARY).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(seconds, random)| {
        let is_hex = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex && !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Removes the folders that killed exports have left.
fn remove_abandoned(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_temporary)
            && let Locked::Own(lock) = lock(&entry.path())
        {
            if let Err(error) = fs::remove_dir_all(entry.path()) {
                warn!("{}", Error::io(entry.path(), "remove", &error).message());
            }
            drop(lock);
        }
    }
}

/// Removes all exports but the newest `kept`. Only folders that are named by a time, ten digits,
/// are exports; `None` removes nothing.
pub(super) fn remove_old(base: &Path, kept: Option<usize>) -> Result<()> {
    let Some(kept) = kept else { return Ok(()) };
    let mut exports: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(base).map_err(|e| Error::io(base, "list", &e))? {
        let path = entry.map_err(|e| Error::io(base, "list", &e))?.path();
        let is_time = |name: &str| name.len() == 10 && name.bytes().all(|byte| byte.is_ascii_digit());
        if path.file_name().and_then(|name| name.to_str()).is_some_and(is_time) && path.is_dir() {
            exports.push(path);
        }
    }
    // Numbers of the same length are in the order of their digits.
    exports.sort();
    let n_old = exports.len().saturating_sub(kept);
    for old in &exports[..n_old] {
        if let Err(error) = fs::remove_dir_all(old) {
            warn!("An old export cannot be removed: {}", Error::io(old, "remove", &error).message());
        }
    }
    Ok(())
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A random number from the standard library's only source.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
