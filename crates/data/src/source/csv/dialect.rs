//! Finds the records and fields in CSV text.
//!
//! It follows RFC 4180 as TensorFlow and pandas do. A quoted field may hold delimiters, line ends
//! and doubled quotes; a quote anywhere else is an error in its record. A record ends with `\n`,
//! `\r\n`, or `\r` alone, as on old Macs. The end of a record depends on nothing before the record,
//! so reading may begin at any record.

use estimand_tensor::{Error, Result};

use super::records::{Place, QuoteFault, Records};
use crate::files::chunk::Cut;

/// The delimiter of fields, and whether quotes enclose fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quoting: bool,
}

impl Dialect {
    pub(crate) fn check(self) -> Result<()> {
        if matches!(self.delimiter, b'\n' | b'\r' | b'"') || !self.delimiter.is_ascii() {
            let message = format!("the delimiter {:?} cannot separate fields", char::from(self.delimiter));
            return Err(Error::config(message).help("use an ASCII character that is neither a quote nor a line end"));
        }
        Ok(())
    }

    /// Finds the end of the last whole record.
    pub(crate) fn cut(self, bytes: &[u8], is_last: bool) -> Cut {
        if is_last {
            return Cut { end: bytes.len(), damage: None };
        }
        // Jumps from quote to quote. Outside quotes, every line end ends a record.
        let (mut end, mut at) = (0, 0);
        let mut open = false;
        while self.quoting
            && let Some(quote) = memchr::memchr(b'"', &bytes[at..]).map(|i| at + i)
        {
            if let Some(line_end) = memchr::memrchr2(b'\n', b'\r', &bytes[at..quote]) {
                end = at + line_end + 1;
            }
            if !self.opens(bytes, quote) {
                at = quote + 1;
                continue;
            }
            match closing_quote(bytes, quote + 1) {
                // A quote at the end of the bytes may be the first of a doubled one.
                Some(close) if close + 1 < bytes.len() => at = close + 1,
                _ => {
                    open = true;
                    break;
                }
            }
        }
        // A `\r` at the end of the bytes may be the first half of `\r\n`.
        let known = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if !open && let Some(line_end) = known.get(at..).and_then(|rest| memchr::memrchr2(b'\n', b'\r', rest)) {
            end = at + line_end + 1;
        }
        Cut { end, damage: None }
    }

    /// Whether a quote stands where a field begins. The bytes must begin with a record.
    fn opens(self, bytes: &[u8], quote: usize) -> bool {
        quote == 0 || matches!(bytes[quote - 1], b'\n' | b'\r') || bytes[quote - 1] == self.delimiter
    }

    /// Splits whole records into fields; keeps at most `max_fields` + 1 fields per record.
    pub(crate) fn split(self, bytes: &[u8], max_fields: usize) -> Records {
        let lone_cr = has_lone_cr(bytes);
        if lone_cr || self.quoting && memchr::memchr(b'"', bytes).is_some() {
            self.split_careful(bytes, max_fields, lone_cr)
        } else if bytes.len() < max_fields {
            // A record has at most one more field than bytes, so no count is needed.
            self.split_plain::<false>(bytes, max_fields)
        } else {
            self.split_plain::<true>(bytes, max_fields)
        }
    }

    /// Splits text without quotes, where every delimiter and every line end counts. Tests eight
    /// bytes at once.
    fn split_plain<const COUNTED: bool>(self, bytes: &[u8], max_fields: usize) -> Records {
        let (mut out, mut at) = Records::new(max_fields);
        if !COUNTED {
            out.fields.reserve(bytes.len() / 6);
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let mut found = equal_bytes(word, self.delimiter) | equal_bytes(word, b'\n');
            while found != 0 {
                plain_field::<COUNTED>(&mut out, bytes, &mut at, i * 8 + found.trailing_zeros() as usize / 8);
                found &= found - 1;
            }
        }
        let base = bytes.len() - rest.len();
        for (i, byte) in rest.iter().enumerate() {
            if *byte == self.delimiter || *byte == b'\n' {
                plain_field::<COUNTED>(&mut out, bytes, &mut at, base + i);
            }
        }
        if at.record < bytes.len() {
            out.field::<COUNTED>(&at, at.field, without_cr(bytes, at.field, bytes.len()));
            out.record(&mut at, bytes.len(), None);
        }
        out
    }

    /// Splits text field by field: for quotes, and for records that end with a lone `\r`.
    fn split_careful(self, bytes: &[u8], max_fields: usize, lone_cr: bool) -> Records {
        let (mut out, mut at) = Records::new(max_fields);
        let mut fault = None;
        while at.record < bytes.len() {
            let mut from = at.field;
            if self.quoting && bytes.get(at.field) == Some(&b'"') {
                match closing_quote(bytes, at.field + 1) {
                    Some(close) => {
                        out.quoted_field(bytes, &at, at.field + 1, close);
                        from = close + 1;
                    }
                    None => {
                        fault = fault.or(Some(QuoteFault::Open));
                        out.field::<true>(&at, at.field, bytes.len());
                        out.record(&mut at, bytes.len(), fault);
                        break;
                    }
                }
            }
            let rest = &bytes[from..];
            let found = match lone_cr {
                true => memchr::memchr3(self.delimiter, b'\n', b'\r', rest),
                false => memchr::memchr2(self.delimiter, b'\n', rest),
            };
            let end = from + found.unwrap_or(rest.len());
            let is_record_end = bytes.get(end) != Some(&self.delimiter);
            let text_end = if is_record_end { without_cr(bytes, from, end) } else { end };
            if from == at.field {
                if self.quoting && memchr::memchr(b'"', &bytes[from..text_end]).is_some() {
                    fault = fault.or(Some(QuoteFault::Stray));
                }
                out.field::<true>(&at, from, text_end);
            } else if text_end > from {
                fault = fault.or(Some(QuoteFault::Behind));
            }
            if is_record_end {
                let n_end = if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
                out.record(&mut at, (end + n_end).min(bytes.len()), fault);
                fault = None;
            } else {
                at.field = end + 1;
            }
        }
        out
    }
}

