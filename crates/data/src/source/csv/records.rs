//! The records and fields that [`Dialect`](super::dialect::Dialect) finds in CSV text.

/// The place of a field's text: in the chunk, or after its end, among the texts that had doubled
/// quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The number of bytes in the text.
    pub(crate) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The fields of records.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// All fields, record after record.
    pub(crate) fields: Vec<Span>,
    /// For each record, the end of its fields in `fields`, its range in the text, and its error.
    pub(crate) records: Vec<Record>,
    /// The texts of fields that had doubled quotes.
    unescaped: Vec<u8>,
    /// Each record keeps at most one field more than this, which shows that it has too many.
    max_fields: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) fields_end: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) fault: Option<QuoteFault>,
}

/// An error in the quotes of a record. The record ends where it would end without the error.
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
            QuoteFault::Stray => "a field contains a quote but does not begin with one",
            QuoteFault::Behind => "a field has text after its closing quote",
            QuoteFault::Open => "a quote is opened and never closed",
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

/// The start of the current record and field, and the largest size of `fields` before the next
/// record.
pub(super) struct Place {
    pub(super) record: usize,
    pub(super) field: usize,
    most: usize,
}

impl Records {
    pub(super) fn new(max_fields: usize) -> (Records, Place) {
        let place = Place { record: 0, field: 0, most: max_fields.saturating_add(1) };
        (Records { max_fields, ..Records::default() }, place)
    }

    /// The text of a field of these records. `bytes` is the text they were found in.
    #[inline]
    pub(crate) fn text<'a>(&'a self, bytes: &'a [u8], field: Span) -> &'a [u8] {
        let (start, end) = (field.start as usize, field.end as usize);
        match start.checked_sub(bytes.len()) {
            None => &bytes[start..end],
            Some(start) => &self.unescaped[start..end - bytes.len()],
        }
    }

    /// Adds a field. `COUNTED` means that a record may have more fields than are kept.
    ///
    /// Offsets fit into 32 bits: a chunk has at most 2 GiB, and unescaped text is part of it.
    #[inline]
    pub(super) fn field<const COUNTED: bool>(&mut self, at: &Place, start: usize, end: usize) {
        if !COUNTED || self.fields.len() < at.most {
            self.fields.push(Span { start: start as u32, end: end as u32 });
        }
    }

    pub(super) fn quoted_field(&mut self, bytes: &[u8], at: &Place, start: usize, end: usize) {
        let text = &bytes[start..end];
        let Some(first) = memchr::memchr(b'"', text) else { return self.field::<true>(at, start, end) };
        let base = bytes.len() + self.unescaped.len();
        self.unescaped.extend_from_slice(&text[..first]);
        let mut pairs = text[first..].iter();
        while let Some(&byte) = pairs.next() {
            self.unescaped.push(byte);
            if byte == b'"' {
                pairs.next();
            }
        }
        self.field::<true>(at, base, bytes.len() + self.unescaped.len());
    }

    pub(super) fn record(&mut self, at: &mut Place, end: usize, fault: Option<QuoteFault>) {
        self.records.push(Record { fields_end: self.fields.len(), start: at.record, end, fault });
        let most = self.fields.len().saturating_add(self.max_fields).saturating_add(1);
        *at = Place { record: end, field: end, most };
    }
}
