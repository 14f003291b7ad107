//! The files of a source: their paths and patterns, their compression, and the handling of bad
//! rows.
//!
//! `chunk.rs` cuts files into whole records. `stream.rs` parses the records in threads and yields
//! rows. A format finds the records and parses them.

pub(crate) mod ceiling;
pub(crate) mod chunk;
mod compression;
mod quarantine;
pub(crate) mod stream;

pub use compression::Compression;
pub use quarantine::OnError;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_tensor::cpu::text::fingerprint64;
use estimand_tensor::random::{self, Key};
use estimand_tensor::{Error, Limits, Result};

use crate::stage::InputContext;
use crate::told::Told;
use ceiling::read_error;

/// Files given by a path, a list of paths, or a pattern (`data/train-*.csv`), read one after
/// another.
///
/// A pattern stands for the files that match it when reading begins, sorted by name. Functions that
/// take `Files` also take a path or a list of paths.
///
/// ```
/// use estimand_data::{Compression, Files};
///
/// let files = Files::new(["a.tfrecord", "more/*.tfrecord"]).compression(Compression::Gzip);
/// assert_eq!(files.to_string(), "a.tfrecord and 1 more");
/// assert!(Files::new("no/such/folder/*.csv").resolve().is_err());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Files {
    patterns: Arc<[PathBuf]>,
    compression: Option<Compression>,
    on_error: OnError,
    shuffled: Option<u64>,
    by_worker: bool,
    buffer_size: usize,
    limits: Limits,
    /// Whether the warning about rows that were left out was given.
    told: Told,
}

/// Large enough to keep a thread busy, small enough for its cache.
const BUFFER: usize = 512 << 10;

impl Files {
    /// Creates the list of files from a path, a pattern, or a list of them.
    pub fn new(patterns: impl Into<Files>) -> Files {
        patterns.into()
    }

    /// The compression of every file. By default, it follows from each file's extension: `.gz`,
    /// `.zlib`, `.zst`, or none.
    pub fn compression(mut self, compression: Compression) -> Files {
        self.compression = Some(compression);
        self
    }

    /// The number of bytes that are read at a time and parsed by one thread. By default, 512 KiB.
    /// It does not affect the rows.
    pub fn buffer_size(mut self, bytes: usize) -> Files {
        self.buffer_size = bytes.max(1);
        self
    }

    /// The limits for one file: how far compressed bytes may grow, and how long rows and records
    /// may be. By default, [`Limits::default`], which is more than real data needs.
    pub fn limits(mut self, limits: Limits) -> Files {
        self.limits = limits;
        self
    }

    /// The handling of a row that cannot be read. By default, it ends the reading with an error.
    pub fn on_error(mut self, on_error: OnError) -> Files {
        self.on_error = on_error;
        self.told = Told::default();
        self
    }

    /// Reads the files in a random order that depends on `seed`, the run's seed and the epoch. By
    /// default, files are read in the given order.
    pub fn shuffle(mut self, seed: u64) -> Files {
        self.shuffled = Some(seed);
        self
    }

    /// Divides the files among the workers: worker w reads the files whose number, counted in the
    /// order of reading, is w modulo the number of workers.
    ///
    /// Each worker reads fewer bytes than with
    /// [`Dataset::shard_by_worker`](crate::Dataset::shard_by_worker), which divides rows. But
    /// workers have different positions and may run out of rows at different times, and their
    /// number cannot change when reading resumes.
    pub fn shard_by_worker(mut self) -> Files {
        self.by_worker = true;
        self
    }

    /// The compression of a file.
    pub fn compression_of(&self, path: &Path) -> Compression {
        self.compression.unwrap_or_else(|| Compression::of(path))
    }

    /// Looks up the patterns and returns the paths, at least one. A pattern without a match is an
    /// error.
    pub fn resolve(&self) -> Result<Arc<[PathBuf]>> {
        if self.patterns.is_empty() {
            return Err(Error::config("the list of files is empty").help("name at least one path"));
        }
        let mut paths = Vec::new();
        for pattern in &*self.patterns {
            match pattern.to_str().filter(|text| is_pattern(text) && !pattern.exists()) {
                None => paths.push(pattern.clone()),
                Some(text) => paths.extend(matches(text)?),
            }
        }
        Ok(paths.into())
    }

    /// The paths in the order in which a reader with this context reads them.
    pub fn order(&self, cx: &InputContext) -> Result<Arc<[PathBuf]>> {
        let mut paths = self.resolve()?;
        let n = paths.len();
        if let Some(seed) = self.shuffled {
            let order = random::Stream::new(Key::new(cx.seed, &format!("files/{seed}")), cx.epoch);
            paths = (0..n).map(|i| paths[order.permute(i as u64, n as u64) as usize].clone()).collect();
        }
        if self.by_worker && cx.n_workers > 1 {
            if n < cx.n_workers {
                return Err(Error::config(format!(
                    "there are {n} files for {} workers; each worker needs at least one",
                    cx.n_workers
                ))
                .help("shard the rows instead of the files"));
            }
            paths = paths.iter().skip(cx.worker).step_by(cx.n_workers).cloned().collect();
        }
        Ok(paths)
    }

