//! Numbers as files store them, widened to the element types of arrays.

use estimand_tensor::{Array, DType, Element, Error, Result, element_count};

/// The type of stored numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stored {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    F32,
    F64,
}

/// The byte order of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl Stored {
    /// The number of bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Stored::Bool | Stored::I8 | Stored::U8 => 1,
            Stored::I16 | Stored::U16 => 2,
            Stored::I32 | Stored::U32 | Stored::F32 => 4,
            Stored::I64 | Stored::F64 => 8,
        }
    }

    /// Parses numbers in row-major order. A type that arrays do not have becomes the next wider one
    /// that holds its values.
    pub(crate) fn array(self, order: ByteOrder, dims: &[usize], bytes: &[u8]) -> Result<Array> {
        match self {
            Stored::Bool if bytes.iter().all(|&b| b <= 1) => Array::from_bytes(DType::Bool, dims, bytes),
            Stored::Bool => Err(Error::data("a boolean byte is neither 0 nor 1")),
            Stored::U8 => Array::from_slice(dims, bytes),
            Stored::I8 => convert(dims, bytes, order, |[b]: [u8; 1]| i32::from(b as i8)),
            Stored::I16 => convert(dims, bytes, order, |b| i32::from(i16::from_le_bytes(b))),
            Stored::U16 => convert(dims, bytes, order, |b| i32::from(u16::from_le_bytes(b))),
            Stored::I32 => convert(dims, bytes, order, i32::from_le_bytes),
            Stored::U32 => convert(dims, bytes, order, |b| i64::from(u32::from_le_bytes(b))),
            Stored::I64 => convert(dims, bytes, order, i64::from_le_bytes),
            Stored::F32 => convert(dims, bytes, order, f32::from_le_bytes),
            Stored::F64 => convert(dims, bytes, order, f64::from_le_bytes),
        }
    }
}

fn convert<const N: usize, T: Element>(
    dims: &[usize],
    bytes: &[u8],
    order: ByteOrder,
    number: impl Fn([u8; N]) -> T,
) -> Result<Array> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let values = match order {
        ByteOrder::Little => numbers.iter().map(|&b| number(b)).collect(),
        ByteOrder::Big => numbers
            .iter()
            .map(|&b| {
                let mut b = b;
                b.reverse();
                number(b)
            })
            .collect(),
    };
    Array::from_vec(dims, values)
}

/// Checks that the bytes are exactly those of the array. So no header makes the reader allocate
/// more memory than the file is long.
pub(crate) fn check_length(dims: &[usize], size: usize, bytes: &[u8]) -> Result<()> {
    let expected = element_count(dims)?.checked_mul(size);
    if expected == Some(bytes.len()) {
        return Ok(());
    }
    let expected = expected.map_or("more than memory can hold".to_string(), |n| n.to_string());
    let message = format!(
        "there are {} bytes of data; expected {expected} for the shape {dims:?} of {size} bytes each",
        bytes.len()
    );
    Err(Error::data(message).help("the file was cut short, or is not what its header says"))
}
