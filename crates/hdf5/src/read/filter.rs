//! Undoes the filters of a chunk.

use std::borrow::Cow;
use std::io::Read;

use estimand_tensor::{Error, Result};
use flate2::read::ZlibDecoder;

use super::message::pipeline::Filter;

/// The bytes of a chunk before the filters were applied. There must be `expected` of them.
///
/// A bit of `mask` marks a filter that this chunk did not pass.
pub(super) fn undo<'a>(
    filters: &[Filter],
    mask: u32,
    packed: Cow<'a, [u8]>,
    expected: usize,
    element_size: usize,
) -> Result<Cow<'a, [u8]>> {
    let mut bytes = packed;
    for (i, filter) in filters.iter().enumerate().rev() {
        if mask >> i & 1 == 0 {
            bytes = Cow::Owned(match filter {
                Filter::Deflate => inflate(&bytes, expected)?,
                Filter::Shuffle => unshuffle(&bytes, element_size),
            });
        }
    }
    if bytes.len() != expected {
        return Err(Error::data(format!("a chunk has {} bytes, expected {expected}", bytes.len())));
    }
    Ok(bytes)
}

/// Unpacks at most one byte more than expected.
fn inflate(packed: &[u8], expected: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let capacity = expected.saturating_add(1);
    bytes
        .try_reserve_exact(capacity)
        .map_err(|_| Error::data(format!("there is no memory for a chunk of {expected} bytes")))?;
    let mut decoder = ZlibDecoder::new(packed).take(capacity as u64);
    decoder.read_to_end(&mut bytes).map_err(|error| {
        Error::data(format!("a chunk of {} packed bytes cannot be unpacked: {error}", packed.len()))
            .help("the file is damaged")
    })?;
    Ok(bytes)
}

/// Shuffled bytes: first all first bytes of the elements, then all second bytes, and so on. What
/// does not fill an element stays at the end.
fn unshuffle(bytes: &[u8], element_size: usize) -> Vec<u8> {
    let n = bytes.len() / element_size;
    let mut out = bytes.to_vec();
    if n > 0 {
        for (j, plane) in bytes[..n * element_size].chunks_exact(n).enumerate() {
            for (i, &byte) in plane.iter().enumerate() {
                out[i * element_size + j] = byte;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_become_elements() {
        // Two elements of three bytes, and a byte that is left over.
        assert_eq!(unshuffle(b"adbecf!", 3), b"abcdef!");
        assert_eq!(unshuffle(b"ab", 3), b"ab");
        assert_eq!(unshuffle(b"ab", 1), b"ab");
    }
}
