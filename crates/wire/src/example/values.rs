//! The values of one feature, and the three kinds of lists that they are parsed from.

use estimand_tensor::{Array, DType, Result, Strings};

use super::cursor::{Cursor, DELIMITED, FIXED32, VARINT, tag};

/// The kinds of lists in a `Feature`, with their field numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ListKind {
    Bytes = 1,
    Float = 2,
    Int64 = 3,
}

impl ListKind {
    pub(super) const ALL: [ListKind; 3] = [ListKind::Bytes, ListKind::Float, ListKind::Int64];

    /// The kind of list that holds a dtype.
    pub(super) fn of(dtype: DType) -> Option<ListKind> {
        ListKind::ALL.into_iter().find(|kind| kind.dtype() == dtype)
    }

    pub(super) fn dtype(self) -> DType {
        match self {
            ListKind::Bytes => DType::Str,
            ListKind::Float => DType::F32,
            ListKind::Int64 => DType::I64,
        }
    }

    /// The name for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            ListKind::Bytes => "bytes_list",
            ListKind::Float => "float_list",
            ListKind::Int64 => "int64_list",
        }
    }

    /// The tag byte of the list in a `Feature`.
    #[inline]
    pub(super) fn tag(self) -> u8 {
        tag(self as u8, DELIMITED)
    }
}

/// Values of one dtype, row after row.
#[derive(Clone, Debug)]
pub(super) enum Values {
    F32(Vec<f32>),
    I64(Vec<i64>),
    Str(Strings),
}

impl Values {
    pub(super) fn new(kind: ListKind, capacity: usize) -> Values {
        match kind {
            ListKind::Bytes => Values::Str(Strings::with_capacity(capacity)),
            ListKind::Float => Values::F32(Vec::with_capacity(capacity)),
            ListKind::Int64 => Values::I64(Vec::with_capacity(capacity)),
        }
    }

    /// Copies the elements of an array of one of the three dtypes.
    pub(super) fn of(array: &Array) -> Result<Values> {
        Ok(match array.dtype() {
            DType::F32 => Values::F32(array.as_slice()?.to_vec()),
            DType::I64 => Values::I64(array.as_slice()?.to_vec()),
            _ => Values::Str(array.strings()?.collect()),
        })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::I64(values) => values.len(),
            Values::Str(values) => values.len(),
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Values::F32(values) => values.truncate(len),
            Values::I64(values) => values.truncate(len),
            Values::Str(values) => values.truncate(len),
        }
    }

    /// Appends values of the same dtype.
    pub(super) fn append(&mut self, other: &Values) {
        match (self, other) {
            (Values::F32(values), Values::F32(more)) => values.extend_from_slice(more),
            (Values::I64(values), Values::I64(more)) => values.extend_from_slice(more),
            (Values::Str(values), Values::Str(more)) => values.append(more),
            _ => unreachable!("both belong to one feature"),
        }
    }

    /// Appends the values of a list of this kind. If the list is damaged, returns `None`, with part
    /// of it appended.
    #[inline]
    pub(super) fn read(&mut self, list: &[u8]) -> Option<()> {
        match self {
            Values::F32(values) => read_floats(list, values),
            Values::I64(values) => read_ints(list, values),
            Values::Str(values) => read_strings(list, values),
        }
    }

    pub(super) fn into_array(self, dims: &[usize]) -> Result<Array> {
        match self {
            Values::F32(values) => Array::from_vec(dims, values),
            Values::I64(values) => Array::from_vec(dims, values),
            Values::Str(values) => Array::from_string_list(dims, values),
        }
    }
}

/// The tag of the only field of a list, packed or a string.
const PACKED: u8 = tag(1, DELIMITED);

fn read_ints(list: &[u8], out: &mut Vec<i64>) -> Option<()> {
    const SINGLE: u8 = tag(1, VARINT);
    let mut list = Cursor::new(list);
    match list.byte() {
        None => Some(()),
        Some(PACKED) => {
            let mut packed = Cursor::new(list.delimited()?);
            while !packed.is_empty() {
                out.push(packed.varint()? as i64);
            }
            one_piece(list)
        }
        Some(SINGLE) => loop {
            out.push(list.varint()? as i64);
            match list.byte() {
                None => break Some(()),
                Some(SINGLE) => {}
                Some(_) => break None,
            }
        },
        Some(_) => None,
    }
}

fn read_floats(list: &[u8], out: &mut Vec<f32>) -> Option<()> {
    const SINGLE: u8 = tag(1, FIXED32);
    let mut list = Cursor::new(list);
    match list.byte() {
        None => Some(()),
        Some(PACKED) => {
            let (packed, rest) = list.delimited()?.as_chunks();
            out.extend(packed.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            if rest.is_empty() { one_piece(list) } else { None }
        }
        Some(SINGLE) => loop {
            out.push(f32::from_le_bytes(list.fixed32()?));
            match list.byte() {
                None => break Some(()),
                Some(SINGLE) => {}
                Some(_) => break None,
            }
        },
        Some(_) => None,
    }
}

fn read_strings(list: &[u8], out: &mut Strings) -> Option<()> {
    let mut list = Cursor::new(list);
    while let Some(byte) = list.byte() {
        if byte != PACKED {
            return None;
        }
        out.push(list.delimited()?);
    }
    Some(())
}

/// Checks that nothing follows a packed list. Protobuf would append a second list and TensorFlow
/// ignores it, so it is refused.
fn one_piece(rest: Cursor<'_>) -> Option<()> {
    rest.is_empty().then_some(())
}
