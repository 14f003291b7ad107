//! IDX, the format of MNIST: a magic number, the sizes, and big-endian numbers.

use std::path::Path;

use estimand_tensor::{Array, Error, MAX_RANK, Result};

use super::from_files;
use super::numbers::{ByteOrder, Stored, check_length};
use crate::{Dataset, Files};

impl Dataset {
    /// Creates a dataset from IDX files, one feature per file. `.gz` files are decompressed.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// let data = Dataset::from_idx([("image", "train-images-idx3-ubyte.gz"), ("label", "train-labels-idx1-ubyte.gz")])
    ///     .label("label")
    ///     .shuffle(60_000, 7)
    ///     .batch(128).drop_remainder();
    /// // Nothing is read before it is needed.
    /// assert!(data.explain().contains("a permutation of all rows"));
    /// ```
    pub fn from_idx<N: Into<String>, F: Into<Files>>(files: impl IntoIterator<Item = (N, F)>) -> Dataset {
        from_files("idx", files, from_bytes)
    }
}

/// Reads the array in a file.
pub fn read(path: impl AsRef<Path>) -> Result<Array> {
    let path = path.as_ref();
    from_bytes(&Files::new(path).read(path)?).map_err(|e| e.in_file(path))
}

/// Parses the array in the bytes of a file.
pub fn from_bytes(bytes: &[u8]) -> Result<Array> {
    let cut = || Error::data(format!("the file has {} bytes, which is shorter than its IDX header", bytes.len()));
    let (magic, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
    let [0, 0, code, rank] = *magic else {
        let error =
            Error::data(format!("the file begins with the bytes {magic:02x?}; an IDX file begins with two zeros"));
        return Err(if magic.starts_with(&[0x1f, 0x8b]) {
            error.help("the file is gzip-compressed: add .gz to its name")
        } else {
            error
        });
    };
    let stored = match code {
        0x08 => Stored::U8,
        0x09 => Stored::I8,
        0x0b => Stored::I16,
        0x0c => Stored::I32,
        0x0d => Stored::F32,
        0x0e => Stored::F64,
        _ => return Err(Error::data(format!("the element type is {code:#04x}; expected 0x08, 0x09 or 0x0b to 0x0e"))),
    };
    let rank = usize::from(rank);
    if rank > MAX_RANK {
        return Err(Error::data(format!("the array has {rank} axes; at most {MAX_RANK} are supported")));
    }
    let (sizes, data) = rest.split_at_checked(4 * rank).ok_or_else(cut)?;
    let (sizes, _) = sizes.as_chunks::<4>();
    let dims: Vec<usize> = sizes.iter().map(|&size| u32::from_be_bytes(size) as usize).collect();
    check_length(&dims, stored.size(), data)?;
    stored.array(ByteOrder::Big, &dims, data)
}
