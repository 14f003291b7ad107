//! Parses numbers from text, with the syntax that TensorFlow accepts: `StringToNumber`.

use crate::{Error, ErrorKind, Result, StringSlice};

/// A number type that can be parsed: `f32`, `f64`, `i32` or `i64`.
pub trait ParseNumber: Sized + Copy {
    /// The name of the type in messages.
    const NAME: &'static str;

    /// The number that a text represents, or `None`.
    fn parse(text: &[u8]) -> Option<Self>;
}

/// Parses the number of each string.
///
/// A float is decimal, hexadecimal without fraction (`0x1f`), or `inf` or `nan` in upper or lower
/// case, with or without a sign. An integer is decimal without `+`. White space around the number
/// is ignored. A number that does not fit becomes infinite or 0 as a float, and is an error as an
/// integer.
///
/// Subnormal numbers are kept; TensorFlow turns them into 0.
///
/// `first` is the position of the first string in the whole array, for messages.
pub fn to_number<T: ParseNumber>(strings: StringSlice<'_>, first: usize, out: &mut [T]) -> Result<()> {
    assert_eq!(strings.len(), out.len(), "one number for each string");
    for (i, (string, out)) in strings.iter().zip(out).enumerate() {
        *out = T::parse(string).ok_or_else(|| not_a_number(T::NAME, string, first + i))?;
    }
    Ok(())
}

#[cold]
fn not_a_number(name: &str, string: &[u8], position: usize) -> Error {
    const SHOWN: usize = 80;
    let more = if string.len() > SHOWN { "..." } else { "" };
    let shown = string[..string.len().min(SHOWN)].escape_ascii();
    let message = format!("the string \"{shown}\"{more} at position {position} is not a number ({name})");
    Error::new(ErrorKind::Data { path: None, row: None, column: None }, message)
}

/// Parses a 64-bit integer: decimal digits, a `-` before them if negative, and optional white space
/// around.
///
/// Returns `None` for anything else, including a `+`, underscores and numbers that do not fit.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let text = trim(text);
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    // Accumulates a negative number, since the minimum has no positive counterpart.
    let mut value = 0_i64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

impl ParseNumber for i64 {
    const NAME: &'static str = "i64";
    fn parse(text: &[u8]) -> Option<i64> {
        parse_int(text)
    }
}

impl ParseNumber for i32 {
    const NAME: &'static str = "i32";
    fn parse(text: &[u8]) -> Option<i32> {
        parse_int(text)?.try_into().ok()
    }
}

/// The operations that differ between the two float types.
trait Float: Sized + std::str::FromStr + std::ops::Neg<Output = Self> {
    const INFINITY: Self;
    const NAN: Self;
    const ZERO: Self;
    fn rounded(value: u64) -> Self;
    fn times_16(self) -> Self;
}

macro_rules! floats {
    ($($t:ident),*) => {$(
        impl Float for $t {
            const INFINITY: $t = $t::INFINITY;
            const NAN: $t = $t::NAN;
            const ZERO: $t = 0.0;
            fn rounded(value: u64) -> $t {
                value as $t
            }
            fn times_16(self) -> $t {
                self * 16.0
            }
        }

        impl ParseNumber for $t {
            const NAME: &'static str = stringify!($t);
            fn parse(text: &[u8]) -> Option<$t> {
                parse_float(text)
            }
        }
    )*};
}
floats!(f32, f64);

// TF: TensorFlow refuses floats of 32 bytes and more, including white space, even if they are
// plain; here they are parsed.
fn parse_float<T: Float>(text: &[u8]) -> Option<T> {
    let trimmed = trim(text);
    if trimmed.is_empty() {
        // TF: white space alone is 0; an empty string is an error.
        return (!text.is_empty()).then_some(T::ZERO);
    }
    let (negative, rest) = match trimmed {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let value = match rest {
        [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits)?,
        _ if rest.eq_ignore_ascii_case(b"inf") => T::INFINITY,
        _ if rest.eq_ignore_ascii_case(b"nan") => T::NAN,
        _ => decimal(rest)?,
    };
    Some(if negative { -value } else { value })
}

/// Parses digits with a point or an exponent, as Rust does. Words and a second sign, which Rust
/// would accept, are refused.
fn decimal<T: Float>(text: &[u8]) -> Option<T> {
    let is_allowed = |&byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !text.iter().all(is_allowed) || matches!(text.first(), Some(b'+' | b'-')) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses hexadecimal digits, rounded once.
fn hexadecimal<T: Float>(digits: &[u8]) -> Option<T> {
    if digits.is_empty() {
        return None;
    }
    let (mut top, mut below, mut is_inexact) = (0_u64, 0_usize, false);
    for &digit in digits {
        let digit = u64::from(char::from(digit).to_digit(16)?);
        if top >> 60 == 0 {
            top = top << 4 | digit;
        } else {
            below += 1;
            is_inexact |= digit != 0;
        }
    }
    // With 61 bits or more, the lowest bit is far below the last bit that is kept, and
    // distinguishes a half from just above a half.
    let value = T::rounded(top | u64::from(is_inexact));
    // With more than 300 further digits either type is infinite.
    Some((0..below.min(300)).fold(value, |value, _| value.times_16()))
}

/// Like C's `isspace`: unlike Rust's ASCII white space it includes the vertical tab.
#[inline(always)]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Removes white space at both ends of the text.
#[inline]
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let Some(start) = text.iter().position(|&b| !is_space(b)) else { return &[] };
    let end = text.iter().rposition(|&b| !is_space(b)).map_or(start, |last| last + 1);
    &text[start..end]
}
