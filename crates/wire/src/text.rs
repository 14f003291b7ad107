//! Protobuf's text format: a tokenizer for reading, and quoting for writing.

use std::fmt;

/// An error in a text file, with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// A description of what was found or expected.
    pub message: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TextError {}

/// The smallest unit of the text format.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token<'a> {
    /// A field name, a number or another bare value.
    Word(&'a str),
    /// A quoted string, with its escapes resolved. Adjacent strings form one string in the format.
    Quoted(Vec<u8>),
    /// One of `: , ; [ ] { } < >`.
    Mark(char),
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Quoted(_) => f.write_str("a quoted string"),
            Token::Mark(mark) => write!(f, "`{mark}`"),
        }
    }
}

/// A tokenizer that keeps track of the line.
pub(crate) struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str) -> Tokens<'a> {
        Tokens { rest: text, line: 1 }
    }

    /// Returns the next token without consuming it.
    pub(crate) fn peek(&self) -> Result<Option<Token<'a>>, TextError> {
        Tokens { rest: self.rest, line: self.line }.next()
    }

    /// Returns the next token; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Token<'a>>, TextError> {
        self.skip_blanks();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        match first {
            '"' | '\'' => self.quoted(first).map(Some),
            ':' | ',' | ';' | '[' | ']' | '{' | '}' | '<' | '>' => {
                self.rest = &self.rest[1..];
                Ok(Some(Token::Mark(first)))
            }
            c if is_word(c) => {
                let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at(end);
                self.rest = rest;
                Ok(Some(Token::Word(word)))
            }
            other => Err(self.error(format!("unexpected character {other:?}"))),
        }
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> TextError {
        TextError { line: self.line, message: message.into() }
    }

    fn skip_blanks(&mut self) {
        loop {
            let trimmed = self.rest.trim_start();
            self.line += self.rest[..self.rest.len() - trimmed.len()].matches('\n').count();
            self.rest = trimmed;
            if !trimmed.starts_with('#') {
                return;
            }
            self.rest = &trimmed[trimmed.find('\n').unwrap_or(trimmed.len())..];
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Token<'a>, TextError> {
        let bytes = self.rest.as_bytes();
        let mut value = Vec::new();
        let mut i = 1;
        while let Some(&byte) = bytes.get(i) {
            i += 1;
            match byte {
                b'\n' => break,
                b'\\' => {
                    let (byte, used) =
                        unescape(&bytes[i..]).ok_or_else(|| self.error("a string has an unknown escape"))?;
                    value.push(byte);
                    i += used;
                }
                _ if byte == quote as u8 => {
                    self.rest = &self.rest[i..];
                    return Ok(Token::Quoted(value));
                }
                _ => value.push(byte),
            }
        }
        Err(self.error("a string has no closing quote"))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '-')
}

/// The byte that an escape represents, and the length of the escape. `after` is the text after the
/// backslash.
fn unescape(after: &[u8]) -> Option<(u8, usize)> {
    let simple = |byte| Some((byte, 1));
    match *after.first()? {
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'a' => simple(7),
        b'b' => simple(8),
        b'f' => simple(12),
        b'v' => simple(11),
        quoted @ (b'\\' | b'\'' | b'"' | b'?') => simple(quoted),
        b'x' | b'X' => digits(&after[1..], 16, 2).map(|(byte, n)| (byte, n + 1)),
        _ => digits(after, 8, 3),
    }
}

/// Parses a number of at most `max` digits as a byte; returns it with its length.
fn digits(text: &[u8], radix: u32, max: usize) -> Option<(u8, usize)> {
    let mut value = 0u32;
    let mut n = 0;
    while let Some(digit) = text.get(n).filter(|_| n < max).and_then(|&b| char::from(b).to_digit(radix)) {
        value = value * radix + digit;
        n += 1;
    }
    (n > 0).then_some(())?;
    u8::try_from(value).ok().map(|byte| (byte, n))
}

/// A value in quotes, with everything but printable ASCII escaped as in TensorFlow's own files.
pub(crate) struct Quote<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for &byte in self.0 {
            match byte {
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                b'"' | b'\'' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\{byte:03o}")?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_inverts() {
        let all: Vec<u8> = (0..=255).collect();
        let text = Quote(&all).to_string();
        assert_eq!(Tokens::new(&text).next(), Ok(Some(Token::Quoted(all))));
        assert_eq!(Quote("a\"é\n".as_bytes()).to_string(), r#""a\"\303\251\n""#);
    }

    #[test]
    fn tokens_and_lines() {
        let mut tokens = Tokens::new("# a comment\nname: 'it\\x41\\101'\n[-1.5e+3]  # end");
        let mut seen = Vec::new();
        while let Some(token) = tokens.next().unwrap() {
            seen.push((tokens.line, token));
        }
        let expected = [
            (2, Token::Word("name")),
            (2, Token::Mark(':')),
            (2, Token::Quoted(b"itAA".to_vec())),
            (3, Token::Mark('[')),
            (3, Token::Word("-1.5e+3")),
            (3, Token::Mark(']')),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn bad_strings_are_errors() {
        for text in ["\"open", "'a\nb'", r#""\"#, r#""\x""#, r#""\q""#, r#""\777""#, "é", "\"a\\"] {
            assert!(Tokens::new(text).next().is_err(), "{text:?}");
        }
    }
}
