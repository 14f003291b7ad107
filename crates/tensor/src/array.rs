//! `Array`: a concrete value. It is contiguous and row-major; clones and ranges of rows share the
//! buffer.
//!
//! ```
//! # use estimand_tensor::Array;
//! let a = Array::from_vec([2, 3], vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! assert_eq!(a.rows(1..2)?.as_slice::<f32>()?, [4.0, 5.0, 6.0]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::shape::checked_len;
use crate::{DType, Dims, Element, Error, MAX_RANK, Result, StringSlice, Strings};

/// A value: dtype, sizes and elements. Cheap to clone.
pub struct Array {
    dtype: DType,
    dims: Dims,
    /// The index of the first element in the buffer. It is not 0 only in a range of rows.
    start: usize,
    len: usize,
    data: Data,
}

#[derive(Clone)]
enum Data {
    Plain(Arc<Buffer>),
    Strings(Arc<Strings>),
}

/// By hand, because a derived one would copy the sizes one by one.
impl Clone for Array {
    fn clone(&self) -> Array {
        let Array { dtype, ref dims, start, len, ref data } = *self;
        Array { dtype, dims: Dims::from_slice(dims), start, len, data: data.clone() }
    }
}

/// The number of elements of an array with these sizes, or an error if such an array cannot exist.
#[inline]
pub fn element_count(dims: &[usize]) -> Result<usize> {
    match checked_len(dims) {
        Some(n) if dims.len() <= MAX_RANK => Ok(n),
        _ => Err(impossible(dims)),
    }
}

#[cold]
fn impossible(dims: &[usize]) -> Error {
    Error::shape(match dims.len() > MAX_RANK {
        true => format!("{dims:?} has {} axes, at most {MAX_RANK} are supported", dims.len()),
        false => format!("an array of {dims:?} does not fit into the address space"),
    })
}

impl Array {
    /// Takes ownership of the elements, in row-major order.
    pub fn from_vec<T: Element>(dims: impl AsRef<[usize]>, values: Vec<T>) -> Result<Array> {
        let dims = dims.as_ref();
        let len = expect_count(dims, values.len())?;
        let data = Data::Plain(Arc::new(Buffer::from_vec(values)));
        Ok(Array { dtype: T::DTYPE, dims: Dims::from_slice(dims), start: 0, len, data })
    }

    /// Copies the elements.
    pub fn from_slice<T: Element>(dims: impl AsRef<[usize]>, values: &[T]) -> Result<Array> {
        let dims = dims.as_ref();
        let len = expect_count(dims, values.len())?;
        let data = Data::Plain(Arc::new(Buffer::from_slice(values)));
        Ok(Array { dtype: T::DTYPE, dims: Dims::from_slice(dims), start: 0, len, data })
    }

    /// Elements that a function writes over zeros. Unlike a vector, a few of them need no memory of
    /// their own.
    pub fn written<T: Element>(dims: impl AsRef<[usize]>, write: impl FnOnce(&mut [T]) -> Result<()>) -> Result<Array> {
        let mut array = Array::zeros(T::DTYPE, dims)?;
        write(array.as_mut_slice()?)?;
        Ok(array)
    }

    /// A single number.
    pub fn scalar<T: Element>(value: T) -> Array {
        let data = Data::Plain(Arc::new(Buffer::from_slice(&[value])));
        Array { dtype: T::DTYPE, dims: Dims::new(), start: 0, len: 1, data }
    }

    /// Zeros, `false`, or empty strings.
    pub fn zeros(dtype: DType, dims: impl AsRef<[usize]>) -> Result<Array> {
        let dims = dims.as_ref();
        let len = element_count(dims)?;
        let data = match dtype {
            DType::Str => Data::Strings(Arc::new((0..len).map(|_| b"").collect())),
            _ => Data::Plain(Arc::new(Buffer::zeroed(len * dtype.size()).ok_or_else(|| {
                Error::shape(format!(
                    "there is not enough memory for an array of {dtype}{dims:?}, which needs {} bytes",
                    len * dtype.size()
                ))
            })?)),
        };
        Ok(Array { dtype, dims: Dims::from_slice(dims), start: 0, len, data })
    }

