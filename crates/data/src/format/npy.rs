//! NPY, numpy's file format for one array: [`read`] reads it and [`write()`] writes it.
//!
//! Supports versions 1 to 3, both byte orders, row-major and Fortran order. The element types are
//! `bool`, integers, floats, and strings of fixed width (`S` as bytes, `U` as UTF-8). Integers
//! whose type arrays do not have are widened.
//!
//! ```
//! use estimand_data::npy;
//! use estimand_tensor::Array;
//!
//! let array = Array::from_vec([2, 3], vec![1.5f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! assert_eq!(npy::from_bytes(&npy::to_bytes(&array)?)?, array);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

use std::path::Path;

use estimand_tensor::{Array, DType, Error, Result, Strings};

use super::from_files;
use super::npy_header::{Descr, Header, MAGIC};
use super::numbers::{ByteOrder, check_length};
use crate::writer::output::{Output, publish};
use crate::{Compression, Dataset, Files};

/// Numpy's alignment of the data after the header.
const ALIGN: usize = 64;

impl Dataset {
    /// Creates a dataset from one NPY file, as the unnamed feature. `.npy.gz` files are
    /// decompressed.
    ///
    /// `file` is a path, or [`Files`] with one path and options.
    pub fn from_npy(file: impl Into<Files>) -> Dataset {
        from_files("npy", [("", file)], from_bytes)
    }

    /// Creates a dataset from several NPY files, one feature per file.
    ///
    /// ```
    /// # use estimand_data::{Dataset, npy};
    /// # use estimand_tensor::Array;
    /// # let folder = std::env::temp_dir().join(format!("estimand-npy-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// npy::write(folder.join("x.npy"), &Array::from([0.5f32, 1.5]))?;
    /// npy::write(folder.join("y.npy"), &Array::from([0i64, 1]))?;
    /// let data = Dataset::from_npy_files([("x", folder.join("x.npy")), ("y", folder.join("y.npy"))]).label("y");
    /// assert_eq!(data.iter().count(), 2);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn from_npy_files<N: Into<String>, F: Into<Files>>(files: impl IntoIterator<Item = (N, F)>) -> Dataset {
        from_files("npy", files, from_bytes)
    }
}

/// Reads the array in a file.
pub fn read(path: impl AsRef<Path>) -> Result<Array> {
    let path = path.as_ref();
    from_bytes(&Files::new(path).read(path)?).map_err(|e| e.in_file(path))
}

/// Parses the array in the bytes of a file.
pub fn from_bytes(bytes: &[u8]) -> Result<Array> {
    let (Header { descr, fortran_order, shape }, data) = Header::parse(bytes)?;
    let size = descr.size().ok_or_else(|| Error::data("an element of the array is larger than memory"))?;
    check_length(&shape, size, data)?;
    let reordered;
    let data = if fortran_order && shape.len() > 1 {
        reordered = row_major(&shape, size, data);
        &reordered
    } else {
        data
    };
    match descr {
        Descr::Number(stored, order) => stored.array(order, &shape, data),
        Descr::Bytes(width) => Array::from_strings(shape, data.chunks_exact(width).map(unfilled)),
        Descr::Unicode(width, order) => {
            let mut strings = Strings::default();
            for (i, points) in data.chunks_exact(4 * width).enumerate() {
                strings.push(utf8(points, order).map_err(|e| e.context(format!("in string {}", i + 1)))?.as_bytes());
            }
            Array::from_string_list(shape, strings)
        }
    }
}

/// Removes the NULs that pad a string.
fn unfilled(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

fn utf8(points: &[u8], order: ByteOrder) -> Result<String> {
    let (points, _) = points.as_chunks::<4>();
    let points = points.iter().map(|&point| match order {
        ByteOrder::Little => u32::from_le_bytes(point),
        ByteOrder::Big => u32::from_be_bytes(point),
    });
    let chars =
        points.map(|p| char::from_u32(p).ok_or_else(|| Error::data(format!("{p:#x} is not a Unicode code point"))));
    let mut string = chars.collect::<Result<String>>()?;
    string.truncate(string.trim_end_matches('\0').len());
    Ok(string)
}

/// Converts elements from Fortran order to row-major order.
fn row_major(shape: &[usize], size: usize, bytes: &[u8]) -> Vec<u8> {
    let mut strides = vec![size; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let (mut index, mut from) = (vec![0; shape.len()], 0);
    let mut reordered = Vec::with_capacity(bytes.len());
    while reordered.len() < bytes.len() {
        reordered.extend_from_slice(&bytes[from..from + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            from -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    reordered
}

/// Writes an array to a file. The file is compressed if its name ends so (`.npy.gz`), and appears
/// whole or not at all.
pub fn write(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let bytes = to_bytes(array)?;
    let mut output = Output::create(path.as_ref(), Compression::of(path.as_ref()))?;
    output.write(&bytes)?;
    publish(vec![output])?;
    Ok(())
}

/// Encodes an array as `numpy.save` does. Strings become `S` with the width of the longest.
pub fn to_bytes(array: &Array) -> Result<Vec<u8>> {
    let width = match array.dtype() {
        DType::Str => string_width(array)?,
        dtype => dtype.size(),
    };
    let mut bytes = header(array, width);
    if array.dtype() == DType::Str {
        for string in array.strings()? {
            bytes.extend_from_slice(string);
            bytes.resize(bytes.len() + width - string.len(), 0);
        }
    } else {
        bytes.extend_from_slice(array.bytes());
    }
    Ok(bytes)
}

fn string_width(array: &Array) -> Result<usize> {
    let mut width = 1;
    for (i, string) in array.strings()?.enumerate() {
        if string.last() == Some(&0) {
            return Err(Error::unsupported(format!("string {} ends with a NUL, which NPY would lose", i + 1)));
        }
        width = width.max(string.len());
    }
    Ok(width)
}

/// The magic, version 1.0, the length, the dictionary, and spaces up to the alignment.
fn header(array: &Array, width: usize) -> Vec<u8> {
    let descr = match array.dtype() {
        DType::F32 => "<f4".to_string(),
        DType::F64 => "<f8".to_string(),
        DType::I32 => "<i4".to_string(),
        DType::I64 => "<i8".to_string(),
        DType::U8 => "|u1".to_string(),
        DType::Bool => "|b1".to_string(),
        DType::Str => format!("|S{width}"),
    };
    let sizes: Vec<String> = array.dims().iter().map(usize::to_string).collect();
    let shape = if let [size] = sizes.as_slice() { format!("{size},") } else { sizes.join(", ") };
    // Numpy leaves room for the first size to grow in place to 21 digits.
    let room = sizes.first().map_or(0, |size| 21 - size.len());
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}{}", " ".repeat(room));
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    let padded = unpadded.next_multiple_of(ALIGN);
    let length = (padded - MAGIC.len() - 4) as u16;
    let mut bytes = [MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat();
    bytes.resize(padded - 1, b' ');
    bytes.push(b'\n');
    bytes
}
