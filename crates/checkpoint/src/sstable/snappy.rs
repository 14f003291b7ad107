//! Blocks packed by Snappy, reading only: TensorFlow reads tables compressed with it.

/// The most bytes that one packed byte can become: a tag and an offset of two bytes copy 64.
const MAX_EXPANSION: usize = 22;

/// The unpacked bytes, or what is wrong with the input.
///
/// The length that the input claims is compared with its own length before anything is allocated.
pub(super) fn decompress(input: &[u8]) -> Result<Vec<u8>, String> {
    let length = snap::raw::decompress_len(input).map_err(|e| e.to_string())?;
    if length > input.len().saturating_mul(MAX_EXPANSION) {
        return Err(format!("{} compressed bytes cannot hold {length} bytes", input.len()));
    }
    snap::raw::Decoder::new().decompress_vec(input).map_err(|e| e.to_string())
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
    fn damage_is_an_error() {
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
            assert!(decompress(input).is_err(), "{input:?}");
        }
    }

    /// A claim is refused by its size alone, and 64 bytes for each copy of three are not.
    #[test]
    fn claims_are_held_against_the_length_of_the_input() {
        // 2^31 bytes in 6.
        let error = decompress(b"\x80\x80\x80\x80\x08\x00").unwrap_err();
        assert_eq!(error, "6 compressed bytes cannot hold 2147483648 bytes");
        // Literal "x", then 1,000 copies of 64 bytes from 1 before.
        let mut dense = vec![0x81, 0xf4, 0x03, 0x00, b'x'];
        dense.extend([0xfe, 0x01, 0x00].repeat(1_000));
        assert_eq!(decompress(&dense).unwrap(), [b'x'; 64_001]);
    }
}
