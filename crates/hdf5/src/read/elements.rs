//! Stored elements become arrays.

use estimand_tensor::{Array, DType, Element, Error, Limits, Result, Strings, element_count};

use super::file::File;
use super::heap::StringReader;
use super::message::datatype::{Datatype, Order, Padding};
use super::storage::Storage;

/// Reads an array.
pub(super) fn read(datatype: &Datatype, dims: &[usize], storage: &Storage<'_>, file: &File) -> Result<Array> {
    match *datatype {
        Datatype::Float { size: 2, order } => {
            numbers(dims, storage, 2, |b| Ok(half(u16::from_le_bytes(word(b, order)))))
        }
        Datatype::Float { size: 4, order } => numbers(dims, storage, 4, |b| Ok(f32::from_le_bytes(word(b, order)))),
        Datatype::Float { order, .. } => numbers(dims, storage, 8, |b| Ok(f64::from_le_bytes(word(b, order)))),
        Datatype::Integer { size, is_signed, order } => integers(dims, storage, size, is_signed, order),
        Datatype::Bool => numbers(dims, storage, 1, |bytes| match bytes[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::data(format!("a boolean is {other}, expected 0 or 1"))),
        }),
        Datatype::FixedString { size, padding } => {
            let raw = raw(dims, storage, size, &file.limits)?;
            let mut strings = reserved(dims)?;
            raw.chunks_exact(size).for_each(|bytes| strings.push(trim(bytes, padding)));
            Array::from_string_list(dims, strings)
        }
        Datatype::VariableString { size } => {
            let raw = raw(dims, storage, size, &file.limits)?;
            let mut reader = StringReader::new(&file.source, &file.heaps);
            let mut strings = reserved(dims)?;
            let mut total = 0;
            for element in raw.chunks_exact(size) {
                let string = reader.string(element)?;
                // Many elements may refer to one long string.
                total += string.len() as u64;
                file.limits.check_unpacked(total, "the strings of a value")?;
                file.limits.check_ratio(total, file.source.len())?;
                strings.push(string);
            }
            Array::from_string_list(dims, strings)
        }
    }
}

/// Integers become the narrowest of our types that holds all values of theirs.
fn integers(dims: &[usize], storage: &Storage<'_>, size: usize, is_signed: bool, order: Order) -> Result<Array> {
    match (size, is_signed) {
        (1, false) => numbers(dims, storage, size, |b| Ok(b[0])),
        (1, true) => numbers(dims, storage, size, |b| Ok(i32::from(b[0] as i8))),
        (2, false) => numbers(dims, storage, size, |b| Ok(i32::from(u16::from_le_bytes(word(b, order))))),
        (2, true) => numbers(dims, storage, size, |b| Ok(i32::from(i16::from_le_bytes(word(b, order))))),
        (4, false) => numbers(dims, storage, size, |b| Ok(i64::from(u32::from_le_bytes(word(b, order))))),
        (4, true) => numbers(dims, storage, size, |b| Ok(i32::from_le_bytes(word(b, order)))),
        (_, true) => numbers(dims, storage, size, |b| Ok(i64::from_le_bytes(word(b, order)))),
        (_, false) => numbers(dims, storage, size, |bytes| {
            let value = u64::from_le_bytes(word(bytes, order));
            i64::try_from(value).map_err(|_| Error::unsupported(format!("{value} does not fit into i64")))
        }),
    }
}

/// An array of numbers. The memory is reserved once; the stored elements pass by in pieces.
fn numbers<T: Element>(
    dims: &[usize],
    storage: &Storage<'_>,
    size: usize,
    convert: impl Fn(&[u8]) -> Result<T>,
) -> Result<Array> {
    let fill = match &storage.fill {
        Some(bytes) => convert(bytes)?,
        None => T::default(),
    };
    let mut values = filled(element_count(dims)?, fill)?;
    storage.runs(&mut |start, bytes| {
        for (value, bytes) in values[start..].iter_mut().zip(bytes.chunks_exact(size)) {
            *value = convert(bytes)?;
        }
        Ok(())
    })?;
    Array::from_vec(dims, values)
}

/// The stored bytes of all elements.
fn raw(dims: &[usize], storage: &Storage<'_>, size: usize, limits: &Limits) -> Result<Vec<u8>> {
    let len = element_count(dims)?;
    limits.check_unpacked(len as u64 * size as u64, "the strings of a value")?;
    let mut bytes = filled(len * size, 0u8)?;
    if let Some(fill) = &storage.fill {
        bytes.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(fill));
    }
    storage.runs(&mut |start, run| {
        bytes[start * size..][..run.len()].copy_from_slice(run);
        Ok(())
    })?;
    Ok(bytes)
}

fn filled<T: Clone>(n: usize, value: T) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(n).map_err(|_| no_memory(n, size_of::<T>()))?;
    values.resize(n, value);
    Ok(values)
}

fn reserved(dims: &[usize]) -> Result<Strings> {
    let len = element_count(dims)?;
    // As for numbers: an error rather than an abort.
    Vec::<u64>::new().try_reserve_exact(len).map_err(|_| no_memory(len, DType::I64.size()))?;
    Ok(Strings::with_capacity(len))
}

fn no_memory(n: usize, size: usize) -> Error {
    Error::data(format!("there is not enough memory for {n} elements of {size} bytes"))
}

/// A string of fixed length without its padding.
fn trim(bytes: &[u8], padding: Padding) -> &[u8] {
    let without = |pad| bytes.iter().rposition(|&byte| byte != pad).map_or(0, |last| last + 1);
    match padding {
        Padding::Terminated => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
        Padding::Zeros => &bytes[..without(0)],
        Padding::Spaces => &bytes[..without(b' ')],
    }
}

/// The bytes of a number, the lowest first.
fn word<const N: usize>(bytes: &[u8], order: Order) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(bytes);
    if order == Order::Big {
        word.reverse();
    }
    word
}

/// A 16-bit float of IEEE 754 as an `f32`, which holds all of them exactly.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, mantissa) = (u32::from(bits >> 10 & 31), u32::from(bits & 0x3ff));
    match exponent {
        // Subnormal: a multiple of 2 to the power of -24.
        0 => f32::from_bits((mantissa as f32 / 16_777_216.0).to_bits() | sign),
        31 => f32::from_bits(sign | 0x7f80_0000 | mantissa << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        // The examples of IEEE 754's binary16: 1, -2, the largest, the smallest normal and
        // subnormal numbers, and a third.
        let cases = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
        ];
        for (bits, value) in cases {
            assert_eq!(half(bits), value, "{bits:04x}");
        }
        assert_eq!(half(0x8000).to_bits(), (-0f32).to_bits());
        assert_eq!(half(0xfc00), f32::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn strings_lose_their_padding() {
        assert_eq!(trim(b"a\0b\0\0", Padding::Terminated), b"a");
        assert_eq!(trim(b"a\0b\0\0", Padding::Zeros), b"a\0b");
        assert_eq!(trim(b" a  ", Padding::Spaces), b" a");
        assert_eq!(trim(b"\0\0", Padding::Zeros), b"");
    }
}
