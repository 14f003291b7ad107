//! Links: the names of a group's children. Newer files keep them in messages.

use estimand_tensor::{Error, Result};

use crate::read::cursor::{Cursor, Widths};

/// A child of a group.
#[derive(Debug)]
pub(in crate::read) struct Link {
    pub name: String,
    pub target: Target,
    /// The place in the order of creation, if it is stored.
    pub order: Option<u64>,
}

/// The object that a link names.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) enum Target {
    /// The address of its header.
    Object(u64),
    /// Something that is not read, and what it is.
    Unread(&'static str),
}

/// Reads a link message.
pub(in crate::read) fn parse(bytes: &[u8], widths: Widths) -> Result<Link> {
    let mut cursor = Cursor::new(bytes, widths);
    cursor.version(&[1], "a link")?;
    let flags = cursor.u8()?;
    let class = if flags & 8 != 0 { cursor.u8()? } else { 0 };
    let order = if flags & 4 != 0 { Some(cursor.u64()?) } else { None };
    if flags & 16 != 0 {
        cursor.skip(1)?;
    }
    let n = cursor.number(1 << (flags & 3))?;
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    let name = name(cursor.take(n)?)?;
    let target = match class {
        0 => Target::Object(cursor.defined_address("a link")?),
        1 => Target::Unread("it is a soft link"),
        64 => Target::Unread("it is a link to another file"),
        _ => Target::Unread("it is a link of an unknown kind"),
    };
    Ok(Link { name, target, order })
}

/// Where a link info message says that the links are: a fractal heap and the B-tree of its objects.
pub(in crate::read) fn dense(bytes: &[u8], widths: Widths) -> Result<Option<[u64; 2]>> {
    let mut cursor = Cursor::new(bytes, widths);
    cursor.version(&[0], "the information about links")?;
    if cursor.u8()? & 1 != 0 {
        cursor.skip(8)?;
    }
    let (heap, tree) = (cursor.address()?, cursor.address()?);
    Ok(heap.zip(tree).map(|(heap, tree)| [heap, tree]))
}

/// The name of a link or an attribute.
pub(in crate::read) fn name(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error::unsupported(format!("the name `{}` is not UTF-8", bytes.escape_ascii())))
}
