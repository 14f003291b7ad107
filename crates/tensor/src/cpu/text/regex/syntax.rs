//! Translates patterns from RE2's dialect to that of the crate `regex`.
//!
//! Patterns that RE2 refuses are refused here too, so that a graph with the pattern also runs in
//! TensorFlow. All other patterns are translated to the same meaning.

use super::escape::{Escape, Pattern, push_literal};
use super::invalid;
use crate::Result;

/// The largest count of a repetition in RE2.
const MAX_REPEAT: u32 = 1000;

/// Translates a pattern for the crate `regex`.
pub(super) fn translate(whole: &str) -> Result<String> {
    let mut pattern = Pattern { whole, rest: whole.chars() };
    let mut out = String::with_capacity(whole.len() + 16);
    // Whether the last element was a repetition, which cannot be repeated.
    let mut was_repetition = false;
    while let Some(c) = pattern.rest.next() {
        let mut is_repetition = false;
        match c {
            '\\' => pattern.backslash(&mut out)?,
            '[' => pattern.class(&mut out)?,
            '(' if pattern.take('?') => pattern.group(&mut out)?,
            '*' | '+' | '?' => {
                out.push(c);
                is_repetition = true;
            }
            '{' => match pattern.counts()? {
                Some(counts) => {
                    out.push_str(&counts);
                    is_repetition = true;
                }
                None => push_literal('{', &mut out),
            },
            '(' | ')' | '|' | '^' | '$' | '.' => out.push(c),
            c => push_literal(c, &mut out),
        }
        if is_repetition {
            if was_repetition {
                return Err(invalid(whole, "a repetition is repeated"));
            }
            if pattern.take('?') {
                out.push('?');
            }
        }
        was_repetition = is_repetition;
    }
    Ok(out)
}

impl Pattern<'_> {
    /// Translates the text after a backslash outside of brackets.
    fn backslash(&mut self, out: &mut String) -> Result<()> {
        match self.peek() {
            Some(c @ ('b' | 'B' | 'A' | 'z' | 'C')) => {
                self.rest.next();
                out.push_str(match c {
                    'b' => r"(?-u:\b)",
                    'B' => r"(?-u:\B)",
                    'C' => "(?s-u:.)",
                    'A' => r"\A",
                    _ => r"\z",
                });
            }
            // The text up to \E, or to the end, is plain.
            Some('Q') => {
                self.rest.next();
                let text = self.rest.as_str();
                let (quoted, rest) = text.split_once("\\E").unwrap_or((text, ""));
                quoted.chars().for_each(|c| push_literal(c, out));
                self.rest = rest.chars();
            }
            _ => match self.escape()? {
                Escape::Char(c) => push_literal(c, out),
                Escape::Set(set) => out.push_str(&set),
            },
        }
        Ok(())
    }

    /// Translates the text after `(?`: a name, or flags for the rest of the group or for a new
    /// group.
    fn group(&mut self, out: &mut String) -> Result<()> {
        let unknown = |pattern: &Self| {
            invalid(pattern.whole, "it has an unknown group (?; expected (?:, (?P<name> or flags of imsU")
        };
        out.push_str("(?");
        if self.take('P') {
            if !self.take('<') {
                return Err(unknown(self));
            }
            out.push_str("P<");
            loop {
                match self.rest.next() {
                    Some('>') => break,
                    Some(c) if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
                    _ => {
                        return Err(invalid(
                            self.whole,
                            "the name of a group has other characters than letters, digits and _",
                        ));
                    }
                }
            }
            out.push('>');
            return Ok(());
        }
        for c in self.rest.by_ref() {
            match c {
                ':' | ')' => {
                    out.push(c);
                    return Ok(());
                }
                'i' | 'm' | 's' | 'U' | '-' => out.push(c),
                _ => break,
            }
        }
        Err(unknown(self))
    }

    /// Reads the rest of `{2}`, `{2,}` or `{2,5}`. If the brace is a plain character, returns
    /// `None` and reads nothing.
    fn counts(&mut self) -> Result<Option<String>> {
        let text = self.rest.as_str();
        let Some(end) = text.find('}') else { return Ok(None) };
        let (low, high) = match text[..end].split_once(',') {
            Some((low, high)) => (low, Some(high)),
            None => (&text[..end], None),
        };
        let is_count = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if !is_count(low) || !high.is_none_or(|high| high.is_empty() || is_count(high)) {
            return Ok(None);
        }
        let count = |digits: &str| digits.parse().unwrap_or(u32::MAX);
        let highest = high.filter(|high| !high.is_empty()).map_or(count(low), count);
        if count(low) > highest || highest > MAX_REPEAT {
            return Err(invalid(
                self.whole,
                format_args!("{{{}}} repetitions, expected at most {MAX_REPEAT}", &text[..end]),
            ));
        }
        self.rest = text[end + 1..].chars();
        Ok(Some(format!("{{{}}}", &text[..end])))
    }
}
