//! Datatypes: how an element is stored.

use estimand_tensor::{DType, Error, Result};

use crate::read::cursor::{Cursor, Widths};

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Order {
    Little,
    Big,
}

/// The bytes after the end of a string of fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Padding {
    /// The first zero ends the string.
    Terminated,
    /// Zeros fill the rest.
    Zeros,
    /// Spaces fill the rest.
    Spaces,
}

/// A type of elements that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) enum Datatype {
    /// A float of 2, 4 or 8 bytes.
    Float { size: usize, order: Order },
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer { size: usize, is_signed: bool, order: Order },
    /// h5py's booleans: an enumeration of FALSE = 0 and TRUE = 1 in one byte.
    Bool,
    /// Strings of one length.
    FixedString { size: usize, padding: Padding },
    /// References to strings in global heaps.
    VariableString { size: usize },
}

/// The classes of types, in the order of their numbers.
const CLASSES: [&str; 12] = [
    "integer",
    "float",
    "time",
    "string",
    "bit field",
    "opaque",
    "compound",
    "reference",
    "enumeration",
    "variable-length",
    "array",
    "complex",
];

impl Datatype {
    pub fn parse(bytes: &[u8], widths: Widths) -> Result<Datatype> {
        parse(&mut Cursor::new(bytes, widths), widths, 0)
    }

    /// The number of bytes of an element in the file.
    pub fn size(&self) -> usize {
        match self {
            Datatype::Bool => 1,
            Datatype::Float { size, .. }
            | Datatype::Integer { size, .. }
            | Datatype::FixedString { size, .. }
            | Datatype::VariableString { size } => *size,
        }
    }

    /// The dtype of arrays of such elements.
    pub fn dtype(&self) -> DType {
        match *self {
            Datatype::Float { size: 8, .. } => DType::F64,
            Datatype::Float { .. } => DType::F32,
            Datatype::Integer { size: 1, is_signed: false, .. } => DType::U8,
            Datatype::Integer { size: 1 | 2, .. } | Datatype::Integer { size: 4, is_signed: true, .. } => DType::I32,
            Datatype::Integer { .. } => DType::I64,
            Datatype::Bool => DType::Bool,
            Datatype::FixedString { .. } | Datatype::VariableString { .. } => DType::Str,
        }
    }
}

fn parse(cursor: &mut Cursor<'_>, widths: Widths, depth: usize) -> Result<Datatype> {
    let first = cursor.u8()?;
    let (class, version) = (first & 15, first >> 4);
    let bits = cursor.number(3)?;
    let size = cursor.u32()? as usize;
    if !(1..=5).contains(&version) {
        return Err(Error::unsupported(format!("a datatype of version {version}; versions 1 to 5 are read")));
    }
    let order = if bits & 1 == 0 { Order::Little } else { Order::Big };
    match class {
        0 => {
            let (offset, precision) = (cursor.u16()?, usize::from(cursor.u16()?));
            if !matches!(size, 1 | 2 | 4 | 8) || offset != 0 || precision != 8 * size {
                return Err(Error::unsupported(format!("an integer of {precision} bits in {size} bytes")));
            }
            Ok(Datatype::Integer { size, is_signed: bits & 8 != 0, order })
        }
        1 => float(cursor, bits, size, order),
        3 => {
            let padding = match bits & 15 {
                0 => Padding::Terminated,
                1 => Padding::Zeros,
                2 => Padding::Spaces,
                other => return Err(Error::unsupported(format!("strings with the unknown padding {other}"))),
            };
            if size == 0 {
                return Err(Error::data("strings of 0 bytes, expected at least 1"));
            }
            Ok(Datatype::FixedString { size, padding })
        }
        8 if depth == 0 => enumeration(cursor, widths, version, bits, size),
        9 => {
            let expected = 8 + usize::from(widths.address);
            match bits & 15 {
                1 if size == expected => Ok(Datatype::VariableString { size }),
                1 => Err(Error::data(format!("variable-length strings of {size} bytes, expected {expected}"))),
                _ => Err(Error::unsupported("variable-length sequences are not read, only strings")),
            }
        }
        _ => {
            let name = CLASSES.get(usize::from(class)).copied().unwrap_or("unknown");
            Err(Error::unsupported(format!("the datatype is of the class {class} ({name}), which is not read")))
        }
    }
}

/// The three formats of IEEE 754.
fn float(cursor: &mut Cursor<'_>, bits: u64, size: usize, order: Order) -> Result<Datatype> {
    let (offset, precision) = (cursor.u16()?, cursor.u16()?);
    let [exponent_at, exponent, mantissa_at, mantissa] =
        [cursor.u8()?, cursor.u8()?, cursor.u8()?, cursor.u8()?].map(u64::from);
    let bias = cursor.u32()?;
    let expected = match size {
        2 => (10, 5, 15),
        4 => (23, 8, 127),
        8 => (52, 11, 1023),
        _ => (0, 0, 0),
    };
    let is_ieee = matches!(size, 2 | 4 | 8)
        && (mantissa, exponent, bias) == expected
        && (offset, usize::from(precision), exponent_at, mantissa_at) == (0, 8 * size, mantissa, 0)
        // A leading one that is not stored, the sign in the highest bit, no VAX order.
        && (bits >> 4 & 3 == 2 && bits >> 8 & 0xff == u64::from(precision) - 1 && bits & 0x40 == 0);
    if is_ieee {
        return Ok(Datatype::Float { size, order });
    }
    Err(Error::unsupported(format!(
        "floats of {size} bytes with {exponent} bits of exponent and {mantissa} of mantissa; IEEE 754's of 2, 4 and 8 bytes are read"
    )))
}

/// An enumeration: h5py's booleans, or the integers it is made of.
fn enumeration(cursor: &mut Cursor<'_>, widths: Widths, version: u8, bits: u64, size: usize) -> Result<Datatype> {
    let base = parse(cursor, widths, 1)?;
    if !matches!(base, Datatype::Integer { .. }) || base.size() != size {
        return Err(Error::data("an enumeration is not made of integers of its own size"));
    }
    if size != 1 || bits & 0xffff != 2 {
        return Ok(base);
    }
    let mut names = Vec::new();
    for _ in 0..2 {
        let rest = cursor.rest();
        let end = rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| Error::data("a name of an enumeration does not end"))?;
        names.push(&rest[..end]);
        // Names of older versions fill multiples of eight bytes.
        cursor.skip(if version < 3 { (end + 1).next_multiple_of(8) } else { end + 1 })?;
    }
    let values = cursor.take(2)?;
    let is_bool = names == [&b"FALSE"[..], b"TRUE"] && values == [0, 1];
    Ok(if is_bool { Datatype::Bool } else { base })
}
