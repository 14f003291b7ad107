//! Formats numbers as text, like C's `printf`: `AsString`.

use std::io::Write;

use super::Decimal;
use crate::{Error, Result, Strings};

/// The settings of `AsString`, with TensorFlow's names and defaults.
///
/// ```
/// # use estimand_tensor::{Strings, cpu::text::{AsString, as_string}};
/// let mut text = Strings::default();
/// as_string(&[0.1_f32, 1e6], &AsString::default(), &mut text)?;
/// as_string(&[0.1_f32, 1e6], &AsString { shortest: true, ..AsString::default() }, &mut text)?;
/// as_string(&[7_i64], &AsString { width: 3, fill: "0".into(), ..AsString::default() }, &mut text)?;
/// assert_eq!(text, ["0.100000", "1000000.000000", "0.1", "1e+06", "007"].into_iter().collect());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsString {
    /// The number of digits after the point, or of significant digits if `shortest`. By default
    /// (-1, or any other negative number) 6.
    pub precision: i64,
    /// Whether to write an exponent: `%e`. By default, no.
    pub scientific: bool,
    /// Whether to write an exponent only if that is shorter, and no zeros at the end: `%g`. By
    /// default, no.
    pub shortest: bool,
    /// The smallest number of bytes. By default (-1, or any other negative number) there is none.
    pub width: i64,
    /// The flag of `printf`: "0" pads with zeros, " " and "+" precede positive numbers, "-" pads on
    /// the right, "#" keeps the point and zeros. By default, none.
    pub fill: String,
}

impl Default for AsString {
    fn default() -> AsString {
        AsString { precision: -1, scientific: false, shortest: false, width: -1, fill: String::new() }
    }
}

/// The largest width and precision: more digits than a double has.
const MAX_SIZE: i64 = 2000;

/// Appends the text of each value to `out`.
pub fn as_string<T: Print>(values: &[T], settings: &AsString, out: &mut Strings) -> Result<()> {
    let format = Format::new(settings, T::KIND)?;
    let mut scratch = Vec::new();
    for value in values {
        value.print(&format, &mut scratch, out);
    }
    Ok(())
}

/// A number that can be printed: `i32`, `i64`, `u8`, `f32`, `f64` or `bool`.
pub trait Print: private::Print {}

mod private {
    pub trait Print {
        const KIND: super::ValueKind;
        fn print(&self, format: &super::Format, scratch: &mut Vec<u8>, out: &mut super::Strings);
    }
}

