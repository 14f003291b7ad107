//! Numbers from text, with the syntax TensorFlow accepts: `StringToNumber`.

use crate::{Error, ErrorKind, Result, StringSlice};

/// A number that text can be turned into: `f32`, `f64`, `i32` or `i64`.
pub trait ParseNumber: Sized + Copy {
    /// What messages call it.
    const NAME: &'static str;

    /// The number a text says, or `None`.
    fn parse(text: &[u8]) -> Option<Self>;
}

/// The number of each string.
///
/// A float is decimal, or hexadecimal without fraction (`0x1f`), or `inf` or `nan` in any case,
/// with or without a sign; an integer is decimal without `+`. White space around is no matter. What
/// does not fit is infinite or 0 as a float and an error as an integer.
///
/// Subnormal numbers are kept; TensorFlow makes them 0.
///
/// `first` is the position of the first string in the whole, for messages.
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

/// A 64-bit integer: decimal digits, a `-` before them if negative, and any white space around.
///
/// `None` for anything else, a `+`, underscores and numbers that do not fit included.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let text = trim(text);
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    // Towards the minimum, which has no positive counterpart.
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

/// What the two float types do in their own way.
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

// TF: refuses floats of 32 bytes and more, white space included, however plain they are; here they
// are read.
fn parse_float<T: Float>(text: &[u8]) -> Option<T> {
    let trimmed = trim(text);
    if trimmed.is_empty() {
        // TF: white space alone is 0, nothing at all is an error.
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

/// Digits with a point or an exponent, as Rust reads them too; but Rust also knows words and a
/// second sign.
fn decimal<T: Float>(text: &[u8]) -> Option<T> {
    let is_allowed = |&byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !text.iter().all(is_allowed) || matches!(text.first(), Some(b'+' | b'-')) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Hexadecimal digits, rounded once.
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
    // The lowest of 61 bits or more is far below the last one kept, and tells a half from just
    // above a half.
    let value = T::rounded(top | u64::from(is_inexact));
    // Beyond 300 further digits either type is infinite.
    Some((0..below.min(300)).fold(value, |value, _| value.times_16()))
}

/// What C's `isspace` says: unlike Rust's ASCII white space it counts the vertical tab.
#[inline(always)]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The text without white space at its ends.
#[inline]
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let Some(start) = text.iter().position(|&b| !is_space(b)) else { return &[] };
    let end = text.iter().rposition(|&b| !is_space(b)).map_or(start, |last| last + 1);
    &text[start..end]
}
