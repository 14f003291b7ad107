//! Formats fields: numbers that parse to the same bits, and strings quoted where necessary.

use std::fmt::Debug;
use std::io::Write;

use estimand_tensor::{Array, DType, Error, Feature, Result, StringSlice};

/// One column of a piece of rows.
pub(super) struct Column<'a> {
    values: Values<'a>,
    /// The number of fields per row.
    width: usize,
}

enum Values<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    Bool(&'a [bool]),
    Str(StringSlice<'a>),
}

impl<'a> Column<'a> {
    pub(super) fn new(name: &str, feature: &'a Feature) -> Result<Column<'a>> {
        let Feature::Dense(array) = feature else {
            return Err(Error::internal(format!("the ragged column `{name}` was not refused")));
        };
        Ok(Column { values: Values::new(array)?, width: array.dims().iter().skip(1).product() })
    }

    /// Appends the fields of a row.
    pub(super) fn write(&self, row: usize, line: &mut Line<'_>) {
        for i in row * self.width..(row + 1) * self.width {
            match &self.values {
                Values::F32(values) => line.float(values[i], values[i].is_nan()),
                Values::F64(values) => line.float(values[i], values[i].is_nan()),
                Values::I32(values) => line.plain(format_args!("{}", values[i])),
                Values::I64(values) => line.plain(format_args!("{}", values[i])),
                Values::U8(values) => line.plain(format_args!("{}", values[i])),
                Values::Bool(values) => line.plain(format_args!("{}", u8::from(values[i]))),
                Values::Str(values) => line.text(values.get(i)),
            }
        }
    }
}

impl<'a> Values<'a> {
    fn new(array: &'a Array) -> Result<Values<'a>> {
        Ok(match array.dtype() {
            DType::F32 => Values::F32(array.as_slice()?),
            DType::F64 => Values::F64(array.as_slice()?),
            DType::I32 => Values::I32(array.as_slice()?),
            DType::I64 => Values::I64(array.as_slice()?),
            DType::U8 => Values::U8(array.as_slice()?),
            DType::Bool => Values::Bool(array.as_slice()?),
            DType::Str => Values::Str(array.string_slice()?),
        })
    }
}

/// The line being written.
pub(super) struct Line<'a> {
    delimiter: u8,
    out: &'a mut Vec<u8>,
    /// Where the line begins.
    start: usize,
    n_fields: usize,
}

impl<'a> Line<'a> {
    pub(super) fn new(delimiter: u8, out: &'a mut Vec<u8>) -> Line<'a> {
        Line { delimiter, start: out.len(), out, n_fields: 0 }
    }

    fn next_field(&mut self) {
        if self.n_fields > 0 {
            self.out.push(self.delimiter);
        }
        self.n_fields += 1;
    }

    fn plain(&mut self, text: std::fmt::Arguments<'_>) {
        let start = self.out.len() + usize::from(self.n_fields > 0);
        self.next_field();
        // Writing to memory cannot fail.
        let _ = self.out.write_fmt(text);
        // A number may contain the delimiter, if that is a digit, a point or a minus sign.
        if self.out[start..].contains(&self.delimiter) {
            self.out.insert(start, b'"');
            self.out.push(b'"');
        }
    }

    /// Writes a float. `Debug` prints the shortest digits that parse to the same bits, and always a
    /// point or an exponent.
    fn float(&mut self, value: impl Debug, is_missing: bool) {
        match is_missing {
            true => self.next_field(),
            false => self.plain(format_args!("{value:?}")),
        }
    }

    /// Appends a string, in quotes if it needs them.
    pub(super) fn text(&mut self, text: &[u8]) {
        self.next_field();
        let is_special = |&byte: &u8| byte == self.delimiter || matches!(byte, b'"' | b'\r' | b'\n');
        // Spaces at the ends belong to the field, but some readers drop them.
        if !text.iter().any(is_special) && !text.starts_with(b" ") && !text.ends_with(b" ") {
            self.out.extend_from_slice(text);
            return;
        }
        self.out.push(b'"');
        for part in text.split_inclusive(|&byte| byte == b'"') {
            self.out.extend_from_slice(part);
            if part.ends_with(b"\"") {
                self.out.push(b'"');
            }
        }
        self.out.push(b'"');
    }

    /// Ends the line and begins the next.
    pub(super) fn end(&mut self) {
        // Most readers skip an empty line, so an empty field is quoted.
        if self.out.len() == self.start {
            self.out.extend_from_slice(b"\"\"");
        }
        self.out.push(b'\n');
        (self.start, self.n_fields) = (self.out.len(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(delimiter: u8, write: impl Fn(&mut Line<'_>)) -> String {
        let mut out = Vec::new();
        let mut line = Line::new(delimiter, &mut out);
        write(&mut line);
        line.end();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quotes_of_rfc_4180() {
        let texts = ["plain", "", "a,b", "say \"no\"", "\"", "two\nlines", "\r", " spaces ", "semi;colon"];
        let expected = "plain,,\"a,b\",\"say \"\"no\"\"\",\"\"\"\",\"two\nlines\",\"\r\",\" spaces \",semi;colon\n";
        assert_eq!(line(b',', |l| texts.iter().for_each(|t| l.text(t.as_bytes()))), expected);
        assert_eq!(line(b';', |l| l.text(b"semi;colon,")), "\"semi;colon,\"\n");
    }

    #[test]
    fn a_line_is_never_empty() {
        assert_eq!(line(b',', |l| l.text(b"")), "\"\"\n");
        assert_eq!(line(b',', |l| l.float(f32::NAN, true)), "\"\"\n");
        assert_eq!(line(b',', |l| (0..2).for_each(|_| l.text(b""))), ",\n");
    }

    #[test]
    fn floats_read_back_to_the_same_bits() {
        let odd = [0.1, -0.0, 1.0, 1e-45, f32::MAX, f32::MIN_POSITIVE, 16_777_216.0, 1e10, f32::INFINITY];
        for value in odd.into_iter().chain((0..50_000u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9)))) {
            if value.is_nan() {
                continue;
            }
            let text = line(b',', |l| l.float(value, false));
            assert_eq!(text.trim_end().parse::<f32>().unwrap().to_bits(), value.to_bits(), "{text}");
        }
        assert_eq!(line(b',', |l| l.float(1.0f64, false)), "1.0\n");
        assert_eq!(line(b',', |l| l.float(1e-7f64, false)), "1e-7\n");
    }

    #[test]
    fn numbers_may_hold_the_delimiter() {
        assert_eq!(line(b'.', |l| (0..2).for_each(|_| l.float(0.5f32, false))), "\"0.5\".\"0.5\"\n");
        assert_eq!(line(b'-', |l| l.plain(format_args!("{}", -3))), "\"-3\"\n");
    }
}
