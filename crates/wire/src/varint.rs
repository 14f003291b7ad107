//! Variable-length integers: seven bits per byte, the lowest first. The top bit is set on all bytes
//! but the last.
//!
//! `prost` reads protobuf's own varints; these are for the tables and strings of checkpoints.

/// Appends an integer.
pub fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes an integer from the front; `None` if it is incomplete or exceeds `u64::MAX`.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    match bytes.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *bytes = rest;
            Some(byte.into())
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if i == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_by_hand() {
        // 300 = 0b10_0101100: the low seven bits with the top bit set, then the rest.
        for (value, bytes) in [(0, &[0][..]), (127, &[127]), (128, &[0x80, 1]), (300, &[0b1010_1100, 0b10])] {
            let mut out = Vec::new();
            put(value, &mut out);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn inverts_and_leaves_the_rest() {
        for value in (0..64).flat_map(|shift| [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift]) {
            let mut out = Vec::new();
            put(value, &mut out);
            out.push(0xff);
            let mut rest = out.as_slice();
            assert_eq!((take(&mut rest), rest), (Some(value), &[0xff][..]));
        }
    }

    #[test]
    fn incomplete_or_too_large() {
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        for mut bytes in [&[][..], &[0x80], &[0xff; 9], &[0xff; 10], &too_large] {
            assert_eq!(take(&mut bytes), None);
        }
    }
}
