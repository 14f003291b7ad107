//! Decompresses Snappy's raw format, which TensorFlow accepts in tables.
//!
//! The format is the length of the result (varint), then literals and copies of earlier bytes. The
//! low two bits of a tag select between them.

use estimand_wire::varint;

/// Decompresses bytes; `None` if the input is damaged.
///
/// The output grows with the decoded bytes: a claimed length is checked but never allocated. One
/// input byte makes at most 22 output bytes.
pub(super) fn decompress(mut input: &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(varint::take(&mut input)?).ok()?;
    let mut out = Vec::new();
    while let Some(tag) = little_endian(&mut input, 1) {
        let upper = tag >> 2;
        match tag & 3 {
            0 => {
                // Up to 59, this is the length less one. Above, it is the number of bytes that hold
                // the length.
                let n = if upper < 60 { upper } else { little_endian(&mut input, upper - 59)? } + 1;
                let (literal, rest) = input.split_at_checked(n)?;
                out.extend_from_slice(literal);
                input = rest;
            }
            1 => copy(&mut out, ((upper >> 3) << 8) | little_endian(&mut input, 1)?, (upper & 7) + 4)?,
            2 => copy(&mut out, little_endian(&mut input, 2)?, upper + 1)?,
            _ => copy(&mut out, little_endian(&mut input, 4)?, upper + 1)?,
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

/// Appends `n` bytes copied from `offset` before the end. They may include bytes just written.
fn copy(out: &mut Vec<u8>, offset: usize, n: usize) -> Option<()> {
    let start = out.len().checked_sub(offset).filter(|_| offset > 0)?;
    for i in start..start + n {
        out.push(out[i]);
    }
    Some(())
}

/// Takes a number of up to four bytes.
fn little_endian(input: &mut &[u8], n: usize) -> Option<usize> {
    let (bytes, rest) = input.split_at_checked(n)?;
    *input = rest;
    let value = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    usize::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_by_hand() {
        // Literal "abcd" (tag 3 << 2), copy of 20 from 4 before (19 << 2 | 2, offset in two bytes),
        // literal "!".
        let compressed = b"\x19\x0cabcd\x4e\x04\x00\x00!";
        assert_eq!(decompress(compressed).unwrap(), b"abcdabcdabcdabcdabcdabcd!");
        // Literal "x", copy of 7 from 1 before with a one-byte offset ((7 - 4) << 2 | 1).
        assert_eq!(decompress(b"\x08\x00x\x0d\x01").unwrap(), b"xxxxxxxx");
        // A literal of 70 bytes has its length less one in the next byte (60 << 2).
        let mut long = vec![70, 0xf0, 69];
        long.extend([b'z'; 70]);
        assert_eq!(decompress(&long).unwrap(), [b'z'; 70]);
        // A copy with a four-byte offset.
        assert_eq!(decompress(b"\x03\x04ab\x03\x02\x00\x00\x00").unwrap(), b"aba");
        assert_eq!(decompress(b"\x00").unwrap(), b"");
    }

    #[test]
    fn damage_is_none() {
        for input in [
            &b""[..],
            b"\x05\x0cabcd",                         // shorter than claimed
            b"\x03\x0cabcd",                         // longer than claimed
            b"\x04\x0cabc",                          // the literal is cut
            b"\x08\x00x\x0d\x02",                    // from before the beginning
            b"\x08\x00x\x0d\x00",                    // from nowhere
            b"\x08\x00x\x0d",                        // the offset is cut
            b"\x08\xfc\xff\xff\xff\xff",             // a literal of 4 GiB
            b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", // a claim of 2^62 bytes
        ] {
            assert_eq!(decompress(input), None, "{input:?}");
        }
    }
}
