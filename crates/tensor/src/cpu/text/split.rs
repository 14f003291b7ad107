//! Splits strings into pieces: `StringSplitV2`.

use super::parse::is_space;
use crate::{StringSlice, Strings};

/// Splits each string. Returns the pieces and the row splits over them, which begin at 0.
///
/// With a separator, pieces lie between its occurrences and may be empty. Without one (""), pieces
/// are separated by white space and never empty. At most `max_split` cuts are made, and the rest is
/// the last piece; a negative number means no limit.
pub fn split(strings: StringSlice<'_>, separator: &[u8], max_split: i64) -> (Strings, Vec<i64>) {
    let mut pieces = Strings::with_capacity(strings.len());
    let mut row_splits = Vec::with_capacity(strings.len() + 1);
    row_splits.push(0);
    let max_split = usize::try_from(max_split).unwrap_or(usize::MAX);
    let needle = Needle::new(separator);
    for string in strings {
        match separator {
            _ if max_split == 0 => pieces.push(string),
            [] => split_space(string, max_split, &mut pieces),
            [byte] => split_at(string, 1, max_split, &mut pieces, |text| text.iter().position(|b| b == byte)),
            _ => split_at(string, separator.len(), max_split, &mut pieces, |text| needle.find(text)),
        }
        row_splits.push(pieces.len() as i64);
    }
    (pieces, row_splits)
}

fn split_space(mut text: &[u8], max_split: usize, pieces: &mut Strings) {
    let skip = |text: &[u8]| text.iter().position(|&b| !is_space(b)).unwrap_or(text.len());
    text = &text[skip(text)..];
    for n in 1.. {
        if text.is_empty() {
            return;
        }
        let end = text.iter().position(|&b| is_space(b)).unwrap_or(text.len());
        pieces.push(&text[..end]);
        text = &text[end..];
        text = &text[skip(text)..];
        if n == max_split {
            // TF: the rest is a piece even if it is empty, unlike in Python.
            pieces.push(text);
            return;
        }
    }
}

fn split_at(
    mut text: &[u8],
    width: usize,
    max_split: usize,
    pieces: &mut Strings,
    find: impl Fn(&[u8]) -> Option<usize>,
) {
    for _ in 0..max_split {
        let Some(at) = find(text) else { break };
        pieces.push(&text[..at]);
        text = &text[at + width..];
    }
    pieces.push(text);
}

/// A separator that is searched for in one pass (Knuth, Morris and Pratt), even if it repeats
/// itself.
struct Needle<'a> {
    text: &'a [u8],
    /// For every prefix, the length of the longest shorter prefix that it ends with.
    fallback: Vec<usize>,
}

impl<'a> Needle<'a> {
    fn new(text: &'a [u8]) -> Needle<'a> {
        let mut needle = Needle { text, fallback: Vec::with_capacity(text.len()) };
        needle.fallback.extend(text.first().map(|_| 0));
        let mut matched = 0;
        for &byte in text.iter().skip(1) {
            matched = needle.step(matched, byte);
            needle.fallback.push(matched);
        }
        needle
    }

    /// The length of the longest prefix of the needle that the text ends with after one more byte.
    /// `matched` must be less than the whole needle.
    #[inline(always)]
    fn step(&self, mut matched: usize, byte: u8) -> usize {
        while matched > 0 && self.text[matched] != byte {
            matched = self.fallback[matched - 1];
        }
        matched + usize::from(self.text[matched] == byte)
    }

    /// The position of the first occurrence. The needle must not be empty.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let mut matched = 0;
        let end = text.iter().position(|&byte| {
            matched = self.step(matched, byte);
            matched == self.text.len()
        })?;
        Some(end + 1 - self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needles_are_found_where_a_comparison_at_every_place_finds_them() {
        // All texts of up to 10 and all needles of up to 4 letters a and b.
        let words = |most: u32| {
            (1..=most).flat_map(|n| (0..1_u32 << n).map(move |w| (0..n).map(move |i| b'a' + (w >> i & 1) as u8)))
        };
        for needle in words(4).map(Vec::from_iter) {
            let fast = Needle::new(&needle);
            for text in words(10).map(Vec::from_iter) {
                assert_eq!(
                    fast.find(&text),
                    text.windows(needle.len()).position(|w| w == needle),
                    "{needle:?} {text:?}"
                );
            }
        }
    }

    #[test]
    fn a_separator_that_nearly_matches_everywhere_takes_no_time() {
        let (text, mut separator) = (vec![b'a'; 2_000_000], vec![b'a'; 1_000_000]);
        separator.push(b'b');
        let (pieces, splits) = split(Strings::from_iter([&text]).as_slice(), &separator, -1);
        assert_eq!((pieces.len(), splits), (1, vec![0, 1]));
    }
}
