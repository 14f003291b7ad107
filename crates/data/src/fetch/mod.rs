//! Single files: fetched over https once, checked, and found again.
//!
//! `download.rs` speaks with servers, `md5.rs` computes the checksums that Keras publishes.

#[cfg(feature = "download")]
mod download;
mod md5;

use std::io::Read;
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result, Sha256};

use md5::Md5;

/// The checksum of a file, as hexadecimal digits in lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// SHA-256.
    Sha256(String),
    /// MD5, which finds damage, but not a file that someone made to have it.
    Md5(String),
}

/// A file at an address.
///
/// ```no_run
/// use estimand_data::fetch::{Checksum, Fetch};
///
/// let file = Fetch::new("https://example.org/a.h5").checksum(Checksum::Md5("900150983cd24fb0d6963f7d28e17f72".into()));
/// file.to("models/a.h5")?; // at the next time, the file is there
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Fetch {
    address: String,
    certificates: Option<PathBuf>,
    checksum: Option<Checksum>,
}

impl Fetch {
    /// The address begins with `https://`, or with `http://` for a server on this machine.
    pub fn new(address: impl Into<String>) -> Fetch {
        Fetch { address: address.into(), certificates: None, checksum: None }
    }

    /// Trusts only servers that an authority of this PEM file knows. By default, the authorities
    /// that Mozilla trusts.
    pub fn certificates(mut self, path: impl Into<PathBuf>) -> Fetch {
        self.certificates = Some(path.into());
        self
    }

    /// The checksum that the file must have. By default it is not checked.
    pub fn checksum(mut self, checksum: Checksum) -> Fetch {
        self.checksum = Some(checksum);
        self
    }

    /// Fetches the file to a path, unless it is there. It appears whole and checked, or not at all.
    /// A file that is there with another checksum is an error.
    ///
    /// Fetching needs the feature `download`, which is off by default.
    pub fn to(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if !path.is_file() {
            return self.download(path);
        }
        let Some(expected) = &self.checksum else { return Ok(()) };
        let found = expected.of(path)?;
        if found == expected.digits() {
            return Ok(());
        }
        Err(Error::data(format!("the file has the {} {found}; expected {}", expected.name(), expected.digits()))
            .in_file(path)
            .help(format!("it is not the file at {}: remove it, so that it is fetched again", self.address)))
    }

    #[cfg(feature = "download")]
    fn download(&self, path: &Path) -> Result<()> {
        use crate::Compression;
        use crate::writer::output::{Output, publish};

        let sink = || Ok(Checked { output: Output::create(path, Compression::None)?, md5: Md5::new() });
        let (sink, sha256) = download::get(&self.address, self.certificates.as_deref(), sink)?;
        let found = match &self.checksum {
            Some(Checksum::Md5(_)) => sink.md5.finish(),
            Some(Checksum::Sha256(_)) | None => sha256,
        };
        if let Some(expected) = self.checksum.as_ref().filter(|expected| expected.digits() != found) {
            let (name, digits) = (expected.name(), expected.digits());
            return Err(Error::data(format!("the file at {} has the {name} {found}; expected {digits}", self.address))
                .help("check the address: the server sent another or a changed file, which was not kept"));
        }
        publish(vec![sink.output])?;
        Ok(())
    }

    /// Says how to get the file.
    #[cfg(not(feature = "download"))]
    fn download(&self, path: &Path) -> Result<()> {
        let address = &self.address;
        Err(Error::unsupported(format!(
            "cannot fetch {address}: this program was built without the feature `download`"
        ))
        .help(format!("turn it on in Cargo.toml (features = [\"download\"]), or put the file at {}", path.display())))
    }
}

/// A file that is written, and its MD5.
#[cfg(feature = "download")]
struct Checked {
    output: crate::writer::output::Output,
    md5: Md5,
}

#[cfg(feature = "download")]
impl std::io::Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = std::io::Write::write(&mut self.output, bytes)?;
        self.md5.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.output.flush()
    }
}

impl Checksum {
    fn name(&self) -> &'static str {
        match self {
            Checksum::Sha256(_) => "SHA-256",
            Checksum::Md5(_) => "MD5",
        }
    }

    fn digits(&self) -> &str {
        match self {
            Checksum::Sha256(digits) | Checksum::Md5(digits) => digits,
        }
    }

    /// The checksum of this kind that a file has.
    fn of(&self, path: &Path) -> Result<String> {
        let failed = |e: std::io::Error| Error::io(path, "read", &e);
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let mut buffer = vec![0; 1 << 16];
        let (mut md5, mut sha256) = (Md5::new(), Sha256::new());
        loop {
            let n = file.read(&mut buffer).map_err(failed)?;
            match self {
                Checksum::Md5(_) if n == 0 => return Ok(md5.finish()),
                Checksum::Sha256(_) if n == 0 => return Ok(sha256.finish()),
                Checksum::Md5(_) => md5.update(&buffer[..n]),
                Checksum::Sha256(_) => sha256 = sha256.update(&buffer[..n]),
            }
        }
    }
}
