//! Parses text, with a limit on its depth.

use estimand_tensor::{Error, Result};
use serde_json::Value;

/// The deepest nesting of a document. A layer in a layer takes two, its initializer two more.
const MAX_DEPTH: usize = 100;

/// The longest path that an error shows.
const SHOWN: usize = 120;

/// Parses a document. Its nesting is limited, and errors name the place.
pub fn parse(text: &str) -> Result<Value> {
    if let Some(path) = too_deep(text.as_bytes()) {
        let text = format!("the document is nested more than {MAX_DEPTH} deep");
        return Err(Error::config(text).context(format!("at {path}")));
    }
    serde_json::from_str(text).map_err(|e| Error::config(format!("the document is not JSON: {e}")))
}

/// An open object or array.
struct Open {
    /// The last key, as a range of the text; none in an array.
    key: Option<(usize, usize)>,
    /// The number of elements before the current one.
    index: usize,
    is_object: bool,
}

/// Finds the path of the first value that is nested too deep. What is not JSON is left to the
/// parser.
fn too_deep(text: &[u8]) -> Option<String> {
    let mut open: Vec<Open> = Vec::new();
    let mut i = 0;
    while i < text.len() {
        match text[i] {
            c @ (b'{' | b'[') => {
                if open.len() == MAX_DEPTH {
                    return Some(path(text, &open));
                }
                open.push(Open { key: None, index: 0, is_object: c == b'{' });
            }
            b'}' | b']' => drop(open.pop()),
            b',' => {
                if let Some(last) = open.last_mut() {
                    last.index += 1;
                    last.key = None;
                }
            }
            b'"' => {
                let start = i + 1;
                i = start;
                while i < text.len() && text[i] != b'"' {
                    i += if text[i] == b'\\' { 2 } else { 1 };
                }
                if let Some(last) = open.last_mut().filter(|last| last.is_object && last.key.is_none()) {
                    last.key = Some((start, i.min(text.len())));
                }
            }
            _ => {}
        }
        i += 1;
    }
    None
}

fn path(text: &[u8], open: &[Open]) -> String {
    let mut path = "$".to_string();
    for place in open {
        match place.key {
            Some((start, end)) => path.push_str(&format!(".{}", String::from_utf8_lossy(&text[start..end]))),
            None => path.push_str(&format!("[{}]", place.index)),
        }
        if path.len() > SHOWN {
            path.push_str("..");
            break;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_limited_and_the_error_names_the_path() {
        let nested = |n: usize| format!("{}1{}", r#"{"a":[0,"#.repeat(n), "]}".repeat(n));
        assert!(parse(&nested(MAX_DEPTH / 2)).is_ok());
        let text = parse(&nested(10_000)).unwrap_err().to_string();
        assert!(text.contains("nested more than 100 deep"), "{text}");
        assert!(text.contains("at $.a[1].a[1].a[1]") && text.len() < 300, "{text}");
        // Brackets inside of texts do not count.
        assert!(parse(&format!("{:?}", "[{\"".repeat(1_000))).is_ok());
    }

    #[test]
    fn what_is_not_json_is_an_error_with_its_place() {
        for text in ["", "{", "[1,]", "{\"a\" 1}", "\"\\", "nul", "{\"a\":1}}", "]]]"] {
            assert!(parse(text).unwrap_err().to_string().contains("line 1 column"), "{text}");
        }
    }
}
