//! Removes white space at the ends of strings, and measures strings: `StringStrip`, `StringLength`.

use super::parse::trim;
use super::utf8::is_continuation;
use crate::{StringSlice, Strings};

/// The unit of lengths and positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Byte,
    /// Characters of UTF-8: all bytes except continuations (0x80 to 0xBF), whether the text is
    /// valid or not.
    Utf8Char,
}

/// Appends the strings to `out` without white space (space, tab, line feed, vertical tab, form
/// feed, return) at their ends.
pub fn strip(strings: StringSlice<'_>, out: &mut Strings) {
    for string in strings {
        out.push(trim(string));
    }
}

/// The length of each string.
pub fn length(strings: StringSlice<'_>, unit: Unit, out: &mut [i32]) {
    assert_eq!(strings.len(), out.len(), "one length for each string");
    for (string, out) in strings.iter().zip(out) {
        let n = match unit {
            Unit::Byte => string.len(),
            Unit::Utf8Char => string.iter().filter(|&&byte| !is_continuation(byte)).count(),
        };
        *out = i32::try_from(n).unwrap_or(i32::MAX);
    }
}
