//! Regular expressions in RE2's syntax, which TensorFlow uses: `RegexReplace`, `RegexFullMatch`.
//!
//! The engine is the crate `regex`, which is linear in the text like RE2; `syntax` translates
//! between the two dialects.

mod class;
mod escape;
mod rewrite;
mod syntax;

pub use rewrite::RegexReplace;

use regex::bytes;

use crate::{Error, Result, StringSlice};

/// A compiled pattern that tests whether whole strings match.
///
/// Patterns are RE2's. `\d`, `\w`, `\s` and `\b` match ASCII only; `.` and negated classes match
/// characters of UTF-8 and not other bytes; `\C` matches any byte. One difference: bytes that look
/// like UTF-8 of a surrogate or of a number beyond U+10FFFF are one character for RE2 and several
/// invalid bytes here.
#[derive(Clone, Debug)]
pub struct RegexFullMatch(bytes::Regex);

impl RegexFullMatch {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<RegexFullMatch> {
        // Compiled alone first: a pattern such as `a)(b` must not use the added parentheses.
        compile(pattern, &syntax::translate(pattern)?)?;
        compile(pattern, &format!(r"\A(?:{})\z", syntax::translate(pattern)?)).map(RegexFullMatch)
    }

    /// Whether each string as a whole matches.
    pub fn apply(&self, strings: StringSlice<'_>, out: &mut [bool]) {
        assert_eq!(strings.len(), out.len(), "one answer for each string");
        for (string, out) in strings.iter().zip(out) {
            *out = self.0.is_match(string);
        }
    }
}

/// Compiles `translated`, the translation of `pattern`.
fn compile(pattern: &str, translated: &str) -> Result<bytes::Regex> {
    bytes::Regex::new(translated).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => invalid(pattern, "it compiles to more than 10 MB"),
        // The last line of the message says what is wrong; the lines before it show the translated
        // pattern.
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            invalid(pattern, last.trim_start_matches("error: "))
        }
    })
}

#[cold]
fn invalid(pattern: &str, why: impl std::fmt::Display) -> Error {
    let shown: String = pattern.chars().take(200).collect();
    Error::config(format!("invalid regular expression {shown:?}: {why}"))
        .help("use RE2's syntax, which has no look-around and no back-references")
}
