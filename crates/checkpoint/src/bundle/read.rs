//! Reads a bundle: the index at once, each tensor on request.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use estimand_tensor::{Array, DType, Dims, Element, Error, Limits, Result};
use estimand_wire::bundle::BundleEntryProto;
use estimand_wire::crc::Crc;

use super::index::{BundleIndex, count, spec};
use super::slice::{self, Region};
use super::{checksum, data_path, index_path, strings};

/// The number of bytes converted at a time: enough to be fast, and small compared with a tensor.
const CHUNK: usize = 64 << 10;

/// An open checkpoint. Its files stay open, so a trainer that removes an old checkpoint does not
/// disturb its readers.
pub struct BundleReader {
    prefix: PathBuf,
    index: BundleIndex,
    shards: Vec<Shard>,
}

/// An open data file.
struct Shard {
    path: PathBuf,
    len: u64,
    file: Mutex<File>,
}

impl Shard {
    fn open(path: PathBuf) -> Result<Shard> {
        let error = |e| Error::io(&path, "read", &e);
        let file = File::open(&path).map_err(error)?;
        let len = file.metadata().map_err(error)?.len();
        Ok(Shard { path, len, file: Mutex::new(file) })
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

impl BundleReader {
    /// Opens the checkpoint with this prefix, such as `model/model.ckpt-100`, and reads its index.
    ///
    /// The default [`Limits`] apply.
    pub fn open(prefix: impl AsRef<Path>) -> Result<BundleReader> {
        BundleReader::open_within(prefix, &Limits::default())
    }

    /// Opens a checkpoint with at most [`Limits::entries`] tensors, and reads its index.
    pub fn open_within(prefix: impl AsRef<Path>, limits: &Limits) -> Result<BundleReader> {
        let prefix = prefix.as_ref();
        let path = index_path(prefix);
        let bytes = fs::read(&path).map_err(|e| {
            Error::io(&path, "read", &e).help("name a checkpoint by its prefix, such as model.ckpt-100, without .index")
        })?;
        let index = BundleIndex::parse_within(&path, &bytes, limits)?;
        let shards = (0..index.n_shards)
            .map(|shard| Shard::open(data_path(prefix, shard, index.n_shards)))
            .collect::<Result<_>>()?;
        check_apart(&index).map_err(|message| Error::checkpoint(&path, message))?;
        Ok(BundleReader { prefix: prefix.to_path_buf(), index, shards })
    }

    /// The common prefix of its files' names.
    pub(super) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.index.names()
    }

    /// Whether there is a tensor with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.index.tensors.contains_key(name)
    }

    /// The element type and sizes of a tensor. An error if there is none, or if an [`Array`] cannot
    /// hold it.
    pub fn spec(&self, name: &str) -> Result<(DType, Dims)> {
        spec(self.entry(name)?).map_err(|message| self.damaged(name, message))
    }

    /// Reads a tensor and verifies its checksum.
    pub fn read(&self, name: &str) -> Result<Array> {
        let entry = self.entry(name)?;
        let array = match entry.slices.as_slice() {
            [] => self.read_entry(entry),
            _ => self.read_partitioned(name, entry),
        };
        array.map_err(|message| self.damaged(name, message))
    }

    /// Reads the bytes of a tensor a piece at a time, verifies their checksum and returns it: a
    /// masked CRC-32C, as [`checksum`](super::checksum) computes of an array.
    ///
    /// ```
    /// use estimand_checkpoint::{BundleReader, BundleWriter, checksum};
    /// use estimand_tensor::Array;
    ///
    /// # let prefix = std::env::temp_dir().join(format!("estimand-doc-verify-{}", std::process::id()));
    /// let weights = Array::from([1f32, 2.0]);
    /// let mut bundle = BundleWriter::create(&prefix)?;
    /// bundle.add("weights", &weights)?;
    /// bundle.finish()?;
    /// assert_eq!(BundleReader::open(&prefix)?.verify("weights")?, checksum(&weights)?);
    /// # for end in ["index", "data-00000-of-00001"] { std::fs::remove_file(prefix.with_extension(end)).unwrap(); }
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn verify(&self, name: &str) -> Result<u32> {
        let entry = self.entry(name)?;
        let (dtype, _) = self.spec(name)?;
        if dtype == DType::Str || !entry.slices.is_empty() {
            return checksum(&self.read(name)?);
        }
        let verified = self.data_of(entry).and_then(|mut data| {
            let (mut left, mut chunk) = (data.size, vec![0; data.size.min(CHUNK)]);
            while left > 0 {
                let n = left.min(CHUNK);
                data.fill(&mut chunk[..n])?;
                left -= n;
            }
            match data.crc.masked() == entry.crc32c {
                true => Ok(entry.crc32c),
                false => Err("its checksum is wrong, the data is damaged".to_string()),
            }
        });
        verified.map_err(|message| self.damaged(name, message))
    }

