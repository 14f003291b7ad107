//! The checksum of every TensorFlow file: CRC-32C (Castagnoli), masked.
//!
//! The mask exists because records nest: a checksum of bytes that contain their own checksum is
//! weak.

const MASK_DELTA: u32 = 0xa282_ead8;

/// Masks a plain CRC-32C for storage in files.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// The inverse of [`mask`].
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// The masked checksum of some bytes.
pub fn masked_crc32c(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

/// A checksum that is computed piece by piece.
#[derive(Clone, Copy, Default, Debug)]
pub struct Crc(u32);

impl Crc {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// The masked checksum of all bytes so far.
    pub fn masked(self) -> u32 {
        mask(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums() {
        // RFC 3720, appendix B.4: 32 bytes of zeros, 32 bytes of ones.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c::crc32c(&[0xff; 32]), 0x62a8_ab43);
        // By hand: 0x8a9136aa rotated right by 15 is 0x6d551522; plus 0xa282ead8, modulo 2^32.
        assert_eq!(masked_crc32c(&[0; 32]), 0x0fd7_fffa);
    }

    #[test]
    fn pieces_and_mask_invert() {
        let mut crc = Crc::default();
        crc.update(b"abc");
        crc.update(b"");
        crc.update(b"def");
        assert_eq!(crc.masked(), masked_crc32c(b"abcdef"));
        for value in [0, 1, 0xdead_beef, u32::MAX] {
            assert_eq!(unmask(mask(value)), value);
        }
    }
}
