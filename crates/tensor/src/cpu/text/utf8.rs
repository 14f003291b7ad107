//! Moves over the characters of text that may or may not be UTF-8.

/// Whether a byte continues a character in UTF-8.
#[inline(always)]
pub(super) fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Moves `n` characters forward from `at`. Also returns how many there were.
pub(super) fn forward(text: &[u8], mut at: usize, n: u64) -> (usize, u64) {
    let mut moved = 0;
    while moved < n && at < text.len() {
        at += 1;
        while at < text.len() && is_continuation(text[at]) {
            at += 1;
        }
        moved += 1;
    }
    (at, moved)
}

/// Moves `n` characters back from `at`. Also returns how many there were.
pub(super) fn back(text: &[u8], mut at: usize, n: u64) -> (usize, u64) {
    let mut moved = 0;
    while moved < n && at > 0 {
        at -= 1;
        while at > 0 && is_continuation(text[at]) {
            at -= 1;
        }
        moved += 1;
    }
    (at, moved)
}
