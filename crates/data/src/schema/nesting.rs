//! Finds keys in the text of a schema that are nested too deeply, before the parser sees them.

/// The largest number of parts in a dotted key. The parser limits brackets but not dots, and
/// dropping nested tables takes stack.
pub(super) const MAX_PARTS: usize = 64;

/// The offset of the first key with too many parts. Quoted text and comments are skipped.
pub(super) fn deep_key(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut n_dots) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'"' | b'\'' => quoted_len(&bytes[at..]),
            b'#' => bytes[at..].iter().position(|&b| b == b'\n').unwrap_or(bytes.len() - at),
            _ => 1,
        };
        match byte {
            b'.' => n_dots += 1,
            b'\n' | b',' | b'=' | b'[' | b']' | b'{' | b'}' => n_dots = 0,
            _ => {}
        }
        if n_dots >= MAX_PARTS {
            return Some(at - 1);
        }
    }
    None
}

/// The length of the quoted text at the beginning of `bytes`, including quotes; all bytes if it is
/// never closed.
fn quoted_len(bytes: &[u8]) -> usize {
    let quote = bytes[0];
    let n_quotes = if bytes.starts_with(&[quote; 3]) { 3 } else { 1 };
    let mut at = n_quotes;
    while at < bytes.len() {
        if bytes[at..].starts_with(&[quote; 3][..n_quotes]) {
            return at + n_quotes;
        }
        // A one-line text that is not closed ends with its line.
        if n_quotes == 1 && bytes[at] == b'\n' {
            return at;
        }
        at += if bytes[at] == b'\\' && quote == b'"' { 2 } else { 1 };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_of_keys_count_and_others_do_not() {
        let deep = "a.".repeat(70);
        for text in [deep.clone(), format!("[{deep}]"), format!("x = {{ {deep}a = 1 }}"), "'a' . ".repeat(70)] {
            assert!(deep_key(&text).is_some(), "{text}");
        }
        let floats = format!("x = [{}]", "0.5, ".repeat(100));
        for text in [
            floats,
            format!("# {deep}\n"),
            format!("x = \"{deep}\""),
            format!("x = \"\"\"\n{deep}\"\n\"\"\""),
            format!("x = '{deep}'\ny = \"\\\"{deep}\""),
            "[columns.a]\n".repeat(100),
        ] {
            assert!(deep_key(&text).is_none(), "{text}");
        }
    }
}
