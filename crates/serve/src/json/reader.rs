//! A pull parser of JSON over bytes, without a tree of values.
//!
//! It accepts what TensorFlow Serving's parser accepts: also the bare tokens `NaN`, `Infinity`,
//! `Inf` and their negatives, strings that are not UTF-8, and anything after the end of the
//! document. Errors have the texts of that parser. No call recurses, so nesting needs no limit.

use std::borrow::Cow;

pub(crate) use super::token::{Fault, Kind, Number, Read};

/// A position in a text.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Reader<'a> {
        let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Reader { text, at }
    }

    /// The position of the next value.
    pub(crate) fn position(&mut self) -> usize {
        self.skip_blanks();
        self.at
    }

    /// Goes to a position that [`position`](Reader::position) has returned.
    pub(crate) fn go_to(&mut self, position: usize) {
        self.at = position;
    }

    /// The text of the value at a position, without blanks around it.
    pub(crate) fn text_at(&self, position: usize) -> &'a [u8] {
        let mut there = Reader { text: self.text, at: position };
        let _ = there.skip();
        &self.text[position..there.at]
    }

    pub(crate) fn syntax<T>(&self, what: &'static str) -> Read<T> {
        Err(Fault::Syntax { what, at: self.at })
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// The next byte that is no blank; 0 at the end.
    #[inline]
    fn next(&mut self) -> u8 {
        self.skip_blanks();
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// The type of the next value.
    #[inline]
    pub(crate) fn kind(&mut self) -> Read<Kind> {
        match self.next() {
            b'{' => Ok(Kind::Object),
            b'[' => Ok(Kind::Array),
            b'"' => Ok(Kind::String),
            b'n' => Ok(Kind::Null),
            b't' => Ok(Kind::True),
            b'f' => Ok(Kind::False),
            b'-' | b'0'..=b'9' | b'N' | b'I' => Ok(Kind::Number),
            0 if self.at >= self.text.len() && self.at == 0 => self.syntax("The document is empty."),
            _ => self.syntax("Invalid value."),
        }
    }

    /// Reads the opening bracket of a list or an object.
    pub(crate) fn open(&mut self) {
        self.skip_blanks();
        self.at += 1;
    }

    /// Goes to the next element of a list, or reads its end and returns `false`.
    #[inline]
    pub(crate) fn element(&mut self, is_first: bool) -> Read<bool> {
        match self.next() {
            b']' => {
                self.at += 1;
                Ok(false)
            }
            _ if is_first => Ok(true),
            b',' => {
                self.at += 1;
                Ok(true)
            }
            _ => self.syntax("Missing a comma or ] after an array element."),
        }
    }

    /// Reads the next name of an object and its colon, or the end of the object.
    pub(crate) fn name(&mut self, is_first: bool) -> Read<Option<Cow<'a, [u8]>>> {
        match self.next() {
            b'}' if is_first => {
                self.at += 1;
                return Ok(None);
            }
            _ if is_first => {}
            b',' => self.at += 1,
            b'}' => {
                self.at += 1;
                return Ok(None);
            }
            _ => return self.syntax("Missing a comma or } after an object member."),
        }
        if self.next() != b'"' {
            return self.syntax("Missing a name for object member.");
        }
        let name = self.string()?;
        if self.next() != b':' {
            return self.syntax("Missing a colon after a name of object member.");
        }
        self.at += 1;
        Ok(Some(name))
    }

    /// Reads a string; it is copied only if it has escapes.
    pub(crate) fn string(&mut self) -> Read<Cow<'a, [u8]>> {
        self.open();
        let start = self.at;
        let end = self.plain_end()?;
        if self.text[end] == b'"' {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        let mut all = Vec::new();
        self.at = start;
        self.parts(&mut |part| all.extend_from_slice(part))?;
        Ok(Cow::Owned(all))
    }

    /// Reads a string in parts, without its escapes.
    pub(crate) fn string_parts(&mut self, sink: &mut impl FnMut(&[u8])) -> Read<()> {
        self.open();
        self.parts(sink)
    }

    fn parts(&mut self, sink: &mut impl FnMut(&[u8])) -> Read<()> {
        loop {
            let end = self.plain_end()?;
            sink(&self.text[self.at..end]);
            self.at = end + 1;
            if self.text[end] == b'"' {
                return Ok(());
            }
            self.escape(sink)?;
        }
    }

    /// The position of the next quote or backslash of a string.
    #[inline]
    fn plain_end(&mut self) -> Read<usize> {
        let rest = &self.text[self.at..];
        let stop = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
        match stop {
            Some(i) if rest[i] >= 0x20 => Ok(self.at + i),
            Some(i) => {
                self.at += i;
                self.syntax("Invalid encoding in string.")
            }
            None => {
                self.at = self.text.len();
                self.syntax("Missing a closing quotation mark in string.")
            }
        }
    }

    /// Reads the rest of an escape, after its backslash.
    fn escape(&mut self, sink: &mut impl FnMut(&[u8])) -> Read<()> {
        let Some(&letter) = self.text.get(self.at) else {
            return self.syntax("Missing a closing quotation mark in string.");
        };
        self.at += 1;
        let plain: &[u8] = match letter {
            b'"' => b"\"",
            b'\\' => b"\\",
            b'/' => b"/",
            b'b' => b"\x08",
            b'f' => b"\x0c",
            b'n' => b"\n",
            b'r' => b"\r",
            b't' => b"\t",
            b'u' => {
                let character = self.unicode()?;
                sink(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                self.at -= 1;
                return self.syntax("Invalid escape character in string.");
            }
        };
        sink(plain);
        Ok(())
    }

    fn unicode(&mut self) -> Read<char> {
        const BAD_PAIR: &str = "The surrogate pair in string is invalid.";
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff => {
                if self.text.get(self.at..self.at + 2) != Some(b"\\u") {
                    return self.syntax(BAD_PAIR);
                }
                self.at += 2;
                match self.hex()? {
                    second @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return self.syntax(BAD_PAIR),
                }
            }
            other => other,
        };
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => self.syntax(BAD_PAIR),
        }
    }

    fn hex(&mut self) -> Read<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.text.get(self.at).and_then(|&byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return self.syntax("Incorrect hex digit after \\u escape in string.");
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Read<Number<'a>> {
        self.skip_blanks();
        let start = self.at;
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        let mut is_integer = true;
        match self.text.get(self.at) {
            Some(b'N' | b'I') => {
                let rest = &self.text[self.at..];
                // The longer name comes first.
                let Some(name) = [&b"NaN"[..], b"Infinity", b"Inf"].into_iter().find(|name| rest.starts_with(name))
                else {
                    return self.syntax("Invalid value.");
                };
                self.at += name.len();
                is_integer = false;
            }
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => _ = self.digits(),
            _ => return self.syntax("Invalid value."),
        }
        if is_integer && self.text.get(self.at) == Some(&b'.') {
            is_integer = false;
            self.at += 1;
            if self.digits() == 0 {
                return self.syntax("Miss fraction part in number.");
            }
        }
        let is_finite = self.text[self.at - 1].is_ascii_digit();
        if let (true, Some(b'e' | b'E')) = (is_finite, self.text.get(self.at)) {
            is_integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.syntax("Miss exponent in number.");
            }
        }
        let number = Number { text: &self.text[start..self.at], is_integer };
        // Only long numbers can be too large.
        if is_finite && (!is_integer || number.text.len() > 300) && number.double().is_infinite() {
            self.at = start;
            return self.syntax("Number too big to be stored in double.");
        }
        Ok(number)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
        self.at - start
    }

    /// Reads `null`, `true` or `false`.
    pub(crate) fn literal(&mut self) -> Read<Kind> {
        self.skip_blanks();
        for (name, kind) in [(&b"null"[..], Kind::Null), (b"true", Kind::True), (b"false", Kind::False)] {
            if self.text[self.at..].starts_with(name) {
                self.at += name.len();
                return Ok(kind);
            }
        }
        self.syntax("Invalid value.")
    }

    /// Reads a value of any type and depth, and forgets it.
    pub(crate) fn skip(&mut self) -> Read<()> {
        // One entry for each open bracket: whether it is an object.
        let mut open: Vec<bool> = Vec::new();
        loop {
            let is_first = match self.kind()? {
                Kind::Object => {
                    self.open();
                    open.push(true);
                    true
                }
                Kind::Array => {
                    self.open();
                    open.push(false);
                    true
                }
                Kind::String => {
                    self.string_parts(&mut |_| {})?;
                    false
                }
                Kind::Number => {
                    self.number()?;
                    false
                }
                Kind::Null | Kind::True | Kind::False => {
                    self.literal()?;
                    false
                }
            };
            let mut is_first = is_first;
            loop {
                let more = match open.last() {
                    None => return Ok(()),
                    Some(true) => self.name(is_first)?.is_some(),
                    Some(false) => self.element(is_first)?,
                };
                if more {
                    break;
                }
                open.pop();
                is_first = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    fn fault(text: &str) -> String {
        Status::from(Reader::new(text.as_bytes()).skip().unwrap_err()).message
    }

    #[test]
    fn errors_have_the_texts_of_the_original() {
        for (text, expected) in [
            ("", "The document is empty. at offset: 0"),
            ("instances = [1]", "Invalid value. at offset: 0"),
            ("{1: 2}", "Missing a name for object member. at offset: 1"),
            ("{\"a\" 2}", "Missing a colon after a name of object member. at offset: 5"),
            ("{\"a\": 2 \"b\"", "Missing a comma or } after an object member. at offset: 8"),
            ("[1 2]", "Missing a comma or ] after an array element. at offset: 3"),
            ("[1, ", "Invalid value. at offset: 4"),
            ("\"\\u00g0\"", "Incorrect hex digit after \\u escape in string. at offset: 5"),
            ("\"\\ud800x\"", "The surrogate pair in string is invalid. at offset: 7"),
            ("\"\\x\"", "Invalid escape character in string. at offset: 2"),
            ("\"abc", "Missing a closing quotation mark in string. at offset: 4"),
            ("\"a\nb\"", "Invalid encoding in string. at offset: 2"),
            ("1e999", "Number too big to be stored in double. at offset: 0"),
            ("1.", "Miss fraction part in number. at offset: 2"),
            ("1e", "Miss exponent in number. at offset: 2"),
            ("-x", "Invalid value. at offset: 1"),
            ("nul", "Invalid value. at offset: 0"),
        ] {
            assert_eq!(fault(text), format!("JSON Parse error: {expected}"), "{text}");
        }
    }

    #[test]
    fn numbers() {
        let read = |text: &str| Reader::new(text.as_bytes()).number().unwrap().double();
        assert!(read("NaN").is_nan() && read("-NaN").is_nan());
        assert_eq!(
            (read("Infinity"), read("-Infinity"), read("-Inf")),
            (f64::INFINITY, -f64::INFINITY, -f64::INFINITY)
        );
        assert_eq!((read("-0.5e1"), read("17"), read("1E+2")), (-5.0, 17.0, 100.0));
        let integer = |text: &str| Reader::new(text.as_bytes()).number().unwrap().integer::<i64>();
        assert_eq!((integer("-9223372036854775808"), integer("9223372036854775808")), (Some(i64::MIN), None));
        assert_eq!((integer("1.0"), integer("1e2"), integer("-0")), (None, None, Some(0)));
    }

    #[test]
    fn strings() {
        let read = |text: &'static str| Reader::new(text.as_bytes()).string().unwrap();
        assert!(matches!(read("\"plain \u{e4}\""), Cow::Borrowed(b"plain \xc3\xa4")));
        assert_eq!(
            &*read(r#""\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00""#),
            "\"\\/\u{8}\u{c}\n\r\t\u{e4}\u{1f600}".as_bytes()
        );
    }

    #[test]
    fn any_depth_is_skipped() {
        let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
        Reader::new(deep.as_bytes()).skip().unwrap();
        let mixed = format!("{}1{}", "{\"a\":[".repeat(100_000), "]}".repeat(100_000));
        Reader::new(mixed.as_bytes()).skip().unwrap();
        assert!(Reader::new("[".repeat(100_000).as_bytes()).skip().is_err());
    }
}
