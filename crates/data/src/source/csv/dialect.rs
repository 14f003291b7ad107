//! Where the records and fields of CSV text lie.
//!
//! RFC 4180 as TensorFlow reads it: a field in quotes may hold delimiters, line ends and doubled quotes; a quote anywhere else
//! is a mistake of its record. A record ends with `\n` or `\r\n`. Where a record ends depends on nothing before it, so
//! that reading may begin at any record.

use estimand_tensor::{Error, Result};

use crate::files::chunk::Cut;

/// The bytes that separate fields, and whether quotes mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quoting: bool,
}

/// Where a field's text is: in the chunk, or behind its end among the texts that had doubled quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// The fields of records.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// All fields, record after record.
    pub(crate) fields: Vec<Span>,
    /// For each record, the end of its fields in `fields`, its place in the text, and what is wrong with it.
    pub(crate) records: Vec<Record>,
    /// Texts of fields that had doubled quotes.
    unescaped: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) fields_end: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) fault: Option<QuoteFault>,
}

/// What is wrong with a record as such. It still ends where it would end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteFault {
    /// A quote within a field that does not begin with one.
    Stray,
    /// Text between a closing quote and the next delimiter.
    Behind,
    /// A quote that is never closed.
    Open,
}

impl QuoteFault {
    pub(crate) fn message(self) -> &'static str {
        match self {
            QuoteFault::Stray => "a quote within a field that does not begin with one",
            QuoteFault::Behind => "text behind the closing quote of a field",
            QuoteFault::Open => "a quote that is opened and never closed",
        }
    }

    pub(crate) fn help(self) -> &'static str {
        match self {
            QuoteFault::Stray | QuoteFault::Behind => {
                "double the quotes within a quoted field, or read the file with quoting(false)"
            }
            QuoteFault::Open => "close it, or read the file with quoting(false)",
        }
    }
}

impl Records {
    /// The text of a field of these records, which were found in `bytes`.
    #[inline]
    pub(crate) fn text<'a>(&'a self, bytes: &'a [u8], field: Span) -> &'a [u8] {
        let (start, end) = (field.start as usize, field.end as usize);
        match start.checked_sub(bytes.len()) {
            None => &bytes[start..end],
            Some(start) => &self.unescaped[start..end - bytes.len()],
        }
    }
}

impl Dialect {
    pub(crate) fn check(self) -> Result<()> {
        if matches!(self.delimiter, b'\n' | b'\r' | b'"') || !self.delimiter.is_ascii() {
            let message = format!("the delimiter {:?} cannot separate fields", char::from(self.delimiter));
            return Err(Error::config(message).help("take an ASCII character other than the quote and line ends"));
        }
        Ok(())
    }

    /// The end of the last whole record.
    pub(crate) fn cut(self, bytes: &[u8], is_last: bool) -> Cut {
        if is_last {
            return Cut { end: bytes.len(), damage: None };
        }
        // From quote to quote; between them every line end ends a record.
        let (mut end, mut at) = (0, 0);
        let mut open = false;
        while self.quoting
            && let Some(quote) = memchr::memchr(b'"', &bytes[at..]).map(|i| at + i)
        {
            if let Some(line_end) = memchr::memrchr(b'\n', &bytes[at..quote]) {
                end = at + line_end + 1;
            }
            if !self.opens(bytes, quote) {
                at = quote + 1;
                continue;
            }
            match closing_quote(bytes, quote + 1) {
                // A quote at the end may be the first of two.
                Some(close) if close + 1 < bytes.len() => at = close + 1,
                _ => {
                    open = true;
                    break;
                }
            }
        }
        if !open && let Some(line_end) = memchr::memrchr(b'\n', &bytes[at..]) {
            end = at + line_end + 1;
        }
        Cut { end, damage: None }
    }

    /// Whether a quote stands where a field begins. Bytes begin with a record.
    fn opens(self, bytes: &[u8], quote: usize) -> bool {
        quote == 0 || matches!(bytes[quote - 1], b'\n') || bytes[quote - 1] == self.delimiter
    }

    /// The fields of whole records.
    pub(crate) fn split(self, bytes: &[u8]) -> Records {
        if self.quoting && memchr::memchr(b'"', bytes).is_some() {
            self.split_quoted(bytes)
        } else {
            self.split_plain(bytes)
        }
    }

