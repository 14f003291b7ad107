//! Parses text, with a limit on its depth. Numbers that JSON does not have are read as Python
//! writes them.

use std::borrow::Cow;
use std::ops::Range;

use estimand_tensor::{Error, Result};
use serde_json::Value;

/// The deepest nesting of a document. A layer in a layer takes two, its initializer two more.
const MAX_DEPTH: usize = 100;

/// The most values of a document: each takes many more bytes in memory than in the text.
const MAX_VALUES: usize = 1 << 23;

/// The longest path that an error shows.
const SHOWN: usize = 120;

/// The words that Python's `json` writes, without quotes, for numbers that JSON does not have.
const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Parses a document. Its nesting is limited, and errors name the place. The bare words `NaN`,
/// `Infinity` and `-Infinity` become texts, which [`AnyNumber`](super::AnyNumber) reads.
pub fn parse(text: &str) -> Result<Value> {
    if let Some(path) = too_deep(text.as_bytes()) {
        let text = format!("the document is nested more than {MAX_DEPTH} deep");
        return Err(Error::config(text).context(format!("at {path}")));
    }
    if has_too_many_values(text.as_bytes()) {
        return Err(Error::config(format!("the document has more than {MAX_VALUES} values")));
    }
    let words = bare_words(text.as_bytes());
    let quoted = replaced(text, &words, |word| format!("\"{word}\""));
    serde_json::from_str(&quoted).map_err(|e| {
        // Quotes move the text after them. Numbers of the same length do not, so that the error
        // names the place in the text itself.
        let digits = replaced(text, &words, |word| "1".repeat(word.len()));
        let e = serde_json::from_str::<Value>(&digits).err().unwrap_or(e);
        Error::config(format!("the document is not JSON: {e}"))
    })
}

/// The places of words that stand where a value may stand.
fn bare_words(text: &[u8]) -> Vec<Range<usize>> {
    let ends_value = |rest: &[u8]| {
        let next = rest.iter().find(|c| !c.is_ascii_whitespace());
        next.is_none_or(|c| matches!(c, b',' | b']' | b'}'))
    };
    let mut words = Vec::new();
    // What comes before the current byte, without white space. A value may stand at the beginning,
    // as in an array.
    let mut before = b'[';
    let mut i = 0;
    while i < text.len() {
        let c = text[i];
        let rest = &text[i..];
        let word = WORDS.iter().find(|word| rest.starts_with(word.as_bytes()));
        match word.filter(|_| matches!(before, b'[' | b':' | b',')) {
            Some(word) if ends_value(&rest[word.len()..]) => {
                words.push(i..i + word.len());
                i += word.len() - 1;
            }
            _ if c == b'"' => i = closing_quote(text, i),
            _ => {}
        }
        if !c.is_ascii_whitespace() {
            before = c;
        }
        i += 1;
    }
    words
}

/// The text with other words at these places.
fn replaced<'a>(text: &'a str, words: &[Range<usize>], new: impl Fn(&str) -> String) -> Cow<'a, str> {
    if words.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut all, mut end) = (String::with_capacity(text.len() + 2 * words.len()), 0);
    for word in words {
        all.push_str(&text[end..word.start]);
        all.push_str(&new(&text[word.clone()]));
        end = word.end;
    }
    all.push_str(&text[end..]);
    Cow::Owned(all)
}

/// The place of the quote that ends the text which begins here, or a place after the document.
fn closing_quote(text: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < text.len() && text[i] != b'"' {
        i += if text[i] == b'\\' { 2 } else { 1 };
    }
    i
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
                i = closing_quote(text, i);
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

/// Before each value is a comma, or a bracket if it is the first of a list or an object.
fn has_too_many_values(text: &[u8]) -> bool {
    let (mut n, mut i) = (0, 0);
    while i < text.len() && n <= MAX_VALUES {
        match text[i] {
            b',' | b'[' | b'{' => n += 1,
            b'"' => i = closing_quote(text, i),
            _ => {}
        }
        i += 1;
    }
    n > MAX_VALUES
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

    #[test]
    fn words_of_python_become_texts() {
        // What `json.dumps` of Python 3 writes for
        // {"a": [inf, -inf, nan, "NaN, -Infinity\"", 1.5], "NaN": {"b": nan}, "é": inf}.
        let text = r#"{"a": [Infinity, -Infinity, NaN, "NaN, -Infinity\"", 1.5], "NaN": {"b": NaN}, "é": Infinity}"#;
        let expected = serde_json::json!({
            "a": ["Infinity", "-Infinity", "NaN", "NaN, -Infinity\"", 1.5],
            "NaN": {"b": "NaN"},
            "é": "Infinity",
        });
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse(" NaN\n").unwrap(), "NaN");
        assert_eq!(parse("[\n NaN ,\t-Infinity ]").unwrap(), serde_json::json!(["NaN", "-Infinity"]));
    }

    /// Python's `json.loads` refuses these texts too.
    #[test]
    fn other_uses_of_the_words_are_errors_at_their_place() {
        for (text, column) in [
            ("{NaN: 1}", 2),
            ("{\"a\": 1, Infinity: 2}", 10),
            ("[nan]", 3),
            ("[+Infinity]", 2),
            ("[- Infinity]", 3),
            ("[1Infinity]", 3),
            ("[-NaN]", 3),
            ("[NaNs]", 2),
            ("[Inf]", 2),
            ("[Infinity NaN]", 2),
            ("[\"a\" NaN]", 6),
            // A word before the mistake does not move its place.
            ("[NaN, -Infinity, x]", 18),
            ("[NaN, \"NaN]", 11),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("the document is not JSON"), "{text}: {error}");
            assert!(error.contains(&format!("at line 1 column {column}")), "{text}: {error}");
        }
    }

    #[test]
    fn many_words_are_read_in_linear_time() {
        let text = format!("[{}NaN]", "NaN  ,".repeat(300_000));
        assert_eq!(parse(&text).unwrap().as_array().map(Vec::len), Some(300_001));
        let blanks = " ".repeat(2_000_000);
        assert!(parse(&format!("[NaN{blanks}NaN{blanks}]")).is_err());
    }
}
