//! Extracts parts of strings by position and length: `Substr`.

use std::ops::Range;

use super::Unit;
use super::utf8::{back, forward};
use crate::{Error, Result, StringSlice, Strings};

/// Appends to `out` the part of each string that starts at `positions` and has `lengths`.
///
/// There are as many positions and lengths as strings, or one for all. A negative position counts
/// from the end; a position beyond an end is an error. A length beyond the end is cut off.
///
/// `first` is the position of the first result in the whole array, for messages.
pub fn substr(
    strings: StringSlice<'_>,
    positions: &[i64],
    lengths: &[i64],
    unit: Unit,
    first: usize,
    out: &mut Strings,
) -> Result<()> {
    let counts = [strings.len(), positions.len(), lengths.len()];
    let n = counts.into_iter().find(|&n| n != 1).unwrap_or(1);
    if counts.into_iter().any(|count| count != 1 && count != n) {
        return Err(Error::shape(format!(
            "substr was given {} strings, {} positions and {} lengths; expected equal numbers, or 1",
            counts[0], counts[1], counts[2]
        )));
    }
    let one_or = |count: usize, i: usize| if count == 1 { 0 } else { i };
    for i in 0..n {
        let string = strings.get(one_or(counts[0], i));
        let (position, length) = (positions[one_or(counts[1], i)], lengths[one_or(counts[2], i)]);
        let range = match unit {
            Unit::Byte => byte_range(string.len(), position, length),
            Unit::Utf8Char => char_range(string, position, length),
        };
        let range = range.ok_or_else(|| out_of_range(string, position, length, first + i))?;
        out.push(&string[range]);
    }
    Ok(())
}

fn byte_range(size: usize, position: i64, length: i64) -> Option<Range<usize>> {
    let magnitude = usize::try_from(position.unsigned_abs()).ok().filter(|&magnitude| magnitude <= size)?;
    let start = if position < 0 { size - magnitude } else { magnitude };
    // TF: a negative length means all the rest.
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    Some(start..start.saturating_add(length).min(size))
}

fn char_range(string: &[u8], position: i64, length: i64) -> Option<Range<usize>> {
    if position >= 0 {
        let (start, moved) = forward(string, 0, position as u64);
        // TF: a negative length gives an empty string here, but all the rest when counting bytes.
        let (end, _) = forward(string, start, u64::try_from(length).unwrap_or(0));
        return (moved == position as u64).then_some(start..end);
    }
    // TF: a negative length from the end is out of range.
    let length = u64::try_from(length).ok()?;
    let from_end = position.unsigned_abs();
    let behind = from_end.saturating_sub(length);
    let (end, moved_behind) = back(string, string.len(), behind);
    let (start, moved) = back(string, end, from_end - behind);
    (moved_behind + moved == from_end).then_some(start..end)
}

#[cold]
fn out_of_range(string: &[u8], position: i64, length: i64, index: usize) -> Error {
    const SHOWN: usize = 80;
    let more = if string.len() > SHOWN { "..." } else { "" };
    Error::index(format!(
        "substr from {position} of length {length} is out of range for \"{}\"{more} of {} bytes, at position {index}",
        string[..string.len().min(SHOWN)].escape_ascii(),
        string.len()
    ))
}