    fn entry(&self, name: &str) -> Result<&BundleEntryProto> {
        self.index.tensors.get(name).ok_or_else(|| {
            Error::missing_variable(name, self.names()).context(format!("in checkpoint {}", self.prefix.display()))
        })
    }

    fn damaged(&self, name: &str, message: String) -> Error {
        Error::checkpoint(&self.prefix, format!("variable `{name}`: {message}"))
    }

    fn read_entry(&self, entry: &BundleEntryProto) -> Result<Array, String> {
        let (dtype, dims) = spec(entry)?;
        let mut data = self.data_of(entry)?;
        let array = match dtype {
            DType::F32 => data.numbers(&dims, |b| Some(f32::from_le_bytes(b))),
            DType::F64 => data.numbers(&dims, |b| Some(f64::from_le_bytes(b))),
            DType::I32 => data.numbers(&dims, |b| Some(i32::from_le_bytes(b))),
            DType::I64 => data.numbers(&dims, |b| Some(i64::from_le_bytes(b))),
            DType::U8 => data.numbers(&dims, |[b]| Some(b)),
            DType::Bool => data.numbers(&dims, |[b]| (b <= 1).then_some(b == 1)),
            DType::Str => data.strings(&dims),
        }?;
        if data.crc.masked() != entry.crc32c {
            return Err("its checksum is wrong, the data is damaged".to_string());
        }
        Ok(array)
    }

    /// The bytes of an entry, not yet read. Checks that they lie inside their file.
    fn data_of(&self, entry: &BundleEntryProto) -> Result<Data<'_>, String> {
        let shard = usize::try_from(entry.shard_id).ok().and_then(|i| self.shards.get(i)).ok_or_else(|| {
            format!("it is in data file {}, but there are only {}", entry.shard_id, self.shards.len())
        })?;
        let (offset, size) = match (u64::try_from(entry.offset), u64::try_from(entry.size)) {
            (Ok(offset), Ok(size)) if offset.checked_add(size).is_some_and(|end| end <= shard.len) => (offset, size),
            _ => {
                let (offset, size, len) = (entry.offset, entry.size, shard.len);
                return Err(format!("its {size} bytes at {offset} lie outside the {len} bytes of the data file"));
            }
        };
        Ok(Data { shard, offset, size: usize::try_from(size).map_err(|e| e.to_string())?, crc: Crc::default() })
    }

    fn read_partitioned(&self, name: &str, entry: &BundleEntryProto) -> Result<Array, String> {
        let (dtype, dims) = spec(entry)?;
        let len = count(&dims)?;
        let mut regions = Vec::with_capacity(entry.slices.len());
        let mut parts = Vec::with_capacity(entry.slices.len());
        for slice in &entry.slices {
            let region = Region::of(slice, &dims).ok_or("a slice is not inside it")?;
            let part = self.index.slices.get(&slice::key(name, slice)).ok_or("a slice is missing")?;
            if spec(part)? != (dtype, region.size.clone()) {
                return Err("a slice has another dtype or shape than it should".to_string());
            }
            regions.push(region);
            parts.push(part);
        }
        // Checked before memory is allocated for the tensor: the slices cover the tensor, and the
        // files are long enough for them.
        let available: u64 = self.shards.iter().map(|shard| shard.len).sum();
        let claimed = parts.iter().try_fold(0, |sum: u64, part| sum.checked_add(u64::try_from(part.size).ok()?));
        if claimed.is_none_or(|claimed| claimed > available) {
            return Err("its slices are larger than the data files".to_string());
        }
        if !slice::is_partition(&regions, len) {
            return Err("its slices do not make up the whole".to_string());
        }
        let pieces = || regions.iter().zip(parts.iter().map(|part| self.read_entry(part)));
        match dtype {
            DType::F32 => assemble::<f32>(pieces(), &dims),
            DType::F64 => assemble::<f64>(pieces(), &dims),
            DType::I32 => assemble::<i32>(pieces(), &dims),
            DType::I64 => assemble::<i64>(pieces(), &dims),
            DType::U8 => assemble::<u8>(pieces(), &dims),
            DType::Bool => assemble::<bool>(pieces(), &dims),
            DType::Str => assemble_strings(pieces(), &dims),
        }
    }
}

