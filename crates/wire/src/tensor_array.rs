//! Converts the constants of a graph to arrays, and back: [`TensorProto::to_array`],
//! [`TensorProto::from_array`].

use estimand_tensor::{Array, DType, Dims, Element, Error, Result, Strings, element_count};

use crate::tensor_proto::{DataType, TensorProto, TensorShapeProto};
use crate::varint;

/// The largest number of bytes that a constant may grow to by repeating its last value.
///
/// A few bytes of a file can ask for any number of repetitions. TensorFlow itself writes only far
/// smaller constants this way: those with one value.
pub const REPETITION_LIMIT: usize = 64 << 20;

impl TensorProto {
    /// Creates a constant from an array: numbers as `tensor_content`, strings as `string_val`.
    pub fn from_array(array: &Array) -> TensorProto {
        let mut proto = TensorProto {
            dtype: DataType::from(array.dtype()).into(),
            tensor_shape: Some(TensorShapeProto::of(array.dims().iter().map(|&n| n as i64))),
            tensor_content: array.bytes().to_vec(),
            ..Default::default()
        };
        if let Ok(strings) = array.strings() {
            proto.string_val = strings.map(<[u8]>::to_vec).collect();
        }
        proto
    }

    /// Converts the constant to an array, whichever field its elements are in.
    ///
    /// If there are fewer values than the shape requires, the last one repeats; if there are none,
    /// all elements are zero, as in TensorFlow. Beyond [`REPETITION_LIMIT`], repetition is an
    /// error. More values than the shape requires are an error too; TensorFlow would drop them.
    pub fn to_array(&self) -> Result<Array> {
        let dtype = DataType::try_from(self.dtype).ok().and_then(DataType::dtype).ok_or_else(|| {
            let name = DataType::describe(self.dtype);
            Error::unsupported(format!("a constant of {name} cannot be read"))
                .help("cast it in TensorFlow to one of float32, float64, int32, int64, uint8, bool, string")
        })?;
        let dims = self.dims()?;
        let n = element_count(&dims)?;
        if !self.tensor_content.is_empty() {
            return self.from_content(dtype, &dims, n);
        }
        let (given, elsewhere) = self.count_values(dtype);
        if given == 0 && n > 0 && elsewhere {
            return Err(Error::shape(format!("the values of a {dtype} constant are in the field of another type")));
        }
        if given > n {
            return Err(Error::shape(format!(
                "a {dtype} constant of {dims:?} has {given} values; expected at most {n}"
            )));
        }
        if given < n {
            let last = self.string_val.last().map_or(0, Vec::len);
            let bytes = (n - given).saturating_mul(dtype.size().max(8 + last));
            if bytes > REPETITION_LIMIT {
                return Err(Error::shape(format!(
                    "a {dtype} constant of {dims:?} repeats its values to {bytes} bytes; \
                     the limit is {REPETITION_LIMIT}"
                )));
            }
        }
        match dtype {
            DType::F32 => filled(&dims, n, self.float_val.iter().map(|&v| Some(v))),
            DType::F64 => filled(&dims, n, self.double_val.iter().map(|&v| Some(v))),
            DType::I32 => filled(&dims, n, self.int_val.iter().map(|&v| Some(v))),
            DType::I64 => filled(&dims, n, self.int64_val.iter().map(|&v| Some(v))),
            DType::U8 => filled(&dims, n, self.int_val.iter().map(|&v| u8::try_from(v).ok())),
            DType::Bool => filled(&dims, n, self.bool_val.iter().map(|&v| Some(v))),
            DType::Str => {
                let last = self.string_val.last().map_or(&b""[..], Vec::as_slice);
                let given = self.string_val.iter().map(Vec::as_slice);
                Array::from_strings(&dims, given.chain(std::iter::repeat(last)).take(n))
            }
        }
    }

    /// The number of bytes of an array of the declared size; strings count without their text. The
    /// values themselves are not checked.
    pub fn declared_bytes(&self) -> Result<usize> {
        let size = DataType::try_from(self.dtype).ok().and_then(DataType::dtype).map_or(1, |dtype| dtype.size().max(1));
        Ok(element_count(&self.dims()?)?.saturating_mul(size))
    }

