//! A range of a list of byte strings. String kernels read this type.

use std::fmt;
use std::ops::Range;

/// Byte strings lent by a [`Strings`](crate::Strings) or an array: all of them or a range.
#[derive(Clone, Copy)]
pub struct StringSlice<'a> {
    /// Offsets from the start of `bytes`. They are never empty and never decrease; the last is at
    /// most `bytes.len()`.
    offsets: &'a [u64],
    bytes: &'a [u8],
}

impl<'a> StringSlice<'a> {
    /// The strings between these offsets. The offsets must not decrease or pass the end of the
    /// bytes.
    #[inline]
    pub(super) fn of(offsets: &'a [u64], bytes: &'a [u8]) -> StringSlice<'a> {
        debug_assert!(offsets.is_sorted() && offsets.last().is_some_and(|&end| end <= bytes.len() as u64));
        StringSlice { offsets, bytes }
    }

    /// The number of strings.
    #[inline]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The string at an index.
    ///
    /// # Panics
    /// If there is no such string, as indexing a slice does.
    #[inline]
    pub fn get(&self, i: usize) -> &'a [u8] {
        &self.bytes[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// A range of the strings.
    ///
    /// # Panics
    /// If the range passes the end, as slicing a slice does.
    pub fn range(&self, range: Range<usize>) -> StringSlice<'a> {
        StringSlice { offsets: &self.offsets[range.start..=range.end], bytes: self.bytes }
    }

    /// The starts and ends of strings in [`bytes`](StringSlice::bytes); one longer than the slice.
    /// The first need not be 0.
    #[inline]
    pub fn offsets(&self) -> &'a [u64] {
        self.offsets
    }

    /// The bytes that the offsets refer to, including those before and after this range.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of the strings of this range only.
    pub fn packed_bytes(&self) -> &'a [u8] {
        &self.bytes[self.offsets[0] as usize..self.offsets[self.len()] as usize]
    }

    /// The strings in order.
    #[inline]
    pub fn iter(&self) -> StringIter<'a> {
        StringIter { ends: self.offsets[1..].iter(), start: self.offsets[0] as usize, bytes: self.bytes }
    }
}

/// An iterator over the strings of a slice, in order.
#[derive(Clone)]
pub struct StringIter<'a> {
    ends: std::slice::Iter<'a, u64>,
    start: usize,
    bytes: &'a [u8],
}

impl<'a> Iterator for StringIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = *self.ends.next()? as usize;
        let string = &self.bytes[self.start..end];
        self.start = end;
        Some(string)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ends.size_hint()
    }
}

impl ExactSizeIterator for StringIter<'_> {}

impl<'a> IntoIterator for StringSlice<'a> {
    type Item = &'a [u8];
    type IntoIter = StringIter<'a>;
    fn into_iter(self) -> StringIter<'a> {
        self.iter()
    }
}

/// Equal strings in equal order, wherever they are stored.
impl PartialEq for StringSlice<'_> {
    fn eq(&self, other: &StringSlice<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for StringSlice<'_> {}

impl fmt::Debug for StringSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|string| string.escape_ascii().to_string())).finish()
    }
}
