//! The folder that holds the files of data sets, and fetching them into it.

use std::fmt;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result, Sha256};

use super::http;
use super::{Loaded, catalogue::Entry};
use crate::Compression;
use crate::writer::output::{Output, publish};

/// The environment variable that names the folder.
const VARIABLE: &str = "ESTIMAND_DATA";

/// A folder of data sets. The files of a set lie in a sub-folder with the set's name, or directly
/// in the folder. They may be compressed (`.gz`).
///
/// ```
/// use estimand_data::datasets::Folder;
///
/// let mnist = Folder::new("data").fetch_from("http://mirror.example/sets").load("mnist", "train[:90%]")?;
/// // Nothing is looked for or fetched before rows are needed.
/// assert_eq!(mnist.info().splits, [("train", 60_000), ("test", 10_000)]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Folder {
    path: PathBuf,
    address: Option<String>,
}

impl Folder {
    /// Creates the folder from a path. Reads nothing.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder { path: path.into(), address: None }
    }

    /// Takes the folder from the environment variable `ESTIMAND_DATA`.
    pub fn from_env() -> Result<Folder> {
        match std::env::var_os(VARIABLE) {
            Some(path) if !path.is_empty() => Ok(Folder::new(path)),
            _ => Err(Error::config(format!("{VARIABLE} is not set, which names the folder of data sets"))
                .help("set it, or use datasets::Folder::new(path).load(..)")),
        }
    }

    /// Fetches each missing file once from `address/set/file`. By default, a missing file is an
    /// error.
    ///
    /// Supports only plain `http://`. A file whose SHA-256 is known (MNIST's) is refused if it
    /// differs.
    pub fn fetch_from(mut self, address: impl Into<String>) -> Folder {
        self.address = Some(address.into());
        self
    }

    /// Like [`datasets::load`](super::load), from this folder.
    pub fn load(&self, name: &str, split: &str) -> Result<Loaded> {
        Loaded::new(name, split, || Ok(self.clone()))
    }

    /// Finds a file of a set, and fetches it if necessary.
    pub(super) fn find(&self, entry: &Entry, published: &str, digest: Option<&str>) -> Result<PathBuf> {
        let plain = published.strip_suffix(".gz").unwrap_or(published);
        for folder in [self.path.join(entry.name), self.path.clone()] {
            for name in [plain.to_string(), format!("{plain}.gz")] {
                let path = folder.join(name);
                if path.is_file() {
                    return Ok(path);
                }
            }
        }
        let path = self.path.join(entry.name).join(published);
        match &self.address {
            Some(address) => {
                fetch(&format!("{}/{}/{published}", address.trim_end_matches('/'), entry.name), &path, digest)?
            }
            None => {
                let message = format!("there is no {}, nor {plain} packed or beside it", path.display());
                return Err(Error::config(message)
                    .context(format!("looking for the data set {}", entry.name))
                    .help("put the file there, or fetch it: datasets::Folder::new(path).fetch_from(address)"));
            }
        }
        Ok(path)
    }
}

/// Fetches a file. It appears complete and verified, or not at all.
fn fetch(address: &str, path: &Path, digest: Option<&str>) -> Result<()> {
    let bytes = http::get(address)?;
    let found = Sha256::new().update(&bytes).finish();
    if let Some(expected) = digest.filter(|&expected| expected != found) {
        return Err(Error::data(format!("{address} has the SHA-256 {found}, expected {expected}"))
            .help("it is another file, or was changed on the way; nothing was kept"));
    }
    let mut output = Output::create(path, Compression::None)?;
    output.write(&bytes)?;
    publish(vec![output])?;
    Ok(())
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match &self.address {
            Some(address) => write!(f, ", fetched from {address} if missing"),
            None => Ok(()),
        }
    }
}
