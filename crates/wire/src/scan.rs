//! Reads the fields of encoded bytes without decoding them, and counts messages.
//!
//! An empty message takes two bytes in a file and hundreds in memory, so readers count messages
//! first.

use crate::varint;

/// Counts the length-delimited fields at a path of field numbers: `[2, 1]` counts the fields 1 of
/// all fields 2.
///
/// Bytes that are not a message end the count of the message that holds them; decoding will refuse
/// them.
///
/// ```
/// use estimand_wire::{GraphDef, Message, NodeDef, scan};
/// let graph = GraphDef { node: vec![NodeDef::new("x", "NoOp"); 3], ..Default::default() };
/// assert_eq!(scan::count(&graph.encode_to_vec(), &[1]), 3);
/// ```
pub fn count(bytes: &[u8], path: &[u32]) -> usize {
    let Some((&wanted, rest)) = path.split_first() else { return 0 };
    let mut bytes = bytes;
    let mut n = 0;
    while let Some((field, content)) = next(&mut bytes) {
        match content {
            Content::Bytes(_) if field == wanted && rest.is_empty() => n += 1,
            Content::Bytes(content) if field == wanted => n += count(content, rest),
            _ => {}
        }
    }
    n
}

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// An integer.
    Varint(u64),
    /// Length-delimited.
    Bytes(&'a [u8]),
    /// Of 4 or 8 bytes.
    Fixed,
}

/// Takes the next field: its number and its content; `None` at the end, and if the bytes are not a
/// message.
pub fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u32, Content<'a>)> {
    let key = varint::take(bytes)?;
    let field = u32::try_from(key >> 3).ok()?;
    let skip = |bytes: &mut &'a [u8], n: usize| {
        let (content, rest) = bytes.split_at_checked(n)?;
        *bytes = rest;
        Some(content)
    };
    let content = match key & 7 {
        0 => Content::Varint(varint::take(bytes)?),
        1 => skip(bytes, 8).map(|_| Content::Fixed)?,
        2 => {
            let len = usize::try_from(varint::take(bytes)?).ok()?;
            Content::Bytes(skip(bytes, len)?)
        }
        5 => skip(bytes, 4).map(|_| Content::Fixed)?,
        // None of TensorFlow's messages has groups.
        _ => return None,
    };
    Some((field, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_along_a_path() {
        // Field 1 twice, the first with two fields 2 inside, of 0 and 1 bytes. Between them a
        // varint, 8 bytes and 4 bytes.
        let bytes =
            [0x0a, 5, 0x12, 0, 0x12, 1, 7, 0x18, 0x96, 1, 0x21, 0, 0, 0, 0, 0, 0, 0, 0, 0x2d, 0, 0, 0, 0, 0x0a, 0];
        assert_eq!((count(&bytes, &[1]), count(&bytes, &[1, 2]), count(&bytes, &[3])), (2, 2, 0));
        assert_eq!(count(&bytes, &[]), 0);
        // Truncated bytes, a length beyond the end, and a group.
        assert_eq!(count(&bytes[..9], &[1]), 1);
        assert_eq!(count(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], &[1]), 0);
        assert_eq!(count(&[0x0b, 0x0a, 0], &[1]), 0);
    }
}
