//! Writes answers as TensorFlow Serving lays them out: arrays on one line, objects over several.

use estimand_tensor::{Array, DType};

use super::number::{write_f32, write_f64};
use super::{Format, encode_base64};
use crate::status::{Answer, Status};

/// Appends JSON to a buffer.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) out: Vec<u8>,
}

impl Writer {
    pub(crate) fn raw(&mut self, text: &str) -> &mut Writer {
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    /// A quoted string. Bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&mut self, text: &[u8]) -> &mut Writer {
        self.out.push(b'"');
        let lossy;
        let bytes = match std::str::from_utf8(text) {
            Ok(_) => text,
            Err(_) => {
                lossy = String::from_utf8_lossy(text);
                lossy.as_bytes()
            }
        };
        let mut rest = bytes;
        while let Some(i) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            self.out.extend_from_slice(&rest[..i]);
            self.escape(rest[i]);
            rest = &rest[i + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
        self
    }

    fn escape(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let letter = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
                self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', letter]);
    }

    pub(crate) fn integer(&mut self, value: i64) -> &mut Writer {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(&digits[at..]);
        self
    }

    pub(crate) fn f32(&mut self, value: f32) -> &mut Writer {
        write_f32(value, &mut self.out);
        self
    }

    /// A string of a tensor: text, or base 64 for an output of bytes and for bytes that are no
    /// text.
    fn string(&mut self, value: &[u8], is_bytes: bool) {
        if is_bytes || std::str::from_utf8(value).is_err() {
            self.raw("{\"b64\": \"");
            encode_base64(value, &mut self.out);
            self.raw("\"}");
        } else {
            self.text(value);
        }
    }
}

/// An output that is written element by element.
struct Output<'a> {
    name: &'a str,
    values: Slice<'a>,
    dims: &'a [usize],
    is_bytes: bool,
}

enum Slice<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    Bool(&'a [bool]),
    Str(estimand_tensor::StringSlice<'a>),
}

impl<'a> Output<'a> {
    fn new(name: &'a str, array: &'a Array) -> Answer<Output<'a>> {
        let values = match array.dtype() {
            DType::F32 => Slice::F32(array.as_slice()?),
            DType::F64 => Slice::F64(array.as_slice()?),
            DType::I32 => Slice::I32(array.as_slice()?),
            DType::I64 => Slice::I64(array.as_slice()?),
            DType::U8 => Slice::U8(array.as_slice()?),
            DType::Bool => Slice::Bool(array.as_slice()?),
            DType::Str => Slice::Str(array.string_slice()?),
        };
        Ok(Output { name, values, dims: array.dims(), is_bytes: name.ends_with("_bytes") })
    }

    /// Writes the part of the array at `offset` whose first axis is `axis`, and returns its end.
    fn write(&self, axis: usize, offset: usize, writer: &mut Writer) -> usize {
        let Some(&n) = self.dims.get(axis) else {
            self.element(offset, writer);
            return offset + 1;
        };
        writer.raw("[");
        let mut at = offset;
        for i in 0..n {
            if i > 0 {
                writer.raw(", ");
            }
            at = self.write(axis + 1, at, writer);
        }
        writer.raw("]");
        at
    }

    fn element(&self, i: usize, writer: &mut Writer) {
        match &self.values {
            Slice::F32(values) => write_f32(values[i], &mut writer.out),
            Slice::F64(values) => write_f64(values[i], &mut writer.out),
            Slice::I32(values) => _ = writer.integer(values[i].into()),
            Slice::I64(values) => _ = writer.integer(values[i]),
            Slice::U8(values) => _ = writer.integer(values[i].into()),
            Slice::Bool(values) => _ = writer.raw(if values[i] { "true" } else { "false" }),
            Slice::Str(values) => writer.string(values.get(i), self.is_bytes),
        }
    }
}

