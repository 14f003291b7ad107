//! The meaning of backslashes in RE2.

use super::invalid;
use crate::Result;

/// The rest of the pattern that is still to be translated.
pub(super) struct Pattern<'a> {
    pub whole: &'a str,
    pub rest: std::str::Chars<'a>,
}

/// An escape: the text after a backslash.
pub(super) enum Escape {
    /// A plain character.
    Char(char),
    /// A character class, in the dialect of the crate `regex`, valid inside and outside of
    /// brackets.
    Set(String),
}

impl Pattern<'_> {
    pub fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    /// Consumes a character if it is next.
    pub fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.rest.next();
        }
        found
    }

    /// Reads the text after a backslash, for the escapes that are also allowed inside brackets.
    pub fn escape(&mut self) -> Result<Escape> {
        let Some(c) = self.rest.next() else { return Err(invalid(self.whole, "it ends in a backslash")) };
        let set = |text: &str| Ok(Escape::Set(text.into()));
        match c {
            'd' => set("[0-9]"),
            'D' => set("[^0-9]"),
            // RE2's `\s` does not include the vertical tab.
            's' => set(r"[\t\n\f\r ]"),
            'S' => set(r"[^\t\n\f\r ]"),
            'w' => set("[0-9A-Za-z_]"),
            'W' => set("[^0-9A-Za-z_]"),
            'p' | 'P' => self.property(c == 'P').map(Escape::Set),
            'a' => Ok(Escape::Char('\x07')),
            'f' => Ok(Escape::Char('\x0c')),
            't' => Ok(Escape::Char('\t')),
            'n' => Ok(Escape::Char('\n')),
            'r' => Ok(Escape::Char('\r')),
            'v' => Ok(Escape::Char('\x0b')),
            'x' => self.hexadecimal().map(Escape::Char),
            '0'..='7' => self.octal(c).map(Escape::Char),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' => Ok(Escape::Char(c)),
            c => Err(self.unknown(c)),
        }
    }

    pub fn unknown(&self, c: char) -> crate::Error {
        invalid(self.whole, format_args!("it has the unknown escape \\{c}"))
    }

    /// Reads `\pN`, `\p{Greek}`, `\p{^Greek}` after their first letter.
    fn property(&mut self, mut negated: bool) -> Result<String> {
        let mut name = String::new();
        match self.rest.next() {
            Some('{') => {
                negated ^= self.take('^');
                loop {
                    match self.rest.next() {
                        Some('}') => break,
                        Some(c) if c.is_ascii_alphanumeric() || c == '_' => name.push(c),
                        _ => return Err(invalid(self.whole, "a property has no name in { }")),
                    }
                }
            }
            Some(c) if c.is_ascii_alphabetic() => name.push(c),
            _ => return Err(invalid(self.whole, "a property has no name")),
        }
        Ok(format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' }))
    }

    /// Reads `\x7f` or `\x{10ffff}` after the x.
    fn hexadecimal(&mut self) -> Result<char> {
        let mut digits = String::new();
        if self.take('{') {
            while let Some(c) = self.rest.next().filter(|c| *c != '}') {
                // Eight digits are already too large, so further digits cannot overflow.
                digits.push(if digits.len() < 8 { c } else { '?' });
                if digits.len() > 8 {
                    break;
                }
            }
        } else {
            digits.extend(self.rest.by_ref().take(2));
            if digits.chars().count() < 2 {
                digits.clear();
            }
        }
        let value = digits.chars().all(|c| c.is_ascii_hexdigit()).then(|| u32::from_str_radix(&digits, 16).ok());
        let value = value.flatten().and_then(char::from_u32);
        value.ok_or_else(|| invalid(self.whole, format_args!("\\x{digits} is not a character")))
    }

    /// Reads `\012` after its first digit. A single digit other than 0 would be a back-reference.
    fn octal(&mut self, first: char) -> Result<char> {
        let digit = |c: Option<char>| c.and_then(|c| c.to_digit(8));
        let mut value = digit(Some(first)).unwrap_or(0);
        if first != '0' && digit(self.peek()).is_none() {
            return Err(self.unknown(first));
        }
        for _ in 0..2 {
            let Some(next) = digit(self.peek()) else { break };
            self.rest.next();
            value = value * 8 + next;
        }
        char::from_u32(value).ok_or_else(|| self.unknown(first))
    }
}

/// Appends a character by its number, so that it has no special meaning.
pub(super) fn push_literal(c: char, out: &mut String) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{:02x}", u32::from(c)));
    }
}
