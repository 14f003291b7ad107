//! The folder that holds the files of data sets, and fetching them into it.

use std::fmt;
use std::path::{Path, PathBuf};

use estimand_tensor::{BatchSpec, Error, Result};

use super::Loaded;
use super::catalogue::{Entry, Format};
use crate::Dataset;
use crate::fetch::{Checksum, Fetch};

/// The environment variable that names the folder.
const VARIABLE: &str = "ESTIMAND_DATA";

/// A format of tables that another crate reads, for [`Folder::tables`].
#[derive(Clone, Copy, Debug)]
pub struct TableFormat {
    /// How the names of its files end, after the point.
    pub extension: &'static str,
    /// The plan that reads the columns of a spec from a file.
    pub read: fn(&Path, &BatchSpec) -> Dataset,
}

/// A folder of data sets, each in a folder of its own name or directly in it, its files packed
/// (`.gz`) or not.
///
/// ```
/// use estimand_data::datasets::Folder;
///
/// let mnist = Folder::new("data").fetch_from("https://mirror.example/sets").load("mnist", "train[:90%]")?;
/// // Nothing is looked for or fetched before rows are needed.
/// assert_eq!(mnist.info().splits, [("train", 60_000), ("test", 10_000)]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Folder {
    path: PathBuf,
    address: Option<String>,
    certificates: Option<PathBuf>,
    tables: Vec<TableFormat>,
}

impl Folder {
    /// Creates the folder from a path. Reads nothing.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder { path: path.into(), address: None, certificates: None, tables: Vec::new() }
    }

    /// Takes the folder from the environment variable `ESTIMAND_DATA`.
    pub fn from_env() -> Result<Folder> {
        match std::env::var_os(VARIABLE) {
            Some(path) if !path.is_empty() => Ok(Folder::new(path)),
            _ => Err(Error::config(format!(
                "the environment variable {VARIABLE} is not set; it names the folder of data sets"
            ))
            .help("set it, or name the folder with datasets::Folder::new(path).load(..)")),
        }
    }

    /// Fetches each missing file once from `address/set/file`. By default, a missing file is an
    /// error.
    ///
    /// Needs the feature `download`, which is off by default. The address begins with `https://`,
    /// or with `http://` for a server on this machine. A file appears in the folder when all of it
    /// is on the disk. One whose SHA-256 is known (MNIST's) is refused if it has another.
    pub fn fetch_from(mut self, address: impl Into<String>) -> Folder {
        self.address = Some(address.into());
        self
    }

    /// Trusts only servers that an authority of this PEM file knows, such as that of a company. By
    /// default, the authorities that Mozilla trusts.
    pub fn certificates(mut self, path: impl Into<PathBuf>) -> Folder {
        self.certificates = Some(path.into());
        self
    }

    /// Reads tables of this format too, where there is no CSV file. By default, CSV alone.
    ///
    /// `estimand_data_parquet::parquet::TABLES` is the format of Parquet files.
    pub fn tables(mut self, format: TableFormat) -> Folder {
        self.tables.push(format);
        self
    }

    /// As [`datasets::load`](super::load), from this folder.
    pub fn load(&self, name: &str, split: &str) -> Result<Loaded> {
        Loaded::new(name, split, || Ok(self.clone()))
    }

    /// Finds a file of a set, and fetches it if necessary.
    pub(super) fn find(&self, entry: &Entry, published: &str, digest: Option<&str>) -> Result<PathBuf> {
        let plain = published.strip_suffix(".gz").unwrap_or(published);
        let mut names = vec![plain.to_string(), format!("{plain}.gz")];
        if entry.format == Format::Table {
            names.extend(self.tables.iter().map(|format| with_extension(plain, format.extension)));
        }
        if let Some(path) = names.iter().find_map(|name| self.existing(entry, name)) {
            return Ok(path);
        }
        let path = self.path.join(entry.name).join(published);
        if let Some(address) = &self.address {
            let address = format!("{}/{}/{published}", address.trim_end_matches('/'), entry.name);
            let mut file = Fetch::new(address);
            if let Some(certificates) = &self.certificates {
                file = file.certificates(certificates);
            }
            if let Some(digest) = digest {
                file = file.checksum(Checksum::Sha256(digest.to_string()));
            }
            file.to(&path)?;
            return Ok(path);
        }
        let message = format!(
            "there is no file {}; `{plain}` was not found in its folder or the folder above, packed or not",
            path.display()
        );
        let error = Error::config(message).context(format!("while looking for the data set {}", entry.name));
        match self.existing(entry, &with_extension(plain, "parquet")) {
            Some(parquet) if entry.format == Format::Table => Err(error.help(format!(
                "{} exists: read it with the crate estimand-data-parquet and Folder::tables(parquet::TABLES)",
                parquet.display()
            ))),
            _ => {
                Err(error.help("put the file there, or fetch it with datasets::Folder::new(path).fetch_from(address)"))
            }
        }
    }

    /// A file of this name in the folder of a set, or beside that.
    fn existing(&self, entry: &Entry, name: &str) -> Option<PathBuf> {
        [self.path.join(entry.name), self.path.clone()]
            .iter()
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
    }

    /// The format of a table, unless it is CSV.
    pub(super) fn format_of(&self, path: &Path) -> Option<TableFormat> {
        let extension = path.extension()?;
        self.tables.iter().find(|format| extension == format.extension).copied()
    }
}

/// The name of a CSV file in another format.
fn with_extension(csv: &str, extension: &str) -> String {
    format!("{}.{extension}", csv.strip_suffix(".csv").unwrap_or(csv))
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
