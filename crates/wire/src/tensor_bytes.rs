//! Arrays from encoded tensors and back, without a `TensorProto` between: it has a list for each
//! type, and takes longer to make than the few numbers of a request.

use estimand_tensor::{Array, DType, Dims, Result, Strings, element_count};
use prost::bytes::BufMut;
use prost::encoding::{self, WireType};

use crate::scan::{self, Content};
use crate::{DataType, varint};

/// The numbers of fields that both directions use.
mod field {
    pub(super) const DTYPE: u32 = 1;
    pub(super) const SHAPE: u32 = 2;
    pub(super) const CONTENT: u32 = 4;
    pub(super) const FLOAT: u32 = 5;
    pub(super) const DOUBLE: u32 = 6;
    pub(super) const INT: u32 = 7;
    pub(super) const STRING: u32 = 8;
    pub(super) const INT64: u32 = 10;
    pub(super) const BOOL: u32 = 11;
    /// Inside a shape.
    pub(super) const DIM: u32 = 2;
    /// Inside a dimension.
    pub(super) const SIZE: u32 = 1;
}

/// Reads an encoded `TensorProto` as clients usually send it: each field once, and as many values
/// as the shape requires. The array is that of [`to_array`](crate::TensorProto::to_array).
///
/// Anything else is `None`: decode the message to see what it is.
pub fn read_simple(bytes: &[u8]) -> Option<Array> {
    let (mut dtype, mut dims, mut numbers) = (None, None, None);
    let mut strings: Option<Strings> = None;
    let mut rest = bytes;
    while !rest.is_empty() {
        match scan::next(&mut rest)? {
            (field::DTYPE, Content::Varint(code)) if dtype.is_none() => dtype = Some(code),
            (field::SHAPE, Content::Bytes(shape)) if dims.is_none() => dims = Some(sizes(shape)?),
            (field::STRING, Content::Bytes(string)) => {
                strings.get_or_insert_with(|| Strings::with_capacity(1)).push(string);
            }
            (
                field @ (field::CONTENT | field::FLOAT | field::DOUBLE | field::INT | field::INT64 | field::BOOL),
                Content::Bytes(packed),
            ) if numbers.is_none() => numbers = Some((field, packed)),
            _ => return None,
        }
    }
    let dtype = DataType::try_from(i32::try_from(dtype?).ok()?).ok()?.dtype()?;
    let dims = dims?;
    let n = element_count(&dims).ok()?;
    match (dtype, strings, numbers) {
        (DType::Str, Some(strings), None) if strings.len() == n => Array::from_string_list(dims, strings).ok(),
        (DType::F32, None, Some((field::FLOAT | field::CONTENT, bytes)))
        | (DType::F64, None, Some((field::DOUBLE | field::CONTENT, bytes)))
        | (DType::I32 | DType::I64 | DType::U8 | DType::Bool, None, Some((field::CONTENT, bytes)))
            if !bytes.is_empty() && bytes.len() == n.checked_mul(dtype.size())? =>
        {
            Array::from_bytes(dtype, dims, bytes).ok()
        }
        (DType::I32, None, Some((field::INT, packed))) => {
            Array::from_vec(dims, varints(packed, n, |value| value as i32)?).ok()
        }
        (DType::I64, None, Some((field::INT64, packed))) => {
            Array::from_vec(dims, varints(packed, n, |value| value as i64)?).ok()
        }
        (DType::Bool, None, Some((field::BOOL, packed))) => {
            Array::from_vec(dims, varints(packed, n, |value| value != 0)?).ok()
        }
        _ => None,
    }
}

/// The sizes of a shape without names.
fn sizes(shape: &[u8]) -> Option<Dims> {
    let mut dims = Dims::new();
    let mut rest = shape;
    while !rest.is_empty() {
        let (field::DIM, Content::Bytes(mut dim)) = scan::next(&mut rest)? else { return None };
        let size = match dim {
            // Zeros are left out.
            [] => 0,
            _ => match scan::next(&mut dim)? {
                (field::SIZE, Content::Varint(size)) if dim.is_empty() => i64::try_from(size).ok()?,
                _ => return None,
            },
        };
        dims.push(usize::try_from(size).ok()?);
    }
    Some(dims)
}

/// Exactly `n` packed integers, at least one.
fn varints<T>(packed: &[u8], n: usize, convert: impl Fn(u64) -> T) -> Option<Vec<T>> {
    // An integer takes at least one byte.
    if n == 0 || n > packed.len() {
        return None;
    }
    let mut rest = packed;
    let values = (0..n).map(|_| varint::take(&mut rest).map(&convert)).collect::<Option<Vec<T>>>()?;
    rest.is_empty().then_some(values)
}

