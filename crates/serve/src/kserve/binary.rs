//! Values as bytes: numbers in little-endian order, strings each after its length of four bytes.

use estimand_tensor::{Array, DType, Strings};

use crate::status::{Answer, Status};

/// Reads the bytes of an input.
pub(crate) fn read(name: &str, dtype: DType, shape: &[usize], bytes: &[u8]) -> Answer<Array> {
    let wrong = |error: estimand_tensor::Error| Status::invalid(format!("input `{name}`: {error}"));
    if dtype != DType::Str {
        // The size is compared before an array of the claimed shape is made.
        let expected = estimand_tensor::element_count(shape).map_err(wrong)?.saturating_mul(dtype.size());
        if expected != bytes.len() {
            return Err(Status::invalid(format!(
                "input `{name}` of {}{shape:?} has {} bytes of binary data; expected {expected}",
                super::datatype(dtype),
                bytes.len()
            )));
        }
        return Array::from_bytes(dtype, shape, bytes).map_err(wrong);
    }
    let mut strings = Strings::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let cut = || Status::invalid(format!("the binary data of input `{name}` end inside of a string"));
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let (string, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
        strings.push(string);
        rest = after;
    }
    Array::from_string_list(shape, strings).map_err(wrong)
}

/// Appends the bytes of an output.
pub(crate) fn write(array: &Array, out: &mut Vec<u8>) -> Answer<()> {
    if array.dtype() != DType::Str {
        out.extend_from_slice(array.bytes());
        return Ok(());
    }
    for string in array.strings()? {
        let length = u32::try_from(string.len()).map_err(|_| Status::invalid("a string is longer than 4 GiB"))?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(string);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        for array in [
            Array::from([1.5f32, f32::NAN.copysign(1.0)]),
            Array::from_vec([2, 1], vec![1i64, -1]).unwrap(),
            Array::from([true, false]),
            Array::from_strings([2], [&b"\xff"[..], b""]).unwrap(),
            Array::zeros(DType::Str, [0]).unwrap(),
        ] {
            let mut bytes = Vec::new();
            write(&array, &mut bytes).unwrap();
            let back = read("x", array.dtype(), array.dims(), &bytes).unwrap();
            assert_eq!((back.bytes(), back.dims()), (array.bytes(), array.dims()));
        }
        for (dtype, shape, bytes, text) in [
            (DType::F32, &[1usize << 40][..], &b"1234"[..], "has 4 bytes of binary data"),
            (DType::F32, &[2], b"1234", "expected 8"),
            (DType::Bool, &[1], b"\x02", "neither 0 nor 1"),
            (DType::Str, &[1], b"\xff\xff\xff\x7fabc", "end inside of a string"),
            (DType::Str, &[1], b"\0\0", "end inside of a string"),
            (DType::Str, &[2], b"\0\0\0\0", "1 elements were given"),
        ] {
            let message = read("x", dtype, shape, bytes).unwrap_err().message;
            assert!(message.contains(text), "{message}");
        }
    }
}
