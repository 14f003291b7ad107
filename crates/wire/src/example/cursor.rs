//! A cursor over protobuf's wire format, which reads borrowed bytes in place.

/// Wire types.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const DELIMITED: u8 = 2;
pub(super) const FIXED32: u8 = 5;

/// The tag byte of field `number`, for numbers below 16.
pub(super) const fn tag(number: u8, wire: u8) -> u8 {
    number << 3 | wire
}

/// The bytes left to read. Every method returns `None` if the bytes end too early.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor(bytes)
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Option<u64> {
        match self.0 {
            [first @ 0..0x80, rest @ ..] => {
                self.0 = rest;
                Some(u64::from(*first))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for (i, &byte) in self.0.iter().take(10).enumerate() {
            // Only one bit of the tenth byte fits; protobuf drops the others, as this shift does.
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.0 = &self.0[i + 1..];
                return Some(value);
            }
        }
        None
    }

    /// Takes a length and then that number of bytes.
    #[inline]
    pub(super) fn delimited(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn fixed32(&mut self) -> Option<[u8; 4]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// Takes the number and wire type of the next field. Number 0 is invalid.
    pub(super) fn field(&mut self) -> Option<(u64, u8)> {
        let tag = self.varint()?;
        (tag >> 3 != 0).then_some((tag >> 3, tag as u8 & 7))
    }

    /// Skips the contents of a field. Groups, which have been out of use for twenty years, are
    /// refused as in TensorFlow.
    pub(super) fn skip(&mut self, wire: u8) -> Option<()> {
        match wire {
            VARINT => self.varint().map(drop),
            FIXED64 => self.0.split_at_checked(8).map(|(_, rest)| self.0 = rest),
            DELIMITED => self.delimited().map(drop),
            FIXED32 => self.fixed32().map(drop),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_by_hand() {
        // 300 = 0b10_0101100. Ten bytes hold 64 bits: nine times seven and one; the other bits of
        // the tenth byte are dropped.
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        for (bytes, value) in [
            (&[0][..], Some(0)),
            (&[0x7f], Some(127)),
            (&[0xac, 2], Some(300)),
            (&[0x80, 0x80, 0], Some(0)),
            (&most, Some(u64::MAX)),
            (&[0xff; 11], None),
            (&[0x80], None),
            (&[], None),
        ] {
            assert_eq!(Cursor::new(bytes).varint(), value, "{bytes:?}");
        }
    }

    #[test]
    fn skipping() {
        // Field 1 of each wire type, then a byte that must remain.
        for (bytes, left) in [
            (&[8, 0x80, 1, 7][..], Some(1)),
            (&[9, 0, 0, 0, 0, 0, 0, 0, 0, 7], Some(1)),
            (&[10, 2, 0, 0, 7], Some(1)),
            (&[13, 0, 0, 0, 0, 7], Some(1)),
            (&[11, 12], None),
            (&[12], None),
            (&[14, 0], None),
            (&[10, 3, 0, 0], None),
            (&[9, 0], None),
            (&[13, 0], None),
            (&[2, 0], None),
        ] {
            let mut cursor = Cursor::new(bytes);
            let skipped = cursor.field().and_then(|(_, wire)| cursor.skip(wire));
            assert_eq!(skipped.map(|()| cursor.0.len()), left, "{bytes:?}");
        }
    }
}
