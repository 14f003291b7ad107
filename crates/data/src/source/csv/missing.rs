//! The texts that mean a missing value.

/// Whether a text means a missing value: the empty text, or one of the given texts, with or without
/// white space around it.
#[inline]
pub(crate) fn is_missing(text: &[u8], missing: &[Vec<u8>]) -> bool {
    text.is_empty() || (!missing.is_empty() && missing.iter().any(|missing| missing == text.trim_ascii()))
}