/// The kind of value, which decides which settings are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    Float,
    /// A signed integer, with the name of its type.
    Signed(&'static str),
    Unsigned(&'static str),
    Bool,
}

/// Checked settings.
pub struct Format {
    precision: Option<usize>,
    notation: Notation,
    width: usize,
    flag: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Notation {
    Fixed,
    Scientific,
    Shortest,
}

impl Format {
    fn new(settings: &AsString, kind: ValueKind) -> Result<Format> {
        let AsString { precision, scientific, shortest, width, fill } = settings;
        let refuse = |what: String| Err(Error::config(format!("as_string: {what}")));
        let name = match kind {
            ValueKind::Float => None,
            ValueKind::Signed(name) | ValueKind::Unsigned(name) => Some(name),
            ValueKind::Bool => Some("bool"),
        };
        if let Some(name) = name {
            if *scientific || *shortest {
                return refuse(format!("`scientific` and `shortest` are only for floats, not for {name}"));
            }
            if *precision >= 0 {
                return refuse(format!("the precision is {precision}, but only floats have one, not {name}"));
            }
        }
        if *scientific && *shortest {
            return refuse("both `scientific` and `shortest` are set; expected at most one".into());
        }
        for (what, value) in [("width", *width), ("precision", *precision)] {
            if value > MAX_SIZE {
                return refuse(format!("the {what} is {value}; expected at most {MAX_SIZE}"));
            }
        }
        let flag = match fill.as_bytes() {
            [] => None,
            [flag @ (b' ' | b'+' | b'-' | b'0' | b'#')] => Some(*flag),
            _ => {
                return refuse(format!(
                    "the fill is {fill:?}; expected nothing or one of \" \", \"+\", \"-\", \"0\", \"#\""
                ));
            }
        };
        let notation = match (scientific, shortest) {
            (true, _) => Notation::Scientific,
            (_, true) => Notation::Shortest,
            _ => Notation::Fixed,
        };
        let precision = usize::try_from(*precision).ok();
        Ok(Format { precision, notation, width: usize::try_from(*width).unwrap_or(0), flag })
    }

    /// Appends a number, given its sign and the rest of its text.
    fn pad(&self, is_negative: bool, is_signed: bool, zeros_fit: bool, text: &[u8], out: &mut Strings) {
        let sign: &[u8] = match self.flag {
            _ if is_negative => b"-",
            Some(b'+') if is_signed => b"+",
            Some(b' ') if is_signed => b" ",
            _ => b"",
        };
        let mut fill = |n: usize, byte: u8| (0..n).for_each(|_| out.write(&[byte]));
        let missing = self.width.saturating_sub(sign.len() + text.len());
        let (spaces, zeros, behind) = match self.flag {
            Some(b'-') => (0, 0, missing),
            Some(b'0') if zeros_fit => (0, missing, 0),
            _ => (missing, 0, 0),
        };
        fill(spaces, b' ');
        out.write(sign);
        (0..zeros).for_each(|_| out.write(b"0"));
        out.write(text);
        (0..behind).for_each(|_| out.write(b" "));
        out.finish();
    }

    fn float(&self, value: f64, scratch: &mut Vec<u8>, out: &mut Strings) {
        scratch.clear();
        let positive = value.abs();
        if value.is_nan() || value.is_infinite() {
            scratch.extend_from_slice(if value.is_nan() { b"nan" } else { b"inf" });
        } else {
            let precision = self.precision.unwrap_or(6);
            match self.notation {
                Notation::Fixed => self.fixed(positive, precision, scratch),
                Notation::Scientific => self.scientific(positive, precision, scratch),
                Notation::Shortest => self.shortest(positive, precision.max(1), scratch),
            }
        }
        // A NaN has a sign too, and zeros before a word would make no sense.
        self.pad(value.is_sign_negative(), true, value.is_finite(), scratch, out);
    }

    fn fixed(&self, value: f64, precision: usize, out: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{value:.precision$}");
        if precision == 0 && self.flag == Some(b'#') {
            out.push(b'.');
        }
    }

    fn scientific(&self, value: f64, precision: usize, out: &mut Vec<u8>) {
        let _ = write!(out, "{value:.precision$e}");
        let exponent = split_exponent(out);
        if precision == 0 && self.flag == Some(b'#') {
            out.push(b'.');
        }
        push_exponent(exponent, out);
    }

    /// Writes fixed notation if the exponent is from -4 up to the precision, otherwise scientific
    /// notation. Both have `precision` significant digits.
    fn shortest(&self, value: f64, precision: usize, out: &mut Vec<u8>) {
        let _ = write!(out, "{value:.*e}", precision - 1);
        let exponent = split_exponent(out);
        let is_fixed = exponent >= -4 && exponent < precision as i32;
        if is_fixed {
            out.clear();
            let _ = write!(out, "{value:.*}", (precision as i32 - 1 - exponent).max(0) as usize);
        }
        if self.flag != Some(b'#') {
            if out.contains(&b'.') {
                let end = out.iter().rposition(|&b| b != b'0').map_or(0, |last| last + 1);
                out.truncate(end);
                out.pop_if(|last| *last == b'.');
            }
        } else if !out.contains(&b'.') {
            out.push(b'.');
        }
        if !is_fixed {
            push_exponent(exponent, out);
        }
    }
}

/// Removes the exponent that Rust wrote from the end, and returns it.
fn split_exponent(text: &mut Vec<u8>) -> i32 {
    let Some(e) = text.iter().rposition(|&b| b == b'e') else { return 0 };
    let exponent = std::str::from_utf8(&text[e + 1..]).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    text.truncate(e);
    exponent
}

/// Appends an exponent as C does: with a sign and at least two digits.
fn push_exponent(exponent: i32, out: &mut Vec<u8>) {
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
}

macro_rules! print {
    ($($t:ty, $kind:expr, |$value:ident, $format:ident, $scratch:ident, $out:ident| $body:expr;)*) => {$(
        impl Print for $t {}
        impl private::Print for $t {
            const KIND: ValueKind = $kind;
            #[inline]
            fn print(&self, $format: &Format, $scratch: &mut Vec<u8>, $out: &mut Strings) {
                let $value = *self;
                $body
            }
        }
    )*};
}

fn print_int(value: i64, is_signed: bool, format: &Format, out: &mut Strings) {
    let text = Decimal::new(value);
    let digits = text.as_bytes().strip_prefix(b"-").unwrap_or(text.as_bytes());
    format.pad(value < 0, is_signed, true, digits, out);
}

print! {
    i64, ValueKind::Signed("i64"), |value, format, _scratch, out| print_int(value, true, format, out);
    i32, ValueKind::Signed("i32"), |value, format, _scratch, out| print_int(value.into(), true, format, out);
    u8, ValueKind::Unsigned("u8"), |value, format, _scratch, out| print_int(value.into(), false, format, out);
    f64, ValueKind::Float, |value, format, scratch, out| format.float(value, scratch, out);
    f32, ValueKind::Float, |value, format, scratch, out| format.float(value.into(), scratch, out);
    // TF: width and fill do not apply to booleans.
    bool, ValueKind::Bool, |value, _format, _scratch, out| out.push(if value { b"true" } else { b"false" });
}
