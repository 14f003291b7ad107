//! A file that appears under its name only when it is complete.
//!
//! The bytes go to a file beside the target, with a random name. Once they are on the disk, a
//! rename puts them in place of whatever had the target's name. So a file under its own name is
//! always whole, whenever the process is killed.
//!
//! A killed process leaves its temporary file. The file carries a kernel lock while its writer
//! lives, and death releases the lock. So [`remove_leftovers`] can tell a dead writer's file from
//! one that another process is still writing.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};

/// The text between the target's name and the random part of a temporary file's name.
const MARK: &str = ".tmp-";

/// The number of hexadecimal digits of the random part.
const N_DIGITS: usize = 16;

/// The number of names to try before giving up. A second try is rarer than a broken disk.
const MOST_NAMES: usize = 100;

/// The destination of a file's bytes: the file itself, or in tests a disk that fails.
pub trait Disk: Write + Send {
    /// Returns once every byte is on the disk.
    fn sync(&self) -> io::Result<()>;

    /// The number of bytes written.
    fn byte_len(&self) -> io::Result<u64>;
}

impl Disk for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// A function that puts a [`Disk`] between a new file and its writer.
pub type Mount = fn(File) -> Box<dyn Disk>;

/// A file being written beside its target. It is removed if it is dropped before
/// [`rename`](Self::rename).
///
/// ```
/// use std::io::Write;
/// use estimand_wire::temporary::{TemporaryFile, sync_folder};
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-temporary-{}", std::process::id()));
/// let target = folder.join("notes.txt");
/// let mut file = TemporaryFile::create(&target)?;
/// file.write_all(b"whole").unwrap();
/// assert!(!target.exists());
/// file.sync()?;
/// file.rename()?;
/// sync_folder(&target)?;
/// assert_eq!(std::fs::read(&target).unwrap(), b"whole");
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub struct TemporaryFile {
    output: BufWriter<Box<dyn Disk>>,
    path: PathBuf,
    target: PathBuf,
}

impl TemporaryFile {
    /// Starts a file that will become `target`. Creates missing folders.
    pub fn create(target: impl AsRef<Path>) -> Result<TemporaryFile> {
        TemporaryFile::mounted(target.as_ref(), |file| Box::new(file))
    }

    /// Like [`create`](Self::create), with a [`Disk`] in between.
    pub fn mounted(target: &Path, mount: Mount) -> Result<TemporaryFile> {
        make_folders(folder_of(target)).map_err(|e| Error::io(target, "make the folder of", &e))?;
        let (file, path) = create_beside(target)?;
        let output = BufWriter::with_capacity(1 << 16, mount(file));
        Ok(TemporaryFile { output, path, target: target.to_path_buf() })
    }

    /// The final path of the file.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Waits until every byte is on disk. Returns the number of bytes.
    pub fn sync(&mut self) -> Result<u64> {
        self.output.flush().map_err(|e| self.error("write", &e))?;
        let disk = self.output.get_ref();
        disk.sync().and_then(|()| disk.byte_len()).map_err(|e| self.error("sync", &e))
    }

    /// Renames the file to its target and replaces an older file. Call [`sync`](Self::sync) before
    /// and [`sync_folder`] after.
    pub fn rename(&mut self) -> Result<()> {
        // After a success, `drop` has nothing left to remove.
        fs::rename(&self.path, &self.target).map_err(|e| self.error("rename", &e))
    }