    /// The sizes. A constant without a shape is a scalar, because protobuf leaves out the shape of
    /// a scalar.
    fn dims(&self) -> Result<Dims> {
        let Some(shape) = &self.tensor_shape else { return Ok(Dims::new()) };
        let sizes = shape.sizes().ok_or_else(|| Error::shape("a constant has an unknown shape"))?;
        sizes
            .map(|size| {
                usize::try_from(size).map_err(|_| Error::shape(format!("a constant has an axis of size {size}")))
            })
            .collect()
    }

    #[allow(clippy::wrong_self_convention, reason = "reads the field `tensor_content`")]
    fn from_content(&self, dtype: DType, dims: &[usize], n: usize) -> Result<Array> {
        let content = self.tensor_content.as_slice();
        if dtype == DType::Str {
            let strings = string_list(content, n).ok_or_else(|| {
                Error::shape(format!("{} bytes are not the {n} strings of a constant of {dims:?}", content.len()))
            })?;
            return Array::from_string_list(dims, strings);
        }
        // Compared before an array of the claimed size is allocated.
        let expected = n.saturating_mul(dtype.size());
        if content.len() != expected {
            let given = content.len();
            return Err(Error::shape(format!("a {dtype} constant of {dims:?} has {given} bytes; expected {expected}")));
        }
        Array::from_bytes(dtype, dims, content)
    }

    /// The number of values in the field of a dtype, and whether a field of another type has
    /// values.
    fn count_values(&self, dtype: DType) -> (usize, bool) {
        let given = match dtype {
            DType::F32 => self.float_val.len(),
            DType::F64 => self.double_val.len(),
            DType::I32 | DType::U8 => self.int_val.len(),
            DType::I64 => self.int64_val.len(),
            DType::Bool => self.bool_val.len(),
            DType::Str => self.string_val.len(),
        };
        let all = [
            self.half_val.len(),
            self.float_val.len(),
            self.double_val.len(),
            self.int_val.len(),
            self.string_val.len(),
            self.scomplex_val.len(),
            self.int64_val.len(),
            self.bool_val.len(),
            self.dcomplex_val.len(),
            self.uint32_val.len(),
            self.uint64_val.len(),
            self.float8_val.len(),
        ];
        (given, all.iter().any(|&len| len > 0) && all.iter().sum::<usize>() > given)
    }
}

/// Creates an array of `values`, with the last one repeated up to `n`.
fn filled<T: Element>(dims: &[usize], n: usize, values: impl Iterator<Item = Option<T>>) -> Result<Array> {
    let mut all = values
        .collect::<Option<Vec<T>>>()
        .ok_or_else(|| Error::shape(format!("a value of a {} constant is out of its range", T::DTYPE)))?;
    all.resize(n, all.last().copied().unwrap_or_default());
    Array::from_vec(dims, all)
}