    /// Whether the files are read in another order in every epoch.
    pub fn is_shuffled(&self) -> bool {
        self.shuffled.is_some()
    }

    /// The handling of rows that cannot be read.
    pub fn policy(&self) -> &OnError {
        &self.on_error
    }

    /// The limits for one file.
    pub fn reading_limits(&self) -> &Limits {
        &self.limits
    }

    /// The number of bytes that are read at a time.
    pub fn piece_size(&self) -> usize {
        self.buffer_size
    }

    /// All that decides the rows that a reader with this context gets, except the text of
    /// [`describe`](Files::describe).
    pub fn identity(&self, cx: &InputContext) -> String {
        let seed = if self.shuffled.is_some() { format!(", in a run of seed {}", cx.seed) } else { String::new() };
        let worker = if self.by_worker { format!(", worker {} of {}", cx.worker, cx.n_workers) } else { String::new() };
        // The description names only the first of several files.
        let all: Vec<u8> =
            self.patterns.iter().flat_map(|path| [path.as_os_str().as_encoded_bytes(), b"\0"].concat()).collect();
        format!(", paths {:016x}{seed}{worker}", fingerprint64(&all))
    }

    /// The text about these files in `explain()`.
    pub fn describe(&self) -> String {
        let mut text = self.to_string();
        if let Some(seed) = self.shuffled {
            text += &format!(", files shuffled (seed {seed})");
        }
        if self.by_worker {
            text += ", files shared among workers: their number cannot change";
        }
        let packed = self.compression.is_some_and(|c| c != Compression::None)
            || (self.compression.is_none() && self.patterns.iter().any(|p| Compression::of(p) != Compression::None));
        if packed {
            text += "; going on unpacks the file up to its place";
        }
        match &self.on_error {
            OnError::Fail => {}
            OnError::Skip => text += "; bad rows are left out",
            OnError::Quarantine { file, budget } => {
                text += &format!("; up to {budget} bad rows to {}", file.display());
            }
        }
        text
    }

    /// Opens the decompressed bytes of a file from `offset` on.
    pub fn open(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        self.compression_of(path).open_within(path, offset, self.limits)
    }

    /// Reads all decompressed bytes of a file. There may be at most [`Limits::unpacked_bytes`],
    /// unless the file itself is as long.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "open", &e))?;
        let is_plain = metadata.is_file() && self.compression_of(path) == Compression::None;
        let (limit, expected) = if is_plain { (u64::MAX, metadata.len()) } else { (self.limits.unpacked_bytes, 0) };
        let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
        let mut reader = self.open(path, 0)?.take(limit.saturating_add(1));
        reader.read_to_end(&mut bytes).map_err(|e| read_error(path, &e))?;
        if bytes.len() as u64 > limit {
            let error =
                Limits::exceeded("unpacked_bytes", limit, format!("the file unpacks to more than {limit} bytes"));
            return Err(error.in_file(path));
        }
        Ok(bytes)
    }

    /// Returns the path, for readers of exactly one file.
    pub(crate) fn only(&self) -> Result<PathBuf> {
        match &*self.resolve()? {
            [path] => Ok(path.clone()),
            paths => Err(Error::config(format!("{} files were given; expected one", paths.len()))
                .help("read each file as a dataset, and join them with `concatenate`")),
        }
    }
}

/// The bytes that some programs write at the beginning of a text file.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The number of the line that begins at byte `offset` of a text file. It is counted only when a
/// message needs it.
pub(crate) fn line_place(files: &Files, path: &Path, offset: u64) -> String {
    let count = || {
        let mut reader = files.open(path, 0).ok()?.take(offset);
        let (mut n, mut after_cr, mut buffer) = (1, false, vec![0; 64 << 10]);
        loop {
            let n_read = reader.read(&mut buffer).ok()?;
            if n_read == 0 {
                return Some(n);
            }
            // `\r\n` counts as one line end.
            for &byte in &buffer[..n_read] {
                n += usize::from(byte == b'\r' || (byte == b'\n' && !after_cr));
                after_cr = byte == b'\r';
            }
        }
    };
    match count() {
        Some(line) => format!("line {line}"),
        None => format!("at byte {offset}"),
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>> {
    let found = glob::glob(pattern).map_err(|e| {
        Error::config(format!("`{pattern}` is not a valid file pattern: {}, at character {}", e.msg, e.pos + 1))
    })?;
    let mut paths = Vec::new();
    for path in found {
        let path = path.map_err(|e| Error::io(e.path(), "list", e.error()))?;
        if !path.is_dir() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(Error::config(format!("no file matches `{pattern}`"))
            .help("check the folder and the pattern; `*` matches names in one folder, `**` also matches folders"));
    }
    paths.sort();
    Ok(paths)
}

/// The first path, and the number of the others.
impl std::fmt::Display for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.patterns {
            [] => f.write_str("no file"),
            [path] => write!(f, "{}", path.display()),
            [first, rest @ ..] => write!(f, "{} and {} more", first.display(), rest.len()),
        }
    }
}

