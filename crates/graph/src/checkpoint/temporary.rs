//! A file that appears under its name only when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand_tensor::{Error, Result};

/// Where the bytes of a checkpoint go: a file, or in tests one whose disk fails.
pub(super) trait Disk: Write + Send {
    /// Returns once every byte is on the disk.
    fn sync(&self) -> io::Result<()>;

    /// How many bytes there are.
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

/// What stands between a new file and what is written to it.
pub(super) type Mount = fn(File) -> Box<dyn Disk>;

/// A file being written beside its target; removed again if it is dropped before [`rename`](Self::rename).
pub(super) struct TemporaryFile {
    output: BufWriter<Box<dyn Disk>>,
    path: PathBuf,
    target: PathBuf,
}

impl TemporaryFile {
    /// Starts a file that will be `target`. Folders on the way are made.
    pub(super) fn create(target: PathBuf) -> Result<TemporaryFile> {
        TemporaryFile::mounted(target, |file| Box::new(file))
    }

    /// As `create`, through something else than the file itself.
    pub(super) fn mounted(target: PathBuf, mount: Mount) -> Result<TemporaryFile> {
        fs::create_dir_all(folder_of(&target)).map_err(|e| Error::io(&target, "make the folder of", &e))?;
        let path = beside(&target);
        let file = File::create_new(&path).map_err(|e| Error::io(&path, "create", &e))?;
        Ok(TemporaryFile { output: BufWriter::with_capacity(1 << 16, mount(file)), path, target })
    }

    /// Waits until every byte is on the disk, and returns how many there are.
    pub(super) fn sync(&mut self) -> Result<u64> {
        self.output.flush().map_err(|e| self.error("write", &e))?;
        let disk = self.output.get_ref();
        disk.sync().and_then(|()| disk.byte_len()).map_err(|e| self.error("sync", &e))
    }

    /// Gives the file its name, in place of what had it. Call [`sync`](Self::sync) before, [`sync_folder`] after.
    pub(super) fn rename(self) -> Result<()> {
        // After a success there is nothing left for `drop` to remove.
        fs::rename(&self.path, &self.target).map_err(|e| self.error("rename", &e))
    }

    /// The error of a failed operation, with the name the reader knows.
    pub(super) fn error(&self, what: &str, error: &io::Error) -> Error {
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
        // Nobody can be told of a failure here, and a stray temporary file does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// A second name for the file at a path, so that what is about to be replaced can be put back. Gone when dropped.
pub(super) struct Backup {
    path: PathBuf,
    original: PathBuf,
}

impl Backup {
    /// Keeps the file, if there is one and the file system has hard links.
    pub(super) fn of(original: &Path) -> Option<Backup> {
        let path = beside(original);
        fs::hard_link(original, &path).ok()?;
        Some(Backup { path, original: original.to_path_buf() })
    }

    /// Puts the file back under its name.
    pub(super) fn restore(self) -> Result<()> {
        fs::rename(&self.path, &self.original).map_err(|e| Error::io(&self.original, "restore", &e))
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        // As for a temporary file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes the new names in a file's folder survive a power failure.
pub(super) fn sync_folder(file: &Path) -> Result<()> {
    // Only Unix lets a folder be opened and synced.
    if cfg!(unix) {
        let folder = folder_of(file);
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| Error::io(folder, "sync", &e))?;
    }
    Ok(())
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A name that no other writer has, in this process or another.
fn beside(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = target.as_os_str().to_os_string();
    name.push(format!(".tmp-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    PathBuf::from(name)
}
