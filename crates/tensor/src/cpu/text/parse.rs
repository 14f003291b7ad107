//! Numbers from text, with the syntax TensorFlow accepts.

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