/// Parses strings as TensorFlow packs them into `tensor_content`: all lengths, then all bytes.
fn string_list(content: &[u8], n: usize) -> Option<Strings> {
    // A length takes at least one byte.
    if n > content.len() {
        return None;
    }
    let mut rest = content;
    let lengths = (0..n).map(|_| usize::try_from(varint::take(&mut rest)?).ok()).collect::<Option<Vec<_>>>()?;
    let mut strings = Strings::with_capacity(n);
    for length in lengths {
        let (string, after) = rest.split_at_checked(length)?;
        strings.push(string);
        rest = after;
    }
    rest.is_empty().then_some(strings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proto(dtype: DataType, sizes: &[i64]) -> TensorProto {
        TensorProto {
            dtype: dtype.into(),
            tensor_shape: Some(TensorShapeProto::of(sizes.iter().copied())),
            ..Default::default()
        }
    }

    #[test]
    fn arrays_come_back() {
        for array in [
            Array::from_vec([2, 2], vec![1.5f32, -0.0, f32::INFINITY, 1e-45]).unwrap(),
            Array::from(f64::MIN),
            Array::from([i32::MIN, 7]),
            Array::from([i64::MAX]),
            Array::from([0u8, 255]),
            Array::from([true, false]),
            Array::from_strings([2, 1], [&b"\xff\x00"[..], b""]).unwrap(),
            Array::zeros(DType::F32, [3, 0]).unwrap(),
            Array::zeros(DType::Str, [0]).unwrap(),
        ] {
            assert_eq!(TensorProto::from_array(&array).to_array().unwrap(), array);
        }
        // A range of rows has only its own strings.
        let rows = Array::from_strings([3], ["a", "b", "c"]).unwrap().rows(1..3).unwrap();
        assert_eq!(TensorProto::from_array(&rows).string_val, [b"b", b"c"]);
    }

    #[test]
    fn the_last_value_repeats_and_none_means_zero() {
        let ints = TensorProto { int_val: vec![1, 2], ..proto(DataType::Int32, &[2, 2]) };
        assert_eq!(ints.to_array().unwrap().as_slice::<i32>().unwrap(), [1, 2, 2, 2]);
        let bytes = TensorProto { int_val: vec![255], ..proto(DataType::Uint8, &[2]) };
        assert_eq!(bytes.to_array().unwrap().as_slice::<u8>().unwrap(), [255, 255]);
        let strings = TensorProto { string_val: vec![b"a".to_vec(), b"b".to_vec()], ..proto(DataType::String, &[3]) };
        assert_eq!(strings.to_array().unwrap().strings().unwrap().collect::<Vec<_>>(), [b"a", b"b", b"b"]);
        assert_eq!(proto(DataType::Bool, &[2]).to_array().unwrap().as_slice::<bool>().unwrap(), [false; 2]);
        let scalar = TensorProto { dtype: DataType::Double.into(), double_val: vec![2.5], ..Default::default() };
        assert_eq!(scalar.to_array().unwrap(), Array::from(2.5f64));
    }

    #[test]
    fn strings_in_one_piece() {
        // Lengths 1, 0, 2, then the bytes.
        let packed = TensorProto { tensor_content: b"\x01\x00\x02abc".to_vec(), ..proto(DataType::String, &[3]) };
        assert_eq!(packed.to_array().unwrap().strings().unwrap().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc"]);
        for content in
            [&b"\x01"[..], b"\x01\x00\x02ab", b"\x01\x00\x02abcd", b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00"]
        {
            let damaged = TensorProto { tensor_content: content.to_vec(), ..proto(DataType::String, &[3]) };
            assert!(damaged.to_array().is_err());
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let huge = 1i64 << 40;
        for (proto, text) in [
            (proto(DataType::Half, &[1]), "DT_HALF"),
            (proto(DataType::Bfloat16, &[1]), "DT_BFLOAT16"),
            (TensorProto { dtype: 77, ..Default::default() }, "element type 77"),
            (proto(DataType::Float, &[2, -1]), "size -1"),
            (proto(DataType::Float, &[1; 9]), "at most 8"),
            (proto(DataType::Float, &[i64::MAX, 2]), "address space"),
            (
                TensorProto { tensor_shape: Some(TensorShapeProto::unknown()), ..proto(DataType::Float, &[]) },
                "unknown shape",
            ),
            (TensorProto { float_val: vec![1.0], ..proto(DataType::Float, &[huge]) }, "limit"),
            (proto(DataType::Bool, &[huge]), "limit"),
            (TensorProto { string_val: vec![vec![0; 1 << 20]], ..proto(DataType::String, &[100]) }, "limit"),
            (TensorProto { tensor_content: vec![0; 12], ..proto(DataType::Float, &[huge]) }, "12 bytes"),
            (TensorProto { tensor_content: vec![0; 12], ..proto(DataType::String, &[huge]) }, "12 bytes"),
            (TensorProto { tensor_content: vec![2], ..proto(DataType::Bool, &[1]) }, "neither 0 nor 1"),
            (TensorProto { float_val: vec![1.0; 3], ..proto(DataType::Float, &[2]) }, "3 values"),
            (TensorProto { int_val: vec![1], ..proto(DataType::Float, &[2]) }, "another type"),
            (TensorProto { int_val: vec![256], ..proto(DataType::Uint8, &[1]) }, "out of its range"),
        ] {
            let error = proto.to_array().unwrap_err().to_string();
            assert!(error.contains(text), "{error} should contain {text}");
        }
    }
}