/// Appends an array as an encoded `TensorProto`, with its values in the field of their type:
/// clients read `float_val`, not `tensor_content`.
pub fn write(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    encoding::int32::encode(field::DTYPE, &DataType::from(array.dtype()).into(), out);
    let dim = |size: usize| if size == 0 { 0 } else { 1 + encoding::encoded_len_varint(size as u64) };
    let length: usize = array.dims().iter().map(|&size| 2 + dim(size)).sum();
    encoding::encode_key(field::SHAPE, WireType::LengthDelimited, out);
    encoding::encode_varint(length as u64, out);
    for &size in array.dims() {
        encoding::encode_key(field::DIM, WireType::LengthDelimited, out);
        encoding::encode_varint(dim(size) as u64, out);
        if size > 0 {
            encoding::int64::encode(field::SIZE, &(size as i64), out);
        }
    }
    match array.dtype() {
        DType::F32 => encoding::float::encode_packed(field::FLOAT, array.as_slice()?, out),
        DType::F64 => encoding::double::encode_packed(field::DOUBLE, array.as_slice()?, out),
        DType::I32 => encoding::int32::encode_packed(field::INT, array.as_slice()?, out),
        DType::I64 => encoding::int64::encode_packed(field::INT64, array.as_slice()?, out),
        DType::Bool => encoding::bool::encode_packed(field::BOOL, array.as_slice()?, out),
        DType::U8 => {
            let values: Vec<i32> = array.as_slice::<u8>()?.iter().map(|&value| value.into()).collect();
            encoding::int32::encode_packed(field::INT, &values, out);
        }
        DType::Str => {
            for string in array.strings()? {
                encoding::encode_key(field::STRING, WireType::LengthDelimited, out);
                encoding::encode_varint(string.len() as u64, out);
                out.put_slice(string);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::TensorProto;

    fn arrays() -> Vec<Array> {
        vec![
            Array::from([1.5f32, -0.0]),
            Array::from(2.5f32),
            Array::from([1e300]),
            Array::from([i32::MIN, -1, 0, 300]),
            Array::from([i64::MAX, i64::MIN]),
            Array::from([255u8, 0]),
            Array::from([true, false]),
            Array::from_strings([1, 2], [&b"\xff"[..], b""]).unwrap(),
            Array::from_vec([1, 300], vec![7f32; 300]).unwrap(),
            Array::zeros(DType::F32, [0, 3]).unwrap(),
            Array::zeros(DType::Str, [2, 0]).unwrap(),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        for array in arrays() {
            let mut bytes = Vec::new();
            write(&array, &mut bytes).unwrap();
            let proto = TensorProto::decode(&bytes[..]).unwrap();
            assert!(proto.tensor_content.is_empty());
            assert_eq!(proto.encode_to_vec(), bytes, "the bytes are those of the message");
            assert_eq!(proto.to_array().unwrap(), array);
            // Without values the last one would repeat, and bytes are checked: both are left to the
            // message.
            let is_simple = !array.is_empty() && array.dtype() != DType::U8;
            assert_eq!(read_simple(&bytes), is_simple.then_some(array));
        }
    }

    /// Whatever the bytes are: an array that is read is that of the message.
    #[test]
    fn damaged_bytes_are_read_as_the_message_is() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut n_arrays = 0;
        for array in arrays().iter().filter(|array| array.len() < 10) {
            let mut typed = Vec::new();
            write(array, &mut typed).unwrap();
            for bytes in [typed, TensorProto::from_array(array).encode_to_vec()] {
                for _ in 0..if cfg!(miri) { 50 } else { 5_000 } {
                    let mut bytes = bytes.clone();
                    for _ in 0..=next() % 2 {
                        match next() % 4 {
                            0 => bytes.truncate(next() % (bytes.len() + 1)),
                            1 => bytes.insert(next() % (bytes.len() + 1), next() as u8),
                            2 if !bytes.is_empty() => drop(bytes.remove(next() % bytes.len())),
                            _ if !bytes.is_empty() => {
                                let at = next() % bytes.len();
                                bytes[at] ^= 1 << (next() % 8);
                            }
                            _ => {}
                        }
                    }
                    let Some(found) = read_simple(&bytes) else { continue };
                    let expected = TensorProto::decode(&bytes[..]).unwrap().to_array().unwrap();
                    assert_eq!((found.dtype(), found.dims()), (expected.dtype(), expected.dims()), "{bytes:?}");
                    match found.dtype() {
                        DType::Str => assert_eq!(found, expected, "{bytes:?}"),
                        // NaN is not equal to itself.
                        _ => assert_eq!(found.bytes(), expected.bytes(), "{bytes:?}"),
                    }
                    n_arrays += 1;
                }
            }
        }
        assert!(cfg!(miri) || n_arrays > 1_000, "{n_arrays} arrays");
    }
}