/// Writes all elements of an array in a row, with commas between them. Strings that are no text are
/// written as their text would be, with other characters for the wrong bytes.
pub(crate) fn write_elements(writer: &mut Writer, array: &Array) -> Answer<()> {
    let output = Output::new("", array)?;
    for i in 0..array.len() {
        writer.raw(if i > 0 { "," } else { "" });
        match &output.values {
            Slice::Str(values) => _ = writer.text(values.get(i)),
            _ => output.element(i, writer),
        }
    }
    Ok(())
}

/// The answer to `:predict`, in the format of the request.
pub(crate) fn predictions<'a>(arrays: impl Iterator<Item = (&'a str, &'a Array)>, format: Format) -> Answer<Vec<u8>> {
    let all = arrays.map(|(name, array)| Output::new(name, array)).collect::<Answer<Vec<_>>>()?;
    if all.is_empty() {
        return Err(Status::invalid("Cannot convert empty tensor map to JSON"));
    }
    let mut writer = Writer { out: Vec::with_capacity(256) };
    match format {
        Format::Row => rows(&all, &mut writer)?,
        Format::Column => columns(&all, &mut writer),
    }
    Ok(writer.out)
}

fn rows(all: &[Output<'_>], writer: &mut Writer) -> Answer<()> {
    let mut n_rows = None;
    for output in all {
        let Some(&rows) = output.dims.first() else {
            return Err(Status::invalid(format!("Tensor name: {} has no shape information ", output.name)));
        };
        let expected = *n_rows.get_or_insert(rows);
        if rows != expected {
            return Err(Status::invalid(format!(
                "Tensor name: {} has inconsistent batch size: {rows} expecting: {expected}",
                output.name
            )));
        }
    }
    let n_rows = n_rows.unwrap_or(0);
    let mut offsets = vec![0; all.len()];
    writer.raw("{\n    \"predictions\": [");
    for row in 0..n_rows {
        if let [only] = all {
            writer.raw(if row > 0 { ", " } else { "" });
            offsets[0] = only.write(1, offsets[0], writer);
            continue;
        }
        writer.raw(if row > 0 { ",\n        {" } else { "\n        {" });
        for (i, (output, offset)) in all.iter().zip(&mut offsets).enumerate() {
            writer.raw(if i > 0 { ",\n            " } else { "\n            " });
            writer.text(output.name.as_bytes()).raw(": ");
            *offset = output.write(1, *offset, writer);
        }
        writer.raw("\n        }");
    }
    writer.raw(if n_rows > 0 { "\n    ]\n}" } else { "]\n}" });
    Ok(())
}

fn columns(all: &[Output<'_>], writer: &mut Writer) {
    writer.raw("{\n    \"outputs\": ");
    if let [only] = all {
        only.write(0, 0, writer);
    } else {
        writer.raw("{");
        for (i, output) in all.iter().enumerate() {
            writer.raw(if i > 0 { ",\n        " } else { "\n        " });
            writer.text(output.name.as_bytes()).raw(": ");
            output.write(0, 0, writer);
        }
        writer.raw("\n    }");
    }
    writer.raw("\n}");
}

/// The answer to `:classify`: for each example a list of labels and scores.
pub(crate) fn classifications(all: &crate::infer::Classifications<'_>) -> Vec<u8> {
    let mut writer = Writer { out: Vec::with_capacity(256) };
    writer.raw("{\n    \"results\": [");
    for row in 0..all.n_rows() {
        writer.raw(if row > 0 { ", [" } else { "[" });
        for class in 0..all.n_classes() {
            writer.raw(if class > 0 { ", [" } else { "[" });
            writer.text(all.label(row, class)).raw(", ").f32(all.score(row, class)).raw("]");
        }
        writer.raw("]");
    }
    writer.raw("\n    ]\n}");
    writer.out
}

/// The answer to `:regress`: a number for each example.
pub(crate) fn regressions(values: &[f32]) -> Vec<u8> {
    let mut writer = Writer { out: Vec::with_capacity(64) };
    writer.raw("{\n    \"results\": [");
    for (i, &value) in values.iter().enumerate() {
        writer.raw(if i > 0 { ", " } else { "" }).f32(value);
    }
    writer.raw("]\n}");
    writer.out
}
