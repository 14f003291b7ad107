//! [`Limits`]: how much of the size that a file claims a reader accepts.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::{Error, ErrorKind, Result};

/// Limits on the resources that a reader spends on one file.
///
/// A small file can demand a lot: packed bytes that grow a thousand times, a directory that lists
/// the same bytes many times, a line without end. Every reader stops at these limits with an error
/// that names the limit, the value found, and how to raise the limit. The defaults are beyond the
/// needs of real data; raise one if a file that you trust has more.
///
/// ```
/// use estimand_tensor::Limits;
///
/// let limits = Limits { columns: 4_000_000, ..Limits::default() };
/// assert_eq!(limits.ratio, Limits::default().ratio);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of a packed file after unpacking, or of a file of unknown length, if it is read
    /// whole into memory. By default, 64 GiB.
    ///
    /// Streams (CSV, text, TFRecord) may be longer, since only the current piece is in memory.
    pub unpacked_bytes: u64,
    /// The number of bytes that one packed byte may become, counted over the file so far, beyond
    /// [`free_bytes`](Limits::free_bytes). By default, 500. Text packs 5 to 50 times; deflate
    /// cannot pack more than 1,032 times, zstd 32,768 times.
    pub ratio: u64,
    /// The number of unpacked bytes that are exempt from the ratio. By default, 256 MiB: arrays of
    /// zeros are no attack.
    pub free_bytes: u64,
    /// The number of members of an archive, or of tensors in the index of a checkpoint. By default,
    /// 1,048,576.
    pub entries: usize,
    /// The number of columns of a CSV file. By default, 2,097,152.
    pub columns: usize,
    /// The number of bytes of one CSV field, or of one line of a vocabulary. By default, 64 MiB.
    pub field_bytes: usize,
    /// The number of bytes of one row of a CSV file or one line of a text file. By default, 256
    /// MiB; never more than 2 GiB.
    pub line_bytes: usize,
    /// The number of bytes of one record of a TFRecord or event file, or of one protobuf message
    /// (SavedModel). By default, 2 GiB, the maximum of protobuf.
    pub record_bytes: usize,
    /// The number of bytes of a text that is parsed whole: the schema of a dataset, the state of
    /// checkpoints. By default, 256 MiB.
    pub text_bytes: u64,
    /// The number of pixels of one image. By default, 268,435,456: 16,384 by 16,384.
    pub pixels: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            unpacked_bytes: 64 << 30,
            ratio: 500,
            free_bytes: 256 << 20,
            entries: 1 << 20,
            columns: 1 << 21,
            field_bytes: 64 << 20,
            line_bytes: 256 << 20,
            record_bytes: 2 << 30,
            text_bytes: 256 << 20,
            pixels: 1 << 28,
        }
    }
}

impl Limits {
    /// The error for a file that exceeds a limit. `found` describes the file's content; `field` and
    /// `limit` are the name and the value of the limit.
    pub fn exceeded(field: &str, limit: u64, found: impl Into<String>) -> Error {
        Error::data(format!("{}; the limit is {limit} (`{field}`)", found.into())).help(Limits::remedy(field))
    }

    /// The help text on how to raise a limit.
    pub fn remedy(field: &str) -> String {
        format!("if you trust the file, raise the limit: `Limits {{ {field}: .., ..Limits::default() }}`")
    }

    /// Refuses to unpack `packed` bytes to `unpacked` bytes if [`ratio`](Limits::ratio) does not
    /// allow it.
    pub fn check_ratio(&self, unpacked: u64, packed: u64) -> Result<()> {
        if unpacked <= self.free_bytes.max(packed.saturating_mul(self.ratio)) {
            return Ok(());
        }
        let times = unpacked / packed.max(1);
        let found = format!("{packed} packed bytes unpack to {unpacked} bytes or more, {times} times as many");
        Err(Limits::exceeded("ratio", self.ratio, found))
    }

    /// Refuses to hold more bytes than [`unpacked_bytes`](Limits::unpacked_bytes).
    pub fn check_unpacked(&self, bytes: u64, what: &str) -> Result<()> {
        if bytes <= self.unpacked_bytes {
            return Ok(());
        }
        Err(Limits::exceeded("unpacked_bytes", self.unpacked_bytes, format!("{what} unpack to {bytes} bytes")))
    }

    /// Refuses a list longer than [`entries`](Limits::entries).
    pub fn check_entries(&self, n: usize, what: &str) -> Result<()> {
        if n <= self.entries {
            return Ok(());
        }
        Err(Limits::exceeded("entries", self.entries as u64, format!("there are {n} {what}")))
    }

    /// Reads a text file of at most [`text_bytes`](Limits::text_bytes).
    pub fn read_text(&self, path: &Path) -> Result<Vec<u8>> {
        read(path, "text_bytes", self.text_bytes)
    }

    /// Reads a file that holds one message, of at most [`record_bytes`](Limits::record_bytes).
    pub fn read_message(&self, path: &Path) -> Result<Vec<u8>> {
        read(path, "record_bytes", self.record_bytes as u64)
    }
}

/// Reads a file after checking its size. A file that grows meanwhile, or a device, is cut off at
/// the limit.
fn read(path: &Path, field: &str, limit: u64) -> Result<Vec<u8>> {
    let failed = |e| Error::io(path, "read", &e);
    let too_large = |n: String| {
        let found = format!("{} has {n} bytes", path.display());
        let error = Limits::exceeded(field, limit, found);
        Error::new(ErrorKind::Data { path: Some(path.to_path_buf()), row: None, column: None }, error.message())
            .help(Limits::remedy(field))
    };
    let length = fs::metadata(path).map_err(failed)?.len();
    if length > limit {
        return Err(too_large(length.to_string()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    File::open(path).map_err(failed)?.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(format!("more than {limit}")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_counts_beyond_the_free_bytes() {
        let limits = Limits { free_bytes: 1000, ratio: 10, ..Limits::default() };
        // 1,000 bytes are free; 200 packed bytes may become 2,000.
        assert!(limits.check_ratio(1000, 0).is_ok());
        assert!(limits.check_ratio(2000, 200).is_ok());
        let error = limits.check_ratio(2001, 200).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "200 packed bytes unpack to 2001 bytes or more, 10 times as many; the limit is 10 (`ratio`)"
            )
        );
        assert!(error.contains("help: if you trust the file") && error.contains("Limits { ratio: .."), "{error}");
        assert!(limits.check_ratio(1001, 0).is_err());
        assert!(Limits { ratio: u64::MAX, ..limits }.check_ratio(u64::MAX, 2).is_ok());
    }

    #[test]
    fn a_device_ends_at_the_limit() {
        let limits = Limits { text_bytes: 100, record_bytes: 10, ..Limits::default() };
        if cfg!(target_os = "linux") {
            let error = limits.read_text(Path::new("/dev/zero")).unwrap_err().to_string();
            assert!(error.contains("/dev/zero has more than 100 bytes; the limit is 100 (`text_bytes`)"), "{error}");
        }
        let path = std::env::temp_dir().join(format!("estimand-limits-{}", std::process::id()));
        fs::write(&path, [7; 11]).unwrap();
        assert_eq!(limits.read_text(&path).unwrap(), [7; 11]);
        assert!(limits.read_message(&path).unwrap_err().to_string().contains("has 11 bytes; the limit is 10"));
        fs::remove_file(&path).unwrap();
    }
}
