//! [`File`]: an opened file.

use std::fmt;
use std::path::Path;

use estimand_tensor::{Error, Limits, Result};

use super::budget::Budget;
use super::heap::Heaps;
use super::node::{Group, Place};
use super::source::Source;
use super::superblock;
use super::tree::{self, Kind, Object};

/// An opened HDF5 file.
///
/// All names are in memory, and so are the variable-length strings that were read; the values of
/// datasets are read when they are asked for. Any number of threads may read at the same time.
pub struct File {
    pub(super) source: Source,
    pub(super) objects: Vec<Object>,
    pub(super) limits: Limits,
    pub(super) heaps: Heaps,
    pub(super) budget: Budget,
}

impl File {
    /// Opens a file on disk.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<File> {
        let path = path.as_ref();
        File::new(Source::open(path)?, limits).map_err(|error| error.context(format!("in {}", path.display())))
    }

    /// Opens a file in memory, such as a member of an archive.
    pub fn from_bytes(bytes: Vec<u8>, limits: &Limits) -> Result<File> {
        File::new(Source::from_bytes(bytes), limits)
    }

    fn new(mut source: Source, limits: &Limits) -> Result<File> {
        let root = superblock::read(&mut source)?;
        let objects = tree::read(&source, root, limits)?;
        match &objects[0].kind {
            Kind::Group(_) => {
                Ok(File { source, objects, limits: *limits, heaps: Heaps::default(), budget: Budget::default() })
            }
            Kind::Dataset => Err(Error::data("the root of the file is a dataset, expected a group")),
            Kind::Unread(error) => Err(error.clone().context("in the root of the file")),
        }
    }

    /// The group `/`.
    pub fn root(&self) -> Group<'_> {
        Group { place: Place { file: self, object: 0, path: "/".to_string() } }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({} objects in {} bytes)", self.objects.len(), self.source.len())
    }
}
