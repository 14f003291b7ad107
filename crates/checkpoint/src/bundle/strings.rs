//! String tensors in a data file: all lengths (varints), a checksum of the lengths, then the bytes
//! of all strings.
//!
//! The checksums cover each length as four bytes, or as eight if it does not fit, and not as the
//! stored varint.

use estimand_wire::crc::Crc;
use estimand_wire::varint;

/// Everything before the bytes of the strings, and the checksum so far.
pub(super) fn header<'a>(strings: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Crc) {
    let mut header = Vec::new();
    let mut crc = Crc::default();
    for string in strings {
        varint::put(string.len() as u64, &mut header);
        add_length(&mut crc, string.len() as u64);
    }
    let checksum = crc.masked().to_le_bytes();
    header.extend(checksum);
    crc.update(&checksum);
    (header, crc)
}

/// Parses the `n` strings in the bytes of a tensor, and computes the checksum of them all.
pub(super) fn parse(mut bytes: &[u8], n: usize) -> Result<(Vec<&[u8]>, Crc), &'static str> {
    let mut crc = Crc::default();
    // A length takes at least one byte, so there cannot be more strings than bytes.
    if n > bytes.len() {
        return Err("its strings are cut off");
    }
    let mut lengths = Vec::with_capacity(n);
    for _ in 0..n {
        let length = varint::take(&mut bytes).ok_or("the lengths of its strings are damaged")?;
        add_length(&mut crc, length);
        lengths.push(length);
    }
    let (checksum, mut rest) = bytes.split_first_chunk::<4>().ok_or("the lengths of its strings are cut off")?;
    if *checksum != crc.masked().to_le_bytes() {
        return Err("the checksum of its strings' lengths is wrong");
    }
    crc.update(checksum);
    let mut strings = Vec::with_capacity(n);
    for length in lengths {
        let (string, after) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or("its strings are cut off")?;
        crc.update(string);
        strings.push(string);
        rest = after;
    }
    if !rest.is_empty() {
        return Err("there are bytes after its strings");
    }
    Ok((strings, crc))
}

fn add_length(crc: &mut Crc, length: u64) {
    match u32::try_from(length) {
        Ok(short) => crc.update(&short.to_le_bytes()),
        Err(_) => crc.update(&length.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(strings: &[&[u8]]) -> Vec<u8> {
        let (mut bytes, _) = header(strings.iter().copied());
        bytes.extend(strings.concat());
        bytes
    }

    #[test]
    fn round_trip() {
        let long = [b'x'; 300];
        let cases: [&[&[u8]]; 3] = [&[], &[b""], &[b"a", b"", &long]];
        for strings in cases {
            let (_, mut crc) = header(strings.iter().copied());
            crc.update(&strings.concat());
            let bytes = stored(strings);
            let (read, read_crc) = parse(&bytes, strings.len()).unwrap();
            assert_eq!((read, read_crc.masked()), (strings.to_vec(), crc.masked()));
        }
    }

    #[test]
    fn damage_is_an_error() {
        let bytes = stored(&[b"ab", b"c"]);
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length], 2).is_err());
        }
        assert!(parse(&bytes, 1).is_err());
        assert!(parse(&bytes, usize::MAX).is_err());
        let mut damaged = bytes.clone();
        damaged[0] = 3;
        assert_eq!(parse(&damaged, 2).unwrap_err(), "the checksum of its strings' lengths is wrong");
        damaged = bytes;
        damaged.push(0);
        assert_eq!(parse(&damaged, 2).unwrap_err(), "there are bytes after its strings");
    }
}
