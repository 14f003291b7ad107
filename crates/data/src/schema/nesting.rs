//! How deep the keys of a schema's text are, before a parser follows them.

/// The most parts of a dotted key. The parser has a limit for brackets and none for dots, and
/// tables of tables take stack to drop.
pub(super) const MAX_PARTS: usize = 64;

/// Where a key has too many parts. Texts in quotes and comments are passed over.
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

/// The bytes of a quoted text at the beginning of `bytes`, quotes included; all of them if it is
/// never closed.
fn quoted_len(bytes: &[u8]) -> usize {
    let quote = bytes[0];
    let n_quotes = if bytes.starts_with(&[quote; 3]) { 3 } else { 1 };
    let mut at = n_quotes;
    while at < bytes.len() {
        if bytes[at..].starts_with(&[quote; 3][..n_quotes]) {
            return at + n_quotes;
        }
        // A text of one line that is not closed ends with it.
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