    /// The error of a failed operation, with the name of the target.
    pub fn error(&self, what: &str, error: &io::Error) -> Error {
        Error::io(&self.target, what, error)
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A failure cannot be reported here. A later run removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a whole file. Afterwards it has all of the bytes, or its old contents.
pub fn write_whole(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let mut file = TemporaryFile::create(path)?;
    file.write_all(bytes).map_err(|e| file.error("write", &e))?;
    file.sync()?;
    file.rename()?;
    sync_folder(path)
}

/// A second name for a file that is about to be replaced, so that it can be restored. The second
/// name is removed on drop.
pub struct Backup {
    path: PathBuf,
    original: PathBuf,
}

impl Backup {
    /// Keeps the file, if it exists and the file system has hard links.
    pub fn of(original: &Path) -> Option<Backup> {
        let path = beside(original);
        fs::hard_link(original, &path).ok()?;
        Some(Backup { path, original: original.to_path_buf() })
    }

    /// Restores the file under its own name.
    pub fn restore(self) -> Result<()> {
        fs::rename(&self.path, &self.original).map_err(|e| Error::io(&self.original, "restore", &e))
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        // A failure cannot be reported here either.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes the new names in a file's folder survive a power failure.
pub fn sync_folder(file: &Path) -> Result<()> {
    let folder = folder_of(file);
    sync_names(folder).map_err(|e| Error::io(folder, "sync", &e))
}

/// Creates a folder and its parents, so that their names survive a power failure.
pub fn make_folders(folder: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = folder;
    while !at.as_os_str().is_empty() && !at.is_dir() {
        missing.push(at);
        let Some(above) = at.parent() else { break };
        at = above;
    }
    if missing.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    missing.into_iter().rev().try_for_each(|made| sync_names(folder_of(made)))
}

/// Syncs a folder. Only Unix can open and sync folders.
fn sync_names(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Removes the temporary files in a folder whose writers are dead. Returns their names, sorted.
///
/// Files that another process is writing stay. On file systems without locks all files stay,
/// because live and dead writers cannot be distinguished. A file that cannot be removed stays too;
/// it does no harm.
pub fn remove_leftovers(folder: &Path) -> Vec<String> {
    remove_dead(folder, |name| target_of(name).is_some())
}

/// Removes the temporary files of one target whose writers are dead. Returns their names, sorted.
pub fn remove_leftovers_of(target: &Path) -> Vec<String> {
    let wanted = target.file_name().and_then(|name| name.to_str());
    remove_dead(folder_of(target), |name| target_of(name).is_some() && target_of(name) == wanted)
}

fn remove_dead(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_wanted(&name) && is_dead(&entry.path()) && fs::remove_file(entry.path()).is_ok() {
            removed.push(name);
        }
    }
    removed.sort();
    removed
}

/// Whether the lock of a file is free.
fn is_dead(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// The name of the target of a temporary file; `None` if it is not a temporary file of this
/// library.
///
/// Version 0.1.0 wrote `.tmp-<process>-<count>`.
fn target_of(name: &str) -> Option<&str> {
    let (target, random) = name.rsplit_once(MARK)?;
    let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let is_new = random.len() == N_DIGITS && random.bytes().all(is_hex);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_old = random.split_once('-').is_some_and(|(process, count)| is_number(process) && is_number(count));
    (!target.is_empty() && (is_new || is_old)).then_some(target)
}

/// The folder of a file.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates a file beside the target, locked as long as it is open.
fn create_beside(target: &Path) -> Result<(File, PathBuf)> {
    let mut last = None;
    for _ in 0..MOST_NAMES {
        let path = beside(target);
        let file = match File::create_new(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                last = Some(error);
                continue;
            }
            Err(error) => return Err(Error::io(target, "create a file beside", &error)),
        };
        match file.try_lock() {
            // Between the two calls, another process may have removed it as a leftover.
            Ok(()) if path.exists() => return Ok((file, path)),
            Ok(()) | Err(TryLockError::WouldBlock) => {
                // This process created the file, so it may remove it.
                let _ = fs::remove_file(&path);
            }
            // A file system without locks, where nobody removes leftovers.
            Err(TryLockError::Error(_)) => return Ok((file, path)),
        }
    }
    let error = last.unwrap_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists));
    Err(Error::io(target, "create a file beside", &error))
}

/// A random name. A process id would not be unique: in a container it is always 1.
fn beside(target: &Path) -> PathBuf {
    let random = RandomState::new().build_hasher().finish();
    let mut name = target.as_os_str().to_os_string();
    name.push(format!("{MARK}{random:016x}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("estimand-temporary-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn only_files_of_dead_writers_are_removed() {
        let folder = folder("leftovers");
        let living = TemporaryFile::create(folder.join("alive.txt")).unwrap();
        let dead = [
            "checkpoint.tmp-0123456789abcdef",
            "graph.pbtxt.tmp-1-0",
            "model.ckpt-7.data-00000-of-00001.tmp-00000000000000ff",
        ];
        let others = ["notes.tmp-backup", ".tmp-0123456789abcdef", "a.tmp-0123456789ABCDEF", "a.tmp-1-", "a.txt"];
        for name in dead.iter().chain(&others) {
            fs::write(folder.join(name), b"x").unwrap();
        }
        fs::create_dir(folder.join("folder.tmp-0123456789abcdef")).unwrap();
        assert_eq!(remove_leftovers_of(&folder.join("graph.pbtxt")), ["graph.pbtxt.tmp-1-0"]);
        assert_eq!(remove_leftovers(&folder), [dead[0], dead[2]]);
        let left = names(&folder);
        assert_eq!(left.len(), others.len() + 2, "{left:?}");
        assert!(living.path.exists());
        drop(living);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn folders_are_made_from_the_top() {
        let folder = folder("folders");
        let deep = folder.join("a/b/c");
        make_folders(&deep).unwrap();
        make_folders(&deep).unwrap();
        assert!(deep.is_dir());
        fs::write(folder.join("file"), b"").unwrap();
        assert!(make_folders(&folder.join("file/d")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_do_not_repeat() {
        let target = Path::new("checkpoint");
        let all: std::collections::BTreeSet<PathBuf> = (0..1000).map(|_| beside(target)).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|path| target_of(path.to_str().unwrap()) == Some("checkpoint")), "{all:?}");
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing() {
        let folder = folder("given-up");
        let target = folder.join("a.txt");
        write_whole(&target, b"before").unwrap();
        let mut file = TemporaryFile::create(&target).unwrap();
        file.write_all(b"after").unwrap();
        drop(file);
        assert_eq!(names(&folder), ["a.txt"]);
        assert_eq!(fs::read(&target).unwrap(), b"before");
        fs::remove_dir_all(folder).unwrap();
    }
}