    /// Every delimiter and every line end is one. Eight bytes are looked at together.
    fn split_plain(self, bytes: &[u8]) -> Records {
        let mut out = Records::default();
        out.fields.reserve(bytes.len() / 6);
        let mut at = Place::default();
        let (words, rest) = bytes.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let mut found = equal_bytes(word, self.delimiter) | equal_bytes(word, b'\n');
            while found != 0 {
                out.plain_field(bytes, &mut at, i * 8 + found.trailing_zeros() as usize / 8);
                found &= found - 1;
            }
        }
        let base = bytes.len() - rest.len();
        for (i, byte) in rest.iter().enumerate() {
            if *byte == self.delimiter || *byte == b'\n' {
                out.plain_field(bytes, &mut at, base + i);
            }
        }
        if at.record < bytes.len() {
            out.field(at.field, without_cr(bytes, at.field, bytes.len()));
            out.record(&mut at, bytes.len(), None);
        }
        out
    }

    fn split_quoted(self, bytes: &[u8]) -> Records {
        let mut out = Records::default();
        let mut at = Place::default();
        let mut fault = None;
        while at.record < bytes.len() {
            let mut from = at.field;
            if bytes.get(at.field) == Some(&b'"') {
                match closing_quote(bytes, at.field + 1) {
                    Some(close) => {
                        out.quoted_field(bytes, at.field + 1, close);
                        from = close + 1;
                    }
                    None => {
                        fault = fault.or(Some(QuoteFault::Open));
                        out.field(at.field, bytes.len());
                        out.record(&mut at, bytes.len(), fault);
                        break;
                    }
                }
            }
            let found = memchr::memchr2(self.delimiter, b'\n', &bytes[from..]).map(|i| from + i);
            let end = found.unwrap_or(bytes.len());
            let is_record_end = found.is_none_or(|i| bytes[i] == b'\n');
            let text_end = if is_record_end { without_cr(bytes, from, end) } else { end };
            if from == at.field {
                if memchr::memchr(b'"', &bytes[from..text_end]).is_some() {
                    fault = fault.or(Some(QuoteFault::Stray));
                }
                out.field(from, text_end);
            } else if text_end > from {
                fault = fault.or(Some(QuoteFault::Behind));
            }
            let next = (end + 1).min(bytes.len());
            if is_record_end {
                out.record(&mut at, next, fault);
                fault = None;
            } else {
                at.field = end + 1;
            }
        }
        out
    }
}

/// Where the current record and field begin.
#[derive(Default)]
struct Place {
    record: usize,
    field: usize,
}

impl Records {
    #[inline]
    fn plain_field(&mut self, bytes: &[u8], at: &mut Place, end: usize) {
        if bytes[end] == b'\n' {
            self.field(at.field, without_cr(bytes, at.field, end));
            self.record(at, end + 1, None);
        } else {
            self.field(at.field, end);
            at.field = end + 1;
        }
    }

    /// Offsets fit: a chunk has at most [`LONGEST`](crate::files::chunk::Format::LONGEST) bytes, and unescaped text is part of it.
    #[inline]
    fn field(&mut self, start: usize, end: usize) {
        self.fields.push(Span { start: start as u32, end: end as u32 });
    }

    fn quoted_field(&mut self, bytes: &[u8], start: usize, end: usize) {
        let text = &bytes[start..end];
        let Some(first) = memchr::memchr(b'"', text) else { return self.field(start, end) };
        let base = bytes.len() + self.unescaped.len();
        self.unescaped.extend_from_slice(&text[..first]);
        let mut pairs = text[first..].iter();
        while let Some(&byte) = pairs.next() {
            self.unescaped.push(byte);
            if byte == b'"' {
                pairs.next();
            }
        }
        self.field(base, bytes.len() + self.unescaped.len());
    }

    fn record(&mut self, at: &mut Place, end: usize, fault: Option<QuoteFault>) {
        self.records.push(Record { fields_end: self.fields.len(), start: at.record, end, fault });
        *at = Place { record: end, field: end };
    }
}

/// The high bit of every byte of `word` that equals `byte`.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let different = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
    // A byte's sum reaches the high bit unless its low bits are 0; no sum carries into the next byte.
    !(((different & LOW) + LOW) | different | LOW)
}