/// Refuses tensors that share bytes of the data files: read one after another, they would take any
/// amount of memory.
fn check_apart(index: &BundleIndex) -> Result<(), String> {
    let names = index.tensors.iter().map(|(name, entry)| (name.as_str().into(), entry));
    let slices = index.slices.iter().map(|(key, entry)| (String::from_utf8_lossy(key), entry));
    let places = names.chain(slices).filter(|(_, entry)| entry.size > 0);
    let mut places: Vec<(i32, i64, i64, Cow<'_, str>)> = places
        .map(|(name, entry)| (entry.shard_id, entry.offset, entry.offset.saturating_add(entry.size), name))
        .collect();
    places.sort_unstable();
    match places.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[1].1 < pair[0].2) {
        None => Ok(()),
        Some(pair) => Err(format!("the tensors `{}` and `{}` overlap in the data file", pair[0].3, pair[1].3)),
    }
}

/// The bytes of one tensor, read from the file on request.
struct Data<'a> {
    shard: &'a Shard,
    /// The offset of the next byte to read.
    offset: u64,
    size: usize,
    crc: Crc,
}

impl Data<'_> {
    /// Converts numbers while it reads, so a large table is in memory only once.
    fn numbers<T: Element, const N: usize>(
        &mut self,
        dims: &[usize],
        decode: impl Fn([u8; N]) -> Option<T>,
    ) -> Result<Array, String> {
        let len = count(dims)?;
        if len.checked_mul(N) != Some(self.size) {
            return Err(format!("it has {} bytes, which do not fit {} {dims:?}", self.size, T::DTYPE));
        }
        let message = |e: Error| e.message().to_string();
        // Memory that is aligned for kernels, so that a state can take it without a copy.
        let mut array = Array::zeros(T::DTYPE, dims).map_err(message)?;
        let mut chunk = vec![0; self.size.min(CHUNK)];
        for values in array.as_mut_slice::<T>().map_err(message)?.chunks_mut(CHUNK / N) {
            let bytes = &mut chunk[..values.len() * N];
            self.fill(bytes)?;
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<N>().0) {
                *value = decode(*bytes).ok_or("a boolean is neither 0 nor 1")?;
            }
        }
        Ok(array)
    }

    fn strings(&mut self, dims: &[usize]) -> Result<Array, String> {
        let mut bytes = vec![0; self.size];
        self.fill(&mut bytes)?;
        let (strings, crc) = strings::parse(&bytes, count(dims)?)?;
        self.crc = crc;
        Array::from_strings(dims, strings).map_err(|e| e.message().to_string())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        let read = self.shard.read_at(self.offset, bytes);
        read.map_err(|e| format!("cannot read {}: {e}", self.shard.path.display()))?;
        self.offset += bytes.len() as u64;
        self.crc.update(bytes);
        Ok(())
    }
}

fn assemble<'a, T: Element>(
    pieces: impl Iterator<Item = (&'a Region, Result<Array, String>)>,
    dims: &[usize],
) -> Result<Array, String> {
    let mut whole = vec![T::default(); count(dims)?];
    for (region, part) in pieces {
        region.place(part?.as_slice::<T>().map_err(|e| e.message().to_string())?, &mut whole, dims);
    }
    Array::from_vec(dims, whole).map_err(|e| e.message().to_string())
}

fn assemble_strings<'a>(
    pieces: impl Iterator<Item = (&'a Region, Result<Array, String>)>,
    dims: &[usize],
) -> Result<Array, String> {
    let mut whole = vec![Vec::new(); count(dims)?];
    for (region, part) in pieces {
        let part = part?;
        let strings = part.strings().map_err(|e| e.message().to_string())?;
        region.place(&strings.map(<[u8]>::to_vec).collect::<Vec<_>>(), &mut whole, dims);
    }
    Array::from_strings(dims, whole).map_err(|e| e.message().to_string())
}
