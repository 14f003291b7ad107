//! Lists of byte strings in contiguous memory: offsets and bytes.
//!
//! [`Strings`] owns a list and can grow; [`StringSlice`] is a borrowed range of one, which kernels
//! take. An [`Array`] of strings shares one list with its row ranges and lends them as slices.
//!
//! ```
//! # use estimand_tensor::{Array, Strings};
//! let mut names = Strings::with_capacity(3);
//! names.push(b"wide");
//! names.extend(["and", "deep"]);
//! let array = Array::from_string_list([3], names)?;
//! assert_eq!(array.rows(1..3)?.string_slice()?.get(1), b"deep");
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! [`Array`]: crate::Array

mod slice;

pub use slice::{StringIter, StringSlice};

use std::fmt;
use std::ops::Range;

use crate::cpu::prefetch;
use crate::{Error, Result};

/// Strings up to this length are copied with one load and one store.
const SHORT: usize = 16;

/// Copies a range of bytes. After the range, `to` has room for `SHORT` more bytes.
#[inline]
fn copy(to: &mut [u8], from: &[u8], range: Range<usize>) {
    match from.get(range.start..range.start + SHORT) {
        Some(chunk) if range.len() <= SHORT => to[..SHORT].copy_from_slice(chunk),
        _ => to[..range.len()].copy_from_slice(&from[range]),
    }
}

/// A list of byte strings. They need not be UTF-8: the bytes of a file are kept unchanged.
#[derive(Clone)]
pub struct Strings {
    /// Offsets that never decrease, one longer than the list; string `i` is
    /// `bytes[offsets[i]..offsets[i + 1]]`. The first is 0.
    offsets: Vec<u64>,
    /// The finished strings, followed by the parts of the string being written.
    bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    /// An empty list with room for `n` strings.
    pub fn with_capacity(n: usize) -> Strings {
        let mut offsets = Vec::with_capacity(n.saturating_add(1));
        offsets.push(0);
        Strings { offsets, bytes: Vec::new() }
    }

    /// Makes room for `n` more bytes of strings.
    pub fn reserve_bytes(&mut self, n: usize) {
        self.bytes.reserve(n);
    }

    /// Takes ownership of a list in the form of a file or another library: string `i` is
    /// `bytes[offsets[i]..offsets[i + 1]]`.
    ///
    /// The offsets must begin at 0, never decrease, and end at the number of bytes.
    pub fn from_parts(offsets: Vec<u64>, bytes: Vec<u8>) -> Result<Strings> {
        let bad = |what: String| Err(Error::shape(format!("invalid string offsets: {what}")));
        match (offsets.first(), offsets.last()) {
            (None, _) | (_, None) => return bad("empty; expected at least [0]".into()),
            (Some(&first), _) if first != 0 => return bad(format!("begin at {first}, expected 0")),
            (_, Some(&last)) if last != bytes.len() as u64 => {
                return bad(format!("end at {last}, but there are {} bytes", bytes.len()));
            }
            _ => {}
        }
        if let Some(i) = offsets.windows(2).position(|w| w[0] > w[1]) {
            return bad(format!("fall from {} to {} at string {i}", offsets[i], offsets[i + 1]));
        }
        Ok(Strings { offsets, bytes })
    }

    /// The offsets and the bytes.
    pub fn into_parts(mut self) -> (Vec<u64>, Vec<u8>) {
        self.bytes.truncate(self.byte_len());
        (self.offsets, self.bytes)
    }