#[inline]
fn without_cr(bytes: &[u8], start: usize, end: usize) -> usize {
    if end > start && bytes[end - 1] == b'\r' { end - 1 } else { end }
}

/// The quote that closes a field whose text begins at `from`: the first that is not doubled.
fn closing_quote(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let quote = from + memchr::memchr(b'"', bytes.get(from..)?)?;
        if bytes.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        from = quote + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect = Dialect { delimiter: b',', quoting: true };

    fn split(dialect: Dialect, text: &str) -> Vec<(Vec<String>, Option<QuoteFault>)> {
        let found = dialect.split(text.as_bytes());
        let mut start = 0;
        let fields = |record: &Record| {
            let range = std::mem::replace(&mut start, record.fields_end)..record.fields_end;
            let text = |span: &Span| String::from_utf8_lossy(found.text(text.as_bytes(), *span)).into_owned();
            (found.fields[range].iter().map(text).collect(), record.fault)
        };
        found.records.iter().map(fields).collect()
    }

    fn good(rows: &[&[&str]]) -> Vec<(Vec<String>, Option<QuoteFault>)> {
        rows.iter().map(|row| (row.iter().map(|field| field.to_string()).collect(), None)).collect()
    }

    #[test]
    fn fields_and_records() {
        assert_eq!(split(COMMA, "a,b\r\nc,\n,d"), good(&[&["a", "b"], &["c", ""], &["", "d"]]));
        assert_eq!(split(COMMA, "\n\r\nx"), good(&[&[""], &[""], &["x"]]));
        assert_eq!(
            split(COMMA, "a long field, and another one,3\n"),
            good(&[&["a long field", " and another one", "3"]])
        );
        assert_eq!(split(COMMA, "a,"), good(&[&["a", ""]]));
        assert_eq!(split(COMMA, ""), good(&[]));
        let quoted = "\"a,\"\"b\"\"\nc\",\"\",\"x\"\r\ny,\"\"\"\",z";
        assert_eq!(split(COMMA, quoted), good(&[&["a,\"b\"\nc", "", "x"], &["y", "\"", "z"]]));
        let tabs = Dialect { delimiter: b'\t', quoting: false };
        assert_eq!(split(tabs, "a\"b\t\"c,\nd\te"), good(&[&["a\"b", "\"c,"], &["d", "e"]]));
    }

    #[test]
    fn faults_end_with_their_record() {
        let row = |fields: &[&str], fault| (fields.iter().map(|f| f.to_string()).collect(), fault);
        assert_eq!(
            split(COMMA, "5\" pipe,1\n\"a\"b,2\nx,\"y\"\n\"open,3\n4,5\n"),
            [
                row(&["5\" pipe", "1"], Some(QuoteFault::Stray)),
                row(&["a", "2"], Some(QuoteFault::Behind)),
                row(&["x", "y"], None),
                row(&["\"open,3\n4,5\n"], Some(QuoteFault::Open)),
            ]
        );
    }

    /// Cut anywhere, the whole records are those of the uncut text, and what is left is cut the same way.
    #[test]
    fn a_cut_is_where_a_record_ends() {
        for text in [
            "a,b\nc,d\ne,f\n",
            "\"a\nb\",c\nd,\"\"\"\n\"\n\"\"\nx\n",
            "5\" x\n\"y\" z\"\n,\"q\n\"\n1,\"2\"\n",
            "\"\",\"\"\n\"\"\"\"\n",
        ] {
            let ends: Vec<usize> = COMMA.split(text.as_bytes()).records.iter().map(|r| r.end).collect();
            for length in 0..text.len() {
                let cut = COMMA.cut(&text.as_bytes()[..length], false);
                let whole = ends.iter().copied().filter(|&end| end <= length).max().unwrap_or(0);
                assert!(cut.end == 0 || ends.contains(&cut.end), "{text:?} to {length}: {cut:?} of {ends:?}");
                // A quote at the very end may be one of two, and costs a record at most.
                let before = ends.iter().copied().filter(|&end| end < whole).max().unwrap_or(0);
                assert!(cut.end == whole || cut.end == before, "{text:?} to {length}: {cut:?} of {ends:?}");
            }
        }
    }
}