    /// Reads elements from their little-endian bytes.
    pub fn from_bytes(dtype: DType, dims: impl AsRef<[usize]>, bytes: &[u8]) -> Result<Array> {
        let mut array = Array::zeros(dtype, dims)?;
        let expected = array.len * dtype.size();
        if dtype == DType::Str || bytes.len() != expected {
            return Err(Error::shape(format!(
                "{} bytes were given for an array of {dtype}{:?}; expected {expected}",
                bytes.len(),
                array.dims()
            )));
        }
        if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
            return Err(Error::dtype(Some(DType::Bool), DType::U8, "a boolean byte is neither 0 nor 1"));
        }
        array.bytes_mut().expect("just made").copy_from_slice(bytes);
        Ok(array)
    }

    /// Copies byte strings, in row-major order.
    pub fn from_strings<S: AsRef<[u8]>>(
        dims: impl AsRef<[usize]>,
        strings: impl IntoIterator<Item = S>,
    ) -> Result<Array> {
        Array::from_string_list(dims, strings.into_iter().collect())
    }

    /// Takes ownership of a list of byte strings, in row-major order.
    pub fn from_string_list(dims: impl AsRef<[usize]>, strings: Strings) -> Result<Array> {
        let dims = dims.as_ref();
        let len = expect_count(dims, strings.len())?;
        let data = Data::Strings(Arc::new(strings));
        Ok(Array { dtype: DType::Str, dims: Dims::from_slice(dims), start: 0, len, data })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes of the axes.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, in row-major order.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.expect_dtype(T::DTYPE)?;
        let bytes = self.bytes();
        // SAFETY: the dtype was checked, the buffer holds `len` elements of T from `start`, aligned
        // for T.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<T>(), self.len) })
    }

    fn expect_dtype(&self, dtype: DType) -> Result<()> {
        if self.dtype == dtype {
            return Ok(());
        }
        Err(Error::dtype(Some(dtype), self.dtype, format!("this array holds {}, not {dtype}", self.dtype)))
    }

    /// The elements as a mutable slice. Returns an error if the buffer is shared with another
    /// array.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.expect_dtype(T::DTYPE)?;
        let len = self.len;
        let bytes = self.bytes_mut().ok_or_else(|| {
            Error::config("this array shares its buffer with another and cannot be changed in place")
                .help("copy it first with Array::from_slice")
        })?;
        // SAFETY: as in `as_slice`; `bytes_mut` has made sure that no other array shares the
        // buffer.
        Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<T>(), len) })
    }

    /// The only element of an array of one element.
    pub fn item<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [one] => Ok(*one),
            _ => Err(Error::shape(format!("item() needs exactly one element, this array is {:?}", self.dims()))),
        }
    }

    /// The little-endian bytes of the elements; empty for strings.
    pub fn bytes(&self) -> &[u8] {
        let size = self.dtype.size();
        match &self.data {
            Data::Plain(buffer) => &buffer.bytes()[self.start * size..(self.start + self.len) * size],
            Data::Strings(_) => &[],
        }
    }

    /// The address of the first element, for a kernel to write to; `None` if the buffer is shared
    /// or holds strings.
    pub fn as_mut_ptr(&mut self) -> Option<*mut u8> {
        self.bytes_mut().map(|bytes| bytes.as_mut_ptr())
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let size = self.dtype.size();
        match &mut self.data {
            Data::Plain(buffer) => {
                let bytes = Arc::get_mut(buffer)?.bytes_mut();
                Some(&mut bytes[self.start * size..(self.start + self.len) * size])
            }
            Data::Strings(_) => None,
        }
    }

    /// Gives this array another dtype and other sizes, with unspecified elements. It reuses the
    /// array's memory if that is not shared and large enough.
    ///
    /// A caller that fetches the same values every step can do so without allocating.
    pub fn reuse(&mut self, dtype: DType, dims: &[usize]) -> Result<()> {
        if !self.reuse_own(dtype, dims)? {
            *self = Array::zeros(dtype, dims)?;
        }
        Ok(())
    }

    /// Like [`reuse`](Array::reuse), but never allocates: where `reuse` would, nothing changes and
    /// the result is `false`.
    pub fn reuse_own(&mut self, dtype: DType, dims: &[usize]) -> Result<bool> {
        let len = element_count(dims)?;
        if let (Data::Plain(buffer), true) = (&mut self.data, dtype != DType::Str)
            && let Some(owned) = Arc::get_mut(buffer)
            && owned.bytes().len() >= len * dtype.size()
            && (owned.bytes().as_ptr() as usize).is_multiple_of(dtype.size().max(1))
        {
            if dtype == DType::Bool {
                owned.bytes_mut()[..len].fill(0);
            }
            self.dims.clear();
            self.dims.extend_from_slice(dims);
            (self.dtype, self.start, self.len) = (dtype, 0, len);
            return Ok(true);
        }
        Ok(false)
    }

    /// Like [`reuse_own`](Array::reuse_own) for strings: `fill` writes them to an empty list in
    /// this array's memory.
    ///
    /// If the number of strings does not match `dims`, the result is an error, and the array
    /// becomes a plain list of the strings.
    pub fn reuse_own_strings(&mut self, dims: &[usize], fill: impl FnOnce(&mut Strings)) -> Result<bool> {
        let Data::Strings(strings) = &mut self.data else { return Ok(false) };
        let Some(owned) = Arc::get_mut(strings) else { return Ok(false) };
        owned.clear();
        fill(owned);
        (self.start, self.len) = (0, owned.len());
        let fits = expect_count(dims, self.len);
        self.dims.clear();
        match &fits {
            Ok(_) => self.dims.extend_from_slice(dims),
            Err(_) => self.dims.push(self.len),
        }
        fits.map(|_| true)
    }

    /// The strings of a string array.
    pub fn strings(&self) -> Result<impl ExactSizeIterator<Item = &[u8]>> {
        Ok(self.string_slice()?.iter())
    }

    /// The strings of a string array in the form that kernels take: offsets and bytes of its row
    /// range.
    pub fn string_slice(&self) -> Result<StringSlice<'_>> {
        match &self.data {
            Data::Strings(strings) => Ok(strings.as_slice().range(self.start..self.start + self.len)),
            Data::Plain(_) => {
                Err(Error::dtype(Some(DType::Str), self.dtype, format!("this array holds {}, not strings", self.dtype)))
            }
        }
    }

    /// The same elements with other sizes; shares the buffer.
    pub fn reshape(&self, dims: impl AsRef<[usize]>) -> Result<Array> {
        let dims = dims.as_ref();
        if element_count(dims)? != self.len {
            return Err(Error::shape(format!(
                "cannot reshape {:?} to {dims:?}: the element counts differ",
                self.dims()
            )));
        }
        Ok(Array { dims: Dims::from_slice(dims), ..self.clone() })
    }

    /// A range of the first axis; shares the buffer.
    pub fn rows(&self, range: Range<usize>) -> Result<Array> {
        let Some(&n_rows) = self.dims.first() else {
            return Err(Error::shape("a single number has no rows"));
        };
        if range.start > range.end || range.end > n_rows {
            return Err(Error::index(format!("the rows {range:?} are out of range for an array with {n_rows} rows")));
        }
        // Rows whose size overflows can exist only in arrays without rows.
        let width = checked_len(&self.dims[1..]).unwrap_or(0);
        let mut dims = self.dims.clone();
        dims[0] = range.len();
        Ok(Array {
            dtype: self.dtype,
            dims,
            start: self.start + range.start * width,
            len: range.len() * width,
            data: self.data.clone(),
        })
    }

    /// Whether both share one buffer.
    pub fn shares_buffer(&self, other: &Array) -> bool {
        match (&self.data, &other.data) {
            (Data::Plain(a), Data::Plain(b)) => Arc::ptr_eq(a, b),
            (Data::Strings(a), Data::Strings(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Converts every element to a double, for printing and comparing, not for arithmetic.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        match self.dtype {
            DType::F32 => Ok(self.as_slice::<f32>()?.iter().map(|&v| v.into()).collect()),
            DType::F64 => Ok(self.as_slice::<f64>()?.to_vec()),
            DType::I32 => Ok(self.as_slice::<i32>()?.iter().map(|&v| v.into()).collect()),
            DType::I64 => Ok(self.as_slice::<i64>()?.iter().map(|&v| v as f64).collect()),
            DType::U8 => Ok(self.as_slice::<u8>()?.iter().map(|&v| v.into()).collect()),
            DType::Bool => Ok(self.as_slice::<bool>()?.iter().map(|&v| f64::from(u8::from(v))).collect()),
            DType::Str => Err(Error::dtype(None, DType::Str, "the array holds strings, not numbers")),
        }
    }
}

fn expect_count(dims: &[usize], given: usize) -> Result<usize> {
    let len = element_count(dims)?;
    if len != given {
        return Err(Error::shape(format!("{given} elements were given for an array of {dims:?}; expected {len}")));
    }
    Ok(len)
}

/// Equal dtype, sizes and elements; floats are compared by value, so NaN differs from itself.
impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        fn same<T: Element>(a: &Array, b: &Array) -> bool {
            matches!((a.as_slice::<T>(), b.as_slice::<T>()), (Ok(a), Ok(b)) if a == b)
        }
        if self.dtype != other.dtype || self.dims != other.dims {
            return false;
        }
        match self.dtype {
            DType::F32 => same::<f32>(self, other),
            DType::F64 => same::<f64>(self, other),
            DType::Str => match (self.strings(), other.strings()) {
                (Ok(a), Ok(b)) => a.eq(b),
                _ => false,
            },
            _ => self.bytes() == other.bytes(),
        }
    }
}