    /// Appends one string. If parts were [written](Strings::write) before, the string is appended
    /// to them as the last part.
    #[inline]
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.finish();
    }

    /// Appends bytes to the string being written; [`finish`](Strings::finish) ends it. Until then
    /// the string is not in the list.
    #[inline]
    pub fn write(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
    }

    /// The bytes of all strings and of the string being written.
    #[inline]
    pub(crate) fn written_len(&self) -> usize {
        self.bytes.len()
    }

    /// Ends the string being written and appends it to the list. If nothing was written, the string
    /// is empty.
    #[inline]
    pub fn finish(&mut self) {
        self.offsets.push(self.bytes.len() as u64);
    }

    /// Appends all strings of another list.
    pub fn append(&mut self, other: &Strings) {
        self.append_slice(other.as_slice());
    }

    /// Appends all strings of a slice, in two copies of memory.
    pub fn append_slice(&mut self, strings: StringSlice<'_>) {
        let (offsets, bytes) = (strings.offsets(), strings.packed_bytes());
        let (first, end) = (offsets[0], self.byte_len() as u64);
        self.bytes.truncate(end as usize);
        self.bytes.extend_from_slice(bytes);
        self.offsets.extend(offsets[1..].iter().map(|offset| offset - first + end));
    }

    /// Appends ranges of a slice, one after another. The ranges may lie anywhere: several of them
    /// are prefetched at a time.
    ///
    /// # Panics
    /// If a range passes the end, as slicing a slice does.
    pub fn extend_ranges(&mut self, from: StringSlice<'_>, mut ranges: impl Iterator<Item = Range<usize>>) {
        const AT_ONCE: usize = 32;
        let (offsets, bytes) = (from.offsets(), from.bytes());
        self.bytes.truncate(self.byte_len());
        // Reserves the bytes for strings of average length: growing in steps would copy them
        // repeatedly.
        let average = from.packed_bytes().len() / from.len().max(1) + 1;
        self.bytes.reserve((ranges.size_hint().0 * average).min(from.packed_bytes().len()) + SHORT);
        let mut places: [(Range<usize>, Range<usize>); AT_ONCE] = std::array::from_fn(|_| (0..0, 0..0));
        loop {
            let (mut n, mut n_bytes) = (0, 0);
            for (place, range) in places.iter_mut().zip(&mut ranges) {
                let span = offsets[range.start] as usize..offsets[range.end] as usize;
                prefetch::for_reading(&bytes[span.start..]);
                n_bytes += span.len();
                *place = (range, span);
                n += 1;
            }
            if n == 0 {
                return;
            }
            let mut end = self.bytes.len();
            self.bytes.resize(end + n_bytes + SHORT, 0);
            for (range, span) in &places[..n] {
                copy(&mut self.bytes[end..], bytes, span.clone());
                let moved = |offset: &u64| offset - span.start as u64 + end as u64;
                self.offsets.extend(offsets[range.start + 1..=range.end].iter().map(moved));
                end += span.len();
            }
            self.bytes.truncate(end);
        }
    }

    /// Appends one string with its bytes changed in place.
    pub(crate) fn push_changed(&mut self, string: &[u8], change: impl FnOnce(&mut [u8])) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(string);
        change(&mut self.bytes[start..]);
        self.finish();
    }

    /// Appends all strings of a slice with their bytes changed in place.
    pub(crate) fn append_changed(&mut self, strings: StringSlice<'_>, change: impl FnOnce(&mut [u8])) {
        let start = self.byte_len();
        self.append_slice(strings);
        change(&mut self.bytes[start..]);
    }

    /// Keeps the first `n` strings. Does nothing if there are no more than `n`.
    pub fn truncate(&mut self, n: usize) {
        if n < self.len() {
            self.offsets.truncate(n + 1);
            self.bytes.truncate(self.byte_len());
        }
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.offsets.truncate(1);
        self.bytes.clear();
    }

    /// The number of strings.
    #[inline]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The total number of bytes of all strings.
    pub fn byte_len(&self) -> usize {
        self.offsets.last().map_or(0, |&end| end as usize)
    }

    /// The string at an index.
    ///
    /// # Panics
    /// If there is no such string, as indexing a slice does.
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// All strings, in the form that kernels take.
    #[inline]
    pub fn as_slice(&self) -> StringSlice<'_> {
        StringSlice::of(&self.offsets, &self.bytes[..self.byte_len()])
    }

    /// All strings in order.
    pub fn iter(&self) -> StringIter<'_> {
        self.as_slice().iter()
    }
}

/// Equal strings in equal order. A string being written is ignored.
impl PartialEq for Strings {
    fn eq(&self, other: &Strings) -> bool {
        self.offsets == other.offsets && self.as_slice().bytes() == other.as_slice().bytes()
    }
}

