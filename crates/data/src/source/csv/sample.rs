//! Reads the first records of a file: its header, and rows to infer types from.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use estimand_tensor::{Limits, Result};

use super::dialect::Dialect;
use super::format::longest_row;
use super::records::Records;
use crate::files::ceiling::read_error;
use crate::files::{BYTE_ORDER_MARK, Files};

/// The number of bytes after which a sample is large enough, if it has a row.
const ENOUGH: usize = 16 << 20;

/// The first records of a file, as text.
pub(crate) struct Sample {
    /// Whole records.
    bytes: Vec<u8>,
    records: Records,
    /// The fields of each record without an error.
    rows: Vec<Range<usize>>,
}

impl Sample {
    /// Reads `n` records, or fewer if the sample is large enough and has `at_least` records.
    pub(crate) fn read(files: &Files, path: &Path, dialect: Dialect, at_least: usize, n: usize) -> Result<Sample> {
        let limits = files.reading_limits();
        let longest = longest_row(limits);
        let mut reader = files.open(path, 0)?;
        let (mut bytes, mut want) = (Vec::new(), (64 << 10).min(longest));
        loop {
            let missing = want - bytes.len();
            let n_read = reader.by_ref().take(missing as u64).read_to_end(&mut bytes);
            let is_last = n_read.map_err(|e| read_error(path, &e))? < missing;
            let mark = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
            let whole = mark..mark + dialect.cut(&bytes[mark..], is_last).end;
            let records = dialect.split(&bytes[whole.clone()], limits.columns);
            let n_found = records.records.len();
            if is_last || n_found >= n || (want >= ENOUGH && n_found >= at_least) || want >= longest {
                if n_found == 0 && !is_last {
                    let found = format!("the first row does not end within {} bytes", bytes.len());
                    return Err(Limits::exceeded("line_bytes", longest as u64, found).in_file(path));
                }
                bytes.truncate(whole.end);
                bytes.drain(..mark);
                return Ok(Sample::of(bytes, records, n));
            }
            want = want.saturating_mul(4).min(longest);
        }
    }

    fn of(bytes: Vec<u8>, records: Records, n: usize) -> Sample {
        let mut start = 0;
        let mut rows = Vec::new();
        for record in records.records.iter().take(n) {
            let fields = std::mem::replace(&mut start, record.fields_end)..record.fields_end;
            if record.fault.is_none() {
                rows.push(fields);
            }
        }
        Sample { bytes, records, rows }
    }

    /// The records without errors, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = SampleRow<'_>> {
        self.rows.iter().map(|fields| SampleRow { sample: self, fields: fields.clone() })
    }
}

/// One record.
pub(crate) struct SampleRow<'a> {
    sample: &'a Sample,
    fields: Range<usize>,
}

impl<'a> SampleRow<'a> {
    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The text of a field.
    pub(crate) fn field(&self, i: usize) -> &'a [u8] {
        let Sample { bytes, records, .. } = self.sample;
        records.text(bytes, records.fields[self.fields.start + i])
    }
}