#[inline]
fn plain_field<const COUNTED: bool>(out: &mut Records, bytes: &[u8], at: &mut Place, end: usize) {
    if bytes[end] == b'\n' {
        out.field::<COUNTED>(at, at.field, without_cr(bytes, at.field, end));
        out.record(at, end + 1, None);
    } else {
        out.field::<COUNTED>(at, at.field, end);
        at.field = end + 1;
    }
}

/// Whether a lone `\r` ends a record. One at the very end ends a record too, but has the same
/// effect as none.
fn has_lone_cr(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', bytes).any(|i| bytes.get(i + 1).is_some_and(|&next| next != b'\n'))
}

/// The high bit of every byte of `word` that equals `byte`.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let different = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
    // The sum of a byte sets the high bit unless its low bits are 0. No sum carries into the next
    // byte.
    !(((different & LOW) + LOW) | different | LOW)
}

#[inline]
fn without_cr(bytes: &[u8], start: usize, end: usize) -> usize {
    if end > start && bytes[end - 1] == b'\r' { end - 1 } else { end }
}

/// Finds the closing quote of a field whose text begins at `from`: the first that is not doubled.
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
    use super::super::records::{Record, Span};
    use super::*;

    const COMMA: Dialect = Dialect { delimiter: b',', quoting: true };

    fn split(dialect: Dialect, text: &str) -> Vec<(Vec<String>, Option<QuoteFault>)> {
        let found = dialect.split(text.as_bytes(), 100);
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

    /// Line ends of old Macs, which pandas and TensorFlow accept.
    #[test]
    fn a_carriage_return_ends_a_record() {
        assert_eq!(split(COMMA, "a,b\rc,d\r"), good(&[&["a", "b"], &["c", "d"]]));
        assert_eq!(split(COMMA, "a,b\rc,d\r\ne,\n"), good(&[&["a", "b"], &["c", "d"], &["e", ""]]));
        assert_eq!(split(COMMA, "a\r\rb"), good(&[&["a"], &[""], &["b"]]));
        assert_eq!(split(COMMA, "\"a\rb\"\r\"c\",\"\"\"\"\rd"), good(&[&["a\rb"], &["c", "\""], &["d"]]));
        let tabs = Dialect { delimiter: b'\t', quoting: false };
        assert_eq!(split(tabs, "\"a\t1\rb\"\t2\r"), good(&[&["\"a", "1"], &["b\"", "2"]]));
    }

    /// A record with too many fields keeps one more than allowed.
    #[test]
    fn fields_are_counted() {
        for text in ["a,b,c,d,e\nf,g\n", "a,b,c,\"d\",e\nf,g\n", "a,b,c,d,e\rf,g\r"] {
            let found = COMMA.split(text.as_bytes(), 2);
            let ends: Vec<_> = found.records.iter().map(|record| (record.fields_end, record.end)).collect();
            assert_eq!(ends, [(3, text.len() - 4), (5, text.len())], "{text:?}");
        }
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

    /// However the text is cut, the whole records are those of the uncut text, and the rest is cut
    /// the same way.
    #[test]
    fn a_cut_is_where_a_record_ends() {
        for text in [
            "a,b\nc,d\ne,f\n",
            "\"a\nb\",c\nd,\"\"\"\n\"\n\"\"\nx\n",
            "5\" x\n\"y\" z\"\n,\"q\n\"\n1,\"2\"\n",
            "\"\",\"\"\n\"\"\"\"\n",
            "a,b\rc,d\re,f\r",
            "a\r\nb\r\r\nc\n\rd\r\n",
            "\"a\r\",b\r\"c\"\r\n\"\r\n\"\rx\"\r\"y\"\r",
        ] {
            let ends: Vec<usize> = COMMA.split(text.as_bytes(), 100).records.iter().map(|r| r.end).collect();
            for length in 0..text.len() {
                let cut = COMMA.cut(&text.as_bytes()[..length], false);
                let whole = ends.iter().copied().filter(|&end| end <= length).max().unwrap_or(0);
                assert!(cut.end == 0 || ends.contains(&cut.end), "{text:?} to {length}: {cut:?} of {ends:?}");
                // A quote at the very end may be half of a doubled one, and delays at most one
                // record.
                let before = ends.iter().copied().filter(|&end| end < whole).max().unwrap_or(0);
                assert!(cut.end == whole || cut.end == before, "{text:?} to {length}: {cut:?} of {ends:?}");
            }
        }
    }
}