impl Eq for Strings {}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<S: AsRef<[u8]>> Extend<S> for Strings {
    fn extend<I: IntoIterator<Item = S>>(&mut self, strings: I) {
        let strings = strings.into_iter();
        self.offsets.reserve(strings.size_hint().0);
        for string in strings {
            self.push(string.as_ref());
        }
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Strings {
        let mut all = Strings::default();
        all.extend(strings);
        all
    }
}

impl From<StringSlice<'_>> for Strings {
    fn from(strings: StringSlice<'_>) -> Strings {
        let mut all = Strings::default();
        all.append_slice(strings);
        all
    }
}

impl<'a> IntoIterator for &'a Strings {
    type Item = &'a [u8];
    type IntoIter = StringIter<'a>;
    fn into_iter(self) -> StringIter<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_single_strings() {
        // Lengths around the size of one copy, and short strings at the very end, where a full copy
        // would pass the end.
        let words: Vec<Vec<u8>> = (0..100u8).map(|i| vec![i; usize::from(i) * 7 % 35]).collect();
        let all: Strings = words.iter().collect();
        let from = all.as_slice().range(3..100);
        for width in [0, 1, 3] {
            let ranges = (0..=97 - width).rev().map(|first| first * 31 % (98 - width)).map(|at| at..at + width);
            let mut picked = Strings::default();
            picked.push(b"before");
            picked.write(b"never finished");
            picked.extend_ranges(from, ranges.clone());
            let mut expected: Strings = [b"before"].into_iter().collect();
            ranges.flatten().for_each(|i| expected.push(&words[i + 3]));
            assert!(picked.as_slice().iter().eq(expected.as_slice().iter()), "{width}");
            assert_eq!(picked.into_parts(), expected.into_parts());
        }
    }

    #[test]
    fn strings_are_written_in_parts() {
        let mut list = Strings::with_capacity(2);
        list.push(b"ab");
        list.write(b"c");
        assert_eq!((list.len(), list.byte_len()), (1, 2), "not yet finished");
        list.write(b"d");
        list.finish();
        list.finish();
        assert_eq!(list.iter().collect::<Vec<_>>(), [&b"ab"[..], b"cd", b""]);
        assert_eq!(list.clone().into_parts(), (vec![0, 2, 4, 4], b"abcd".to_vec()));
        list.clear();
        assert!(list.is_empty() && list.byte_len() == 0);
    }

    #[test]
    fn an_unfinished_string_is_in_no_result() {
        let mut list: Strings = ["a"].into_iter().collect();
        list.write(b"lost");
        assert_eq!(list, ["a"].into_iter().collect());
        assert_eq!(list.clone().into_parts(), (vec![0, 1], b"a".to_vec()));
        list.append(&Strings::from_iter(["b"]));
        assert_eq!(list.iter().collect::<Vec<_>>(), [b"a", b"b"]);
    }

    #[test]
    fn ranges_are_appended_by_their_own_offsets() {
        let source: Strings = ["one", "", "three", "4"].into_iter().collect();
        let mut list: Strings = ["zero"].into_iter().collect();
        list.append_slice(source.as_slice().range(1..3));
        list.append_slice(source.as_slice().range(4..4));
        assert_eq!(list.iter().collect::<Vec<_>>(), [&b"zero"[..], b"", b"three"]);
    }

    #[test]
    fn append_and_truncate() {
        let mut all: Strings = ["a", "", "bc"].into_iter().collect();
        all.append(&["", "def"].into_iter().collect());
        assert_eq!(all.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc", b"", b"def"]);
        all.truncate(3);
        all.truncate(7);
        assert_eq!(all, ["a", "", "bc"].into_iter().collect());
        all.append(&Strings::with_capacity(4));
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn bad_offsets_are_named() {
        let parts = |offsets: &[u64], bytes: &[u8]| Strings::from_parts(offsets.to_vec(), bytes.to_vec());
        assert_eq!(parts(&[0, 1, 3], b"abc").unwrap(), ["a", "bc"].into_iter().collect());
        for (offsets, text) in [
            (&[][..], "at least [0]"),
            (&[1, 3][..], "begin at 1"),
            (&[0, 2][..], "end at 2, but there are 3 bytes"),
            (&[0, u64::MAX, 3][..], "fall from 18446744073709551615 to 3 at string 1"),
            (&[0, 1, u64::MAX][..], "end at 18446744073709551615"),
        ] {
            let error = parts(offsets, b"abc").unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