/// The elements in nested brackets, as NumPy prints them; long axes are shortened.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn level(a: &Array, axis: usize, offset: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            const EDGE: usize = 3;
            if axis == a.rank() {
                return element(a, offset, f);
            }
            let stride = checked_len(&a.dims[axis + 1..]).unwrap_or(0);
            let n = a.dims[axis];
            f.write_str("[")?;
            for i in 0..n {
                if n > 2 * EDGE + 2 && i == EDGE {
                    f.write_str(", ...")?;
                }
                if n > 2 * EDGE + 2 && (EDGE..n - EDGE).contains(&i) {
                    continue;
                }
                if i > 0 {
                    f.write_str(", ")?;
                }
                level(a, axis + 1, offset + i * stride, f)?;
            }
            f.write_str("]")
        }
        fn element(a: &Array, i: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fn at<T: Element>(a: &Array, i: usize) -> Result<T, fmt::Error> {
                a.as_slice::<T>().map_err(|_| fmt::Error).map(|s| s[i])
            }
            match a.dtype {
                DType::F32 => write!(f, "{}", at::<f32>(a, i)?),
                DType::F64 => write!(f, "{}", at::<f64>(a, i)?),
                DType::I32 => write!(f, "{}", at::<i32>(a, i)?),
                DType::I64 => write!(f, "{}", at::<i64>(a, i)?),
                DType::U8 => write!(f, "{}", at::<u8>(a, i)?),
                DType::Bool => write!(f, "{}", at::<bool>(a, i)?),
                DType::Str => {
                    let string = a.strings().map_err(|_| fmt::Error)?.nth(i).unwrap_or_default();
                    write!(f, "{:?}", String::from_utf8_lossy(string))
                }
            }
        }
        level(self, 0, 0, f)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} {self}", self.dtype, self.dims())
    }
}

