//! The format of CSV text: turns chunks of files into rows.

use std::path::Path;

use estimand_tensor::{Batch, Error, Limits};

use super::column::{BadField, Column};
use super::dialect::Dialect;
use super::records::{Records, Span};
use crate::files::chunk::{Bad, Chunk, Cut, Format, Parsed};
use crate::files::{BYTE_ORDER_MARK, Files, line_place};
use crate::source::shown;

/// All that is known about the files before their rows are read.
#[derive(Debug)]
pub(crate) struct CsvFormat {
    pub(crate) dialect: Dialect,
    /// Whether the first record of a file is its header, and whether the header must match `names`.
    pub(crate) header: Header,
    /// The names of all columns of the files.
    pub(crate) names: Vec<String>,
    /// The columns that are read.
    pub(crate) columns: Vec<Column>,
    /// Whether text must be UTF-8.
    pub(crate) utf8: bool,
    pub(crate) limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Absent,
    /// There is a header, but the names were given by the user.
    Ignored,
    Checked,
}

/// The largest number of bytes in a row. Offsets of fields have 32 bits, and text with doubled
/// quotes is stored after the text of the chunk.
pub(crate) fn longest_row(limits: &Limits) -> usize {
    limits.line_bytes.min(i32::MAX as usize)
}

/// Rows that have all their fields.
struct Rows<'a> {
    bytes: &'a [u8],
    records: &'a Records,
    /// For each row, the index of its first field.
    first_fields: Vec<usize>,
    /// For each row, its range in the text.
    places: Vec<(usize, usize)>,
}

impl Rows<'_> {
    fn column(&self, index: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let fields: &[Span] = &self.records.fields;
        self.first_fields.iter().map(move |first| self.records.text(self.bytes, fields[first + index]))
    }
}

impl Format for CsvFormat {
    const RECORD: &'static str = "row";

    fn longest(limits: &Limits) -> (usize, &'static str) {
        (longest_row(limits), "line_bytes")
    }

    fn cut(&self, bytes: &[u8], offset: u64, is_last: bool) -> Cut {
        // The first field may begin with a quote after the mark.
        let mark = mark_len(bytes, offset);
        let Cut { end, damage } = self.dialect.cut(&bytes[mark..], is_last);
        Cut { end: if end > 0 || is_last { mark + end } else { 0 }, damage }
    }

    fn parse(&self, chunk: &Chunk) -> Parsed {
        let mut parsed = Parsed::default();
        let mark = mark_len(&chunk.bytes, chunk.offset);
        let bytes = &chunk.bytes[mark..];
        let records = self.dialect.split(bytes, self.limits.columns);
        let skip_header = chunk.offset == 0 && self.header != Header::Absent;
        if skip_header && self.header == Header::Checked {
            parsed.fatal = self.check_header(bytes, &records);
        }

        let mut bad = Vec::new();
        let mut rows = self.whole_rows(bytes, &records, usize::from(skip_header), &mut bad);
        let is_text = !self.utf8 || std::str::from_utf8(bytes).is_ok();
        let batch = if is_text { self.batch(&rows) } else { None };
        parsed.batch = match batch {
            Some(batch) => batch,
            None => {
                self.sort_out(&mut rows, &mut bad);
                self.batch(&rows).unwrap_or_default()
            }
        };
        parsed.ends = rows.places.iter().map(|(_, end)| mark + end).collect();
        bad.sort_by_key(|bad| bad.start);
        for bad in &mut bad {
            bad.n_good = rows.places.partition_point(|(start, _)| *start < bad.start);
            (bad.start, bad.end) = (mark + bad.start, mark + bad.end);
        }
        parsed.bad = bad.into();
        parsed
    }

    fn place(&self, files: &Files, path: &Path, offset: u64) -> String {
        line_place(files, path, offset)
    }
}

/// The length of the byte order mark, if these bytes begin the file with one.
fn mark_len(bytes: &[u8], offset: u64) -> usize {
    if offset == 0 && bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}

