//! Character classes in brackets.
//!
//! In the crate `regex`, brackets nest, and `&&`, `--` and `~~` are set operations; in RE2 all
//! these are plain characters. So every character is written by its number.

use super::escape::{Escape, Pattern, push_literal};
use super::invalid;
use crate::Result;

const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

impl Pattern<'_> {
    /// Translates the text after an opening bracket, up to the closing one.
    pub fn class(&mut self, out: &mut String) -> Result<()> {
        out.push('[');
        if self.take('^') {
            out.push('^');
        }
        let mut is_first = true;
        loop {
            match self.peek() {
                None => return Err(invalid(self.whole, "a [ has no closing ]")),
                Some(']') if !is_first => {
                    self.rest.next();
                    out.push(']');
                    return Ok(());
                }
                Some('[') if self.rest.as_str().starts_with("[:") && self.named(out)? => {}
                Some(_) => self.range(out)?,
            }
            is_first = false;
        }
    }

    /// Translates a named class such as `[:alpha:]`. Returns `false` if there is no `:]`; the
    /// bracket is then a plain character.
    fn named(&mut self, out: &mut String) -> Result<bool> {
        let text = &self.rest.as_str()[2..];
        let Some(end) = text.find(":]") else { return Ok(false) };
        let (name, negation) = match text[..end].strip_prefix('^') {
            Some(name) => (name, "^"),
            None => (&text[..end], ""),
        };
        if !NAMES.contains(&name) {
            return Err(invalid(self.whole, format_args!("there is no character class [:{}:]", &text[..end])));
        }
        out.push_str(&format!("[:{negation}{name}:]"));
        self.rest = text[end + 2..].chars();
        Ok(true)
    }

    /// Translates a character, a range of characters, or an escaped class.
    fn range(&mut self, out: &mut String) -> Result<()> {
        let low = match self.class_char()? {
            Escape::Set(set) => {
                out.push_str(&set);
                return Ok(());
            }
            Escape::Char(c) => c,
        };
        let rest = self.rest.as_str();
        if !rest.starts_with('-') || rest.starts_with("-]") || rest == "-" {
            push_literal(low, out);
            return Ok(());
        }
        self.rest.next();
        match self.class_char()? {
            Escape::Char(high) if low <= high => {
                push_literal(low, out);
                out.push('-');
                push_literal(high, out);
                Ok(())
            }
            Escape::Char(high) => Err(invalid(self.whole, format_args!("the range {low}-{high} runs backwards"))),
            Escape::Set(_) => Err(invalid(self.whole, "a range ends in a character class")),
        }
    }

    fn class_char(&mut self) -> Result<Escape> {
        match self.rest.next() {
            None => Err(invalid(self.whole, "a [ has no closing ]")),
            Some('\\') => self.escape(),
            Some(c) => Ok(Escape::Char(c)),
        }
    }
}
