//! The terms of a vocabulary in order: packed text, or integers.

use std::ops::Range;

use crate::cpu::text::Decimal;
use crate::{DType, Error, Result, Strings};

/// A list of terms, numbered from 0. Compact: text costs its bytes plus 4 bytes per term, an
/// integer 8 bytes.
#[derive(Debug)]
pub struct Terms(pub(super) Data);

#[derive(Debug)]
pub(super) enum Data {
    Text(Text),
    Ints(Vec<i64>),
}

/// Packed strings with 32-bit offsets.
#[derive(Debug)]
pub(super) struct Text {
    bytes: Vec<u8>,
    /// Offsets that never decrease, one longer than the list; at most `bytes.len()`.
    offsets: Vec<u32>,
}

impl Terms {
    /// Text terms, at most 4 GiB in total.
    pub fn from_strings(strings: Strings) -> Result<Terms> {
        let (offsets, mut bytes) = strings.into_parts();
        if u32::try_from(bytes.len()).is_err() {
            return Err(too_large());
        }
        bytes.shrink_to_fit();
        let offsets = offsets.into_iter().map(|offset| offset as u32).collect();
        Ok(Terms(Data::Text(Text { bytes, offsets })))
    }

    /// Integer terms.
    pub fn from_ints(ints: Vec<i64>) -> Terms {
        Terms(Data::Ints(ints))
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        match &self.0 {
            Data::Text(text) => text.len(),
            Data::Ints(ints) => ints.len(),
        }
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `DType::Str` or `DType::I64`.
    pub fn dtype(&self) -> DType {
        match self.0 {
            Data::Text(_) => DType::Str,
            Data::Ints(_) => DType::I64,
        }
    }

    /// The integers; empty if the terms are text.
    pub fn ints(&self) -> &[i64] {
        match &self.0 {
            Data::Text(_) => &[],
            Data::Ints(ints) => ints,
        }
    }

    /// Appends a term's text to a list; integers in decimal. Returns `false` and appends nothing if
    /// there is no such term.
    pub fn push_to(&self, number: usize, out: &mut Strings) -> bool {
        match &self.0 {
            _ if number >= self.len() => return false,
            Data::Text(text) => out.push(text.get(number)),
            Data::Ints(ints) => out.push(Decimal::new(ints[number]).as_bytes()),
        }
        true
    }

    /// Appends the text of each id's term to `out`: the table from ids back to strings. Ids without
    /// a term get `unknown` ("UNK" in TensorFlow).
    pub fn find(&self, ids: &[i64], unknown: &[u8], out: &mut Strings) {
        for &id in ids {
            if !usize::try_from(id).is_ok_and(|number| self.push_to(number, out)) {
                out.push(unknown);
            }
        }
    }

    /// All terms as lines of a file that [`VocabularyFile`](super::VocabularyFile) and TensorFlow
    /// can read.
    ///
    /// Returns an error if a term is empty or holds a line end, which such a file cannot represent.
    pub fn to_lines(&self) -> Result<Vec<u8>> {
        let mut lines = Vec::new();
        for number in 0..self.len() {
            match &self.0 {
                Data::Ints(ints) => lines.extend_from_slice(Decimal::new(ints[number]).as_bytes()),
                Data::Text(text) => {
                    let term = text.get(number);
                    if term.is_empty() || term.contains(&b'\n') || term.ends_with(b"\r") {
                        return Err(Error::config(format!(
                            "term {number}, \"{}\", cannot be a line of a vocabulary file",
                            term.escape_ascii()
                        ))
                        .help("give terms that are empty or contain line ends as a list, not a file"));
                    }
                    lines.extend_from_slice(term);
                }
            }
            lines.push(b'\n');
        }
        Ok(lines)
    }

    /// The memory in bytes.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Data::Text(text) => text.bytes.capacity() + text.offsets.capacity() * size_of::<u32>(),
            Data::Ints(ints) => ints.capacity() * size_of::<i64>(),
        }
    }

    /// Formats a term for a message.
    pub(super) fn show(&self, number: usize) -> String {
        match &self.0 {
            Data::Text(text) => format!("\"{}\"", text.get(number).escape_ascii()),
            Data::Ints(ints) => ints[number].to_string(),
        }
    }
}

impl Default for Text {
    fn default() -> Text {
        Text { bytes: Vec::new(), offsets: vec![0] }
    }
}

impl Text {
    pub fn with_capacity(n_bytes: usize) -> Result<Text> {
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(n_bytes).is_err() {
            return Err(Error::config(format!("there is not enough memory for {n_bytes} bytes of terms")));
        }
        Ok(Text { bytes, offsets: vec![0] })
    }

    /// The bytes of all terms.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends one term.
    pub fn push(&mut self, term: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(term);
        self.offsets.push(u32::try_from(self.bytes.len()).map_err(|_| too_large())?);
        Ok(())
    }

    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.offsets.shrink_to_fit();
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline(always)]
    pub fn get(&self, number: usize) -> &[u8] {
        &self.bytes[self.range(number)]
    }

    /// The range of a term in the bytes.
    #[inline(always)]
    pub fn range(&self, number: usize) -> Range<usize> {
        self.offsets[number] as usize..self.offsets[number + 1] as usize
    }

    /// The address of the offsets of a term, for prefetching.
    #[inline(always)]
    pub fn offset_address(&self, number: usize) -> *const u32 {
        self.offsets.as_ptr().wrapping_add(number)
    }

    /// The address of a term's bytes, for prefetching.
    #[inline(always)]
    pub fn address(&self, number: usize) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(self.offsets[number] as usize)
    }
}

fn too_large() -> Error {
    Error::config("the terms have more than 4 GiB, which is too much for a vocabulary")
        .help("hash the feature instead, or keep the most frequent terms only")
}