impl CsvFormat {
    /// The rows with the right number of fields. Empty lines are skipped, unless rows have one
    /// field.
    fn whole_rows<'a>(&self, bytes: &'a [u8], records: &'a Records, skip: usize, bad: &mut Vec<Bad>) -> Rows<'a> {
        let n_columns = self.names.len();
        let n = records.records.len();
        let mut rows = Rows { bytes, records, first_fields: Vec::with_capacity(n), places: Vec::with_capacity(n) };
        let mut first = 0;
        for (i, record) in records.records.iter().enumerate() {
            let fields = first..record.fields_end;
            first = record.fields_end;
            if i < skip {
                continue;
            }
            if record.fault.is_none() && fields.len() == n_columns {
                if let Some(long) = self.too_long(bytes, &records.fields[fields.clone()]) {
                    bad.push(Bad { start: record.start, end: record.end, ..long });
                    continue;
                }
                rows.first_fields.push(fields.start);
                rows.places.push((record.start, record.end));
                continue;
            }
            let is_blank = fields.len() == 1 && records.text(bytes, records.fields[fields.start]).is_empty();
            let (message, help) = match record.fault {
                Some(fault) => (fault.message().to_string(), Some(fault.help().to_string())),
                None if is_blank => continue,
                None if fields.len() > self.limits.columns => {
                    (format!("the row has more than {} fields; expected {n_columns}", self.limits.columns), None)
                }
                None => (format!("the row has {} fields; expected {n_columns}", fields.len()), None),
            };
            bad.push(Bad { n_good: 0, start: record.start, end: record.end, column: None, message, help });
        }
        rows
    }

    /// The error for a field that is too long. Most chunks are shorter than the limit, so no field
    /// of theirs can exceed it.
    fn too_long(&self, bytes: &[u8], fields: &[Span]) -> Option<Bad> {
        let limit = self.limits.field_bytes;
        if bytes.len() <= limit {
            return None;
        }
        let (i, field) = fields.iter().enumerate().find(|(_, field)| field.len() > limit)?;
        Some(Bad {
            n_good: 0,
            start: 0,
            end: 0,
            column: self.names.get(i).cloned(),
            message: format!("a field has {} bytes; the limit is {limit} (`field_bytes`)", field.len()),
            help: Some(Limits::remedy("field_bytes")),
        })
    }

    /// Parses the features of rows; `None` if a field cannot be parsed.
    fn batch(&self, rows: &Rows<'_>) -> Option<Batch> {
        let mut batch = Batch::new();
        for column in &self.columns {
            let (array, missing) = column.parse(rows.column(column.index)).ok()?;
            batch = batch.with_feature(&column.name, array).ok()?;
            if let Some(missing) = missing {
                batch = batch.with_missing(&column.name, missing).ok()?;
            }
        }
        Some(batch)
    }

    /// Parses rows one by one, and removes those that cannot be parsed.
    #[cold]
    fn sort_out(&self, rows: &mut Rows<'_>, bad: &mut Vec<Bad>) {
        let all = rows.first_fields.drain(..).zip(rows.places.drain(..)).collect::<Vec<_>>();
        for (first_field, (start, end)) in all {
            match self.columns.iter().find_map(|column| Some((column, self.fault(rows, first_field, column)?))) {
                None => {
                    rows.first_fields.push(first_field);
                    rows.places.push((start, end));
                }
                Some((column, BadField { message, help })) => {
                    let (column, help) = (Some(column.name.clone()), Some(help));
                    bad.push(Bad { n_good: 0, start, end, column, message, help });
                }
            }
        }
    }

    /// The error in a column's field of one row, if there is one.
    fn fault(&self, rows: &Rows<'_>, first_field: usize, column: &Column) -> Option<BadField> {
        let text = rows.records.text(rows.bytes, rows.records.fields[first_field + column.index]);
        if self.utf8 && std::str::from_utf8(text).is_err() {
            let message = format!("column `{}` has \"{}\", which is not UTF-8", column.name, shown(text));
            let help = "convert the file, or read its bytes as they are with utf8(false)".to_string();
            return Some(BadField { message, help });
        }
        column.parse(std::iter::once(text)).err()
    }

    /// The error in the header of a file, if there is one.
    fn check_header(&self, bytes: &[u8], records: &Records) -> Option<Error> {
        let first = records.records.first()?;
        let texts = records.fields[..first.fields_end].iter().map(|field| records.text(bytes, *field));
        let found: Vec<_> = texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        if found == self.names {
            return None;
        }
        let differs = found.iter().zip(&self.names).position(|(found, expected)| found != expected);
        let message = match differs {
            Some(i) => format!(
                "column {} of the header is `{}`, but in the first file it is `{}`",
                i + 1,
                found[i],
                self.names[i]
            ),
            None => format!("the header has {} columns, but the first file has {}", found.len(), self.names.len()),
        };
        Some(
            Error::config(message)
                .help("give all files of a dataset the same header, or read these files as datasets of their own"),
        )
    }
}
