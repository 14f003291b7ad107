//! The folder of Keras' published files, and fetching them into it.

use std::path::PathBuf;

use estimand_data::fetch::{Checksum, Fetch};
use estimand_tensor::{Error, Result};

/// A folder of files that Keras publishes: weights, and the names of ImageNet's classes. A file
/// that is missing is fetched, if the crate was built with the feature `download`.
///
/// ```
/// use estimand::keras::applications::{self, Cache, Weights};
///
/// let mirror = Cache::new("models").fetch_from("https://mirror.example/keras");
/// let network = applications::resnet50().weights(Weights::ImageNet).cache(mirror);
/// ```
#[derive(Clone, Default, Debug)]
#[must_use]
pub struct Cache {
    folder: Option<PathBuf>,
    address: Option<String>,
    certificates: Option<PathBuf>,
}

impl Cache {
    /// A folder. The default one is Keras' own, `~/.keras/models`.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: Some(folder.into()), ..Cache::default() }
    }

    /// Fetches missing files from `address/file`. By default, from where Keras publishes them.
    ///
    /// The address begins with `https://`, or with `http://` for a server on this machine.
    pub fn fetch_from(mut self, address: impl Into<String>) -> Cache {
        self.address = Some(address.into());
        self
    }

    /// Trusts only servers that an authority of this PEM file knows. By default, the authorities
    /// that Mozilla trusts.
    pub fn certificates(mut self, path: impl Into<PathBuf>) -> Cache {
        self.certificates = Some(path.into());
        self
    }

    /// The path of a file, which is fetched if it is missing, and checked.
    pub(super) fn find(&self, name: &str, published: &str, checksum: Option<&Checksum>) -> Result<PathBuf> {
        let path = self.folder()?.join(name);
        let mut file = match &self.address {
            Some(address) => Fetch::new(format!("{}/{name}", address.trim_end_matches('/'))),
            None => Fetch::new(published),
        };
        if let Some(certificates) = &self.certificates {
            file = file.certificates(certificates);
        }
        if let Some(checksum) = checksum {
            file = file.checksum(checksum.clone());
        }
        file.to(&path)?;
        Ok(path)
    }

    fn folder(&self) -> Result<PathBuf> {
        let home =
            || std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).filter(|home| !home.is_empty());
        match (&self.folder, home()) {
            (Some(folder), _) => Ok(folder.clone()),
            (None, Some(home)) => Ok(PathBuf::from(home).join(".keras").join("models")),
            (None, None) => Err(Error::config("there is no home folder to keep Keras' files in")
                .help("name a folder with .cache(Cache::new(folder))")),
        }
    }
}