impl From<Vec<PathBuf>> for Files {
    fn from(paths: Vec<PathBuf>) -> Files {
        Files {
            patterns: paths.into(),
            compression: None,
            on_error: OnError::Fail,
            shuffled: None,
            by_worker: false,
            buffer_size: BUFFER,
            limits: Limits::default(),
            told: Told::default(),
        }
    }
}

macro_rules! one_path {
    ($($t:ty),*) => {$(
        impl From<$t> for Files {
            fn from(path: $t) -> Files {
                vec![PathBuf::from(path)].into()
            }
        }
    )*};
}
one_path!(&str, &String, String, &Path, &PathBuf, PathBuf);

impl<P: Into<PathBuf>, const N: usize> From<[P; N]> for Files {
    fn from(paths: [P; N]) -> Files {
        paths.into_iter().map(Into::into).collect::<Vec<PathBuf>>().into()
    }
}

macro_rules! lists {
    ($($t:ty),*) => {$(
        impl From<Vec<$t>> for Files {
            fn from(paths: Vec<$t>) -> Files {
                paths.into_iter().map(PathBuf::from).collect::<Vec<PathBuf>>().into()
            }
        }
        impl From<&[$t]> for Files {
            fn from(paths: &[$t]) -> Files {
                paths.iter().map(PathBuf::from).collect::<Vec<PathBuf>>().into()
            }
        }
    )*};
}
lists!(&str, String);

impl From<&[PathBuf]> for Files {
    fn from(paths: &[PathBuf]) -> Files {
        paths.to_vec().into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("estimand-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("deep.csv")).unwrap();
        folder
    }

    #[test]
    fn patterns_are_files_in_the_order_of_their_names() {
        let folder = folder("patterns");
        for name in ["b.csv", "a.csv", "c.txt", "[x].csv"] {
            std::fs::write(folder.join(name), name).unwrap();
        }
        let names = |files: Files| -> Vec<String> {
            files.resolve().unwrap().iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_string()).collect()
        };
        assert_eq!(names(folder.join("*.csv").into()), ["[x].csv", "a.csv", "b.csv"], "no folder among them");
        assert_eq!(
            names([folder.join("[x].csv"), folder.join("?.txt")].into()),
            ["[x].csv", "c.txt"],
            "a file as it is"
        );
        let error = Files::new(folder.join("*.json")).resolve().unwrap_err().to_string();
        assert!(error.contains("no file matches") && error.contains("*.json"), "{error}");
        assert!(
            Files::new(folder.join("a[.csv")).resolve().unwrap_err().to_string().contains("not a valid file pattern")
        );
        assert!(Files::new(Vec::<String>::new()).resolve().unwrap_err().to_string().contains("list of files is empty"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn packed_files_are_unpacked_from_any_byte_on() {
        let folder = folder("packed");
        let text: Vec<u8> = (0..100_000u32).flat_map(|i| i.to_string().into_bytes()).collect();
        let level = flate2::Compression::fast();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
        gzip.write_all(&text[..1000]).unwrap();
        let mut packed = gzip.finish().unwrap();
        let mut second = flate2::write::GzEncoder::new(Vec::new(), level);
        second.write_all(&text[1000..]).unwrap();
        packed.extend(second.finish().unwrap());
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
        zlib.write_all(&text).unwrap();
        let zstd = |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
        let zstd = [zstd(&text[..5000]), zstd(&text[5000..])].concat();
        for (name, bytes) in
            [("x", text.clone()), ("x.gz", packed), ("x.zlib", zlib.finish().unwrap()), ("x.zst", zstd)]
        {
            let path = folder.join(name);
            std::fs::write(&path, &bytes).unwrap();
            let files = Files::new(&path);
            assert!(files.read(&path).unwrap() == text, "{name}");
            for offset in [1, 4_999, 5_001, text.len() - 1, text.len()] {
                let mut rest = Vec::new();
                files.open(&path, offset as u64).unwrap().read_to_end(&mut rest).unwrap();
                assert!(rest == text[offset..], "{name} from {offset}");
            }
            let error = files.open(&path, text.len() as u64 + 1).err().unwrap().to_string();
            assert!(error.contains("at byte 488891 of") && error.contains("but the file has 488890 bytes"), "{error}");
            if name != "x" {
                // Truncated, and not compressed at all.
                std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
                let error = files.read(&path).unwrap_err().to_string();
                assert!(error.contains("cannot read") && error.contains(name), "{error}");
                std::fs::write(&path, b"plain text").unwrap();
                assert!(files.read(&path).is_err());
                assert_eq!(files.compression(Compression::None).read(&path).unwrap(), b"plain text");
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
