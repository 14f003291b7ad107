//! Attributes: small values with a name, in the header of their object.

use estimand_tensor::{Error, Result};

use super::dataspace::Dataspace;
use super::datatype::Datatype;
use super::link;
use crate::read::cursor::{Cursor, Widths};

/// The parts of an attribute message, not yet interpreted.
pub(in crate::read) struct Attribute<'a> {
    name: &'a [u8],
    datatype: &'a [u8],
    dataspace: &'a [u8],
    /// The elements.
    pub data: &'a [u8],
    is_shared: bool,
    widths: Widths,
}

impl<'a> Attribute<'a> {
    pub fn parse(bytes: &'a [u8], widths: Widths) -> Result<Attribute<'a>> {
        let mut cursor = Cursor::new(bytes, widths);
        let version = cursor.version(&[1, 2, 3], "an attribute")?;
        let flags = cursor.u8()?;
        let sizes = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
        if version == 3 {
            cursor.skip(1)?;
        }
        // The parts of version 1 fill multiples of eight bytes.
        let mut part = |n: usize| {
            let whole = cursor.take(if version == 1 { n.next_multiple_of(8) } else { n })?;
            Ok(&whole[..n])
        };
        let [name, datatype, dataspace] = [part(sizes[0])?, part(sizes[1])?, part(sizes[2])?];
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let is_shared = version > 1 && flags & 3 != 0;
        Ok(Attribute { name, datatype, dataspace, data: cursor.rest(), is_shared, widths })
    }

    pub fn name(&self) -> Result<String> {
        link::name(self.name)
    }

    pub fn datatype(&self) -> Result<Datatype> {
        if self.is_shared {
            return Err(Error::unsupported("committed datatypes are not read"));
        }
        Datatype::parse(self.datatype, self.widths)
    }

    pub fn dataspace(&self) -> Result<Dataspace> {
        Dataspace::parse(self.dataspace, self.widths)
    }
}

/// Where an attribute info message says that the attributes are: a fractal heap and the B-tree of
/// its objects.
pub(in crate::read) fn dense(bytes: &[u8], widths: Widths) -> Result<Option<[u64; 2]>> {
    let mut cursor = Cursor::new(bytes, widths);
    cursor.version(&[0], "the information about attributes")?;
    if cursor.u8()? & 1 != 0 {
        cursor.skip(2)?;
    }
    let (heap, tree) = (cursor.address()?, cursor.address()?);
    Ok(heap.zip(tree).map(|(heap, tree)| [heap, tree]))
}
