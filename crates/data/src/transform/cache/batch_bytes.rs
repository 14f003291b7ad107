//! Encodes batches as bytes, and decodes them. Cache files store rows in this form.
//!
//! A batch is four lists: features, labels, weights (none or one), and missing rows, which are left
//! out if there are none. A list is its length and then, for each entry, a name and a feature. The
//! weights have no name. Missing rows are an array.
//! A feature is 0 and an array, or 1, the number of
//! rows, their lengths, and an array. An array is its type, the number of axes, their sizes, and
//! its numbers as they lie in memory. An array of strings has all lengths and then all bytes
//! instead of numbers. Counts and lengths are varints.

use estimand_tensor::{Array, Batch, DType, Feature, Ragged, Result, Strings, element_count};
use estimand_wire::varint;

/// Encodes a batch.
pub(super) fn encode(batch: &Batch) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for features in [batch.features(), batch.labels()] {
        varint::put(features.len() as u64, &mut out);
        for (name, feature) in features {
            varint::put(name.len() as u64, &mut out);
            out.extend(name.as_bytes());
            match feature {
                Feature::Dense(array) => {
                    out.push(0);
                    put_array(array, &mut out)?;
                }
                Feature::Ragged(ragged) => {
                    out.push(1);
                    varint::put(ragged.n_rows() as u64, &mut out);
                    ragged.row_splits().windows(2).for_each(|ends| varint::put((ends[1] - ends[0]) as u64, &mut out));
                    put_array(ragged.values(), &mut out)?;
                }
            }
        }
    }
    out.push(u8::from(batch.weights().is_some()));
    batch.weights().map_or(Ok(()), |weights| put_array(weights, &mut out))?;
    let n_missing = batch.all_missing().count();
    if n_missing > 0 {
        varint::put(n_missing as u64, &mut out);
    }
    for (name, missing) in batch.all_missing() {
        varint::put(name.len() as u64, &mut out);
        out.extend(name.as_bytes());
        put_array(missing, &mut out)?;
    }
    Ok(out)
}

fn put_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    out.push(code(array.dtype()));
    varint::put(array.rank() as u64, out);
    array.dims().iter().for_each(|&dim| varint::put(dim as u64, out));
    if array.dtype() == DType::Str {
        array.strings()?.for_each(|string| varint::put(string.len() as u64, out));
        array.strings()?.for_each(|string| out.extend(string));
    } else {
        out.extend(array.bytes());
    }
    Ok(())
}

/// Decodes a batch; `None` if the bytes are not one. Allocates no more than the bytes present can
/// fill.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Batch> {
    let bytes = &mut bytes;
    let mut batch = Batch::new();
    for is_label in [false, true] {
        for _ in 0..varint::take(bytes)? {
            let n = length(bytes)?;
            let name = std::str::from_utf8(take(bytes, n)?).ok()?;
            let feature = take_feature(bytes)?;
            let added = if is_label { batch.with_label(name, feature) } else { batch.with_feature(name, feature) };
            batch = added.ok()?;
        }
    }
    if take(bytes, 1)? != [0] {
        batch = batch.with_weights(take_array(bytes)?).ok()?;
    }
    let n_missing = if bytes.is_empty() { 0 } else { varint::take(bytes).filter(|&n| n > 0)? };
    for _ in 0..n_missing {
        let n = length(bytes)?;
        let name = std::str::from_utf8(take(bytes, n)?).ok()?;
        batch = batch.with_missing(name, take_array(bytes)?).ok()?;
    }
    bytes.is_empty().then_some(batch)
}

fn take_feature(bytes: &mut &[u8]) -> Option<Feature> {
    if take(bytes, 1)? == [0] {
        return take_array(bytes).map(Feature::Dense);
    }
    let (mut end, mut splits) = (0i64, vec![0]);
    for _ in 0..varint::take(bytes)? {
        end = end.checked_add_unsigned(varint::take(bytes)?)?;
        splits.push(end);
    }
    Ragged::new(take_array(bytes)?, splits).ok().map(Feature::Ragged)
}

fn take_array(bytes: &mut &[u8]) -> Option<Array> {
    let dtype = dtype(take(bytes, 1)?[0])?;
    let mut dims = Vec::new();
    for _ in 0..varint::take(bytes)? {
        dims.push(length(bytes)?);
    }
    let len = element_count(&dims).ok()?;
    if dtype != DType::Str {
        let numbers = take(bytes, len.checked_mul(dtype.size())?)?;
        return Array::from_bytes(dtype, dims, numbers).ok();
    }
    let mut lengths = Vec::new();
    for _ in 0..len {
        lengths.push(length(bytes)?);
    }
    let mut strings = Strings::default();
    for n in lengths {
        strings.push(take(bytes, n)?);
    }
    Array::from_string_list(dims, strings).ok()
}

fn length(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(varint::take(bytes)?).ok()
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(taken)
}

/// The codes of element types in files. They must never change.
const CODES: [DType; 7] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::Bool, DType::Str];

fn code(dtype: DType) -> u8 {
    CODES.iter().position(|&known| known == dtype).unwrap_or(CODES.len()) as u8
}

fn dtype(code: u8) -> Option<DType> {
    CODES.get(usize::from(code)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch {
        Batch::new()
            .with_feature("x", Array::from_vec([2, 3], vec![0.5f32, -1.0, f32::MAX, 3.0, 4.0, 5.0]).unwrap())
            .unwrap()
            .with_feature("", Array::from_strings([2, 1], [&b"\xff\x00"[..], b""]).unwrap())
            .unwrap()
            .with_feature("tags", Ragged::new(Array::from([7i64, 8, -9]), [0, 3, 3]).unwrap())
            .unwrap()
            .with_feature("none", Array::zeros(DType::U8, [2, 0]).unwrap())
            .unwrap()
            .with_label("y", Array::from([true, false]))
            .unwrap()
            .with_weights(Array::from([0.25f64, 4.0]))
            .unwrap()
    }

    #[test]
    fn batches_come_back() {
        for batch in [batch(), Batch::new()] {
            assert_eq!(decode(&encode(&batch).unwrap()), Some(batch));
        }
        let missing = batch().with_missing("y", Array::from([false, true])).unwrap();
        let bytes = encode(&missing).unwrap();
        assert_eq!(decode(&bytes).unwrap().missing("y"), Some(&Array::from([false, true])));
        let without = encode(&batch()).unwrap().len();
        for n in without + 1..bytes.len() {
            assert_eq!(decode(&bytes[..n]), None, "cut to {n}");
        }
    }

    #[test]
    fn damage_is_a_batch_or_none() {
        let bytes = encode(&batch()).unwrap();
        for n in 0..bytes.len() {
            assert_eq!(decode(&bytes[..n]), None, "cut to {n}");
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[n] = value;
                decode(&changed);
                changed.splice(n..n, [0xff; 8]);
                decode(&changed);
            }
        }
        assert_eq!(decode(&[bytes, vec![0]].concat()), None);
    }
}