impl<T: Element> From<T> for Array {
    fn from(value: T) -> Array {
        Array::scalar(value)
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Array {
    fn from(values: [T; N]) -> Array {
        Array::from_slice([N], &values).expect("the length is N")
    }
}

impl<T: Element> From<Vec<T>> for Array {
    fn from(values: Vec<T>) -> Array {
        Array::from_vec([values.len()], values).expect("the length is the vector's")
    }
}

impl From<Strings> for Array {
    fn from(strings: Strings) -> Array {
        Array::from_string_list([strings.len()], strings).expect("the length is the list's")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_into_memory_that_is_nobody_elses() {
        let mut array = Array::from_strings([2], ["a long word", "b"]).unwrap();
        assert!(array.reuse_own_strings(&[1, 3], |list| list.extend(["x", "", "yz"])).unwrap());
        assert_eq!(array, Array::from_strings([1, 3], ["x", "", "yz"]).unwrap());
        let shared = array.clone();
        assert!(!array.reuse_own_strings(&[1], |list| list.push(b"never")).unwrap());
        assert_eq!(array, shared);
        drop(shared);
        assert!(array.reuse_own_strings(&[2], |list| list.push(b"one")).is_err());
        assert_eq!(array, Array::from_strings([1], ["one"]).unwrap(), "still whole");
        assert!(!Array::scalar(1f32).reuse_own_strings(&[0], |_| {}).unwrap());
    }

    #[test]
    fn clones_and_row_ranges_share_the_buffer() {
        let a = Array::from_vec([3, 2], vec![1i64, 2, 3, 4, 5, 6]).unwrap();
        let middle = a.rows(1..3).unwrap();
        assert!(a.shares_buffer(&middle) && a.shares_buffer(&a.clone()));
        assert_eq!(middle.as_slice::<i64>().unwrap(), [3, 4, 5, 6]);
        assert_eq!(middle.rows(1..2).unwrap().as_slice::<i64>().unwrap(), [5, 6]);
        assert_eq!(middle.rows(2..2).unwrap().dims(), [0, 2]);
    }

    #[test]
    fn shared_buffers_cannot_be_changed() {
        let mut a = Array::from([1.0f32, 2.0]);
        a.as_mut_slice::<f32>().unwrap()[0] = 3.0;
        let b = a.clone();
        assert!(a.as_mut_slice::<f32>().unwrap_err().to_string().contains("shares its buffer"));
        assert_eq!(b.as_slice::<f32>().unwrap(), [3.0, 2.0]);
    }

    #[test]
    fn strings_keep_odd_bytes() {
        let a = Array::from_strings([2, 1], [&b"\xff\x00"[..], b""]).unwrap();
        assert_eq!(a.strings().unwrap().collect::<Vec<_>>(), [&b"\xff\x00"[..], b""]);
        assert_eq!(a.rows(1..2).unwrap().strings().unwrap().next(), Some(&b""[..]));
    }

    #[test]
    fn bad_input_is_named() {
        for (error, text) in [
            (
                Array::from_vec([2, 2], vec![1u8]).unwrap_err(),
                "1 elements were given for an array of [2, 2]; expected 4",
            ),
            (Array::zeros(DType::F32, [usize::MAX, 2]).unwrap_err(), "does not fit into the address space"),
            (
                Array::zeros(DType::F32, [1 << 50]).unwrap_err(),
                "not enough memory for an array of f32[1125899906842624]",
            ),
            (Array::zeros(DType::F32, [1; 9]).unwrap_err(), "at most 8"),
            (Array::from(1i32).as_slice::<f32>().map(drop).unwrap_err(), "holds i32, not f32"),
            (Array::from(1i32).rows(0..1).unwrap_err(), "no rows"),
            (Array::from([1i32]).rows(1..3).unwrap_err(), "1 rows"),
            (Array::from([1i32]).reshape([2]).unwrap_err(), "cannot reshape [1] to [2]"),
            (Array::from_bytes(DType::Bool, [1], &[2]).unwrap_err(), "neither 0 nor 1"),
            (Array::from([1i32, 2]).item::<i32>().unwrap_err(), "exactly one"),
        ] {
            assert!(error.to_string().contains(text), "{error} should contain {text}");
        }
    }

    #[test]
    fn empty_with_huge_other_axes_is_empty() {
        assert_eq!(Array::zeros(DType::F32, [0, usize::MAX]).unwrap().len(), 0);
    }

    #[test]
    fn prints_nested_brackets() {
        assert_eq!(Array::from_vec([2, 2], vec![1.5f32, 2.0, 3.0, 4.0]).unwrap().to_string(), "[[1.5, 2], [3, 4]]");
        assert_eq!(Array::from((0..20).collect::<Vec<i32>>()).to_string(), "[0, 1, 2, ..., 17, 18, 19]");
        assert_eq!(Array::from(true).to_string(), "true");
    }

    #[test]
    fn reuse_keeps_own_memory() {
        let mut a = Array::zeros(DType::F32, [8]).unwrap();
        let before = a.bytes().as_ptr();
        a.reuse(DType::F32, &[2, 3]).unwrap();
        assert_eq!((a.dims(), a.bytes().as_ptr()), (&[2, 3][..], before));
        a.reuse(DType::F64, &[8]).unwrap();
        assert_eq!(a.len(), 8);
    }
}
