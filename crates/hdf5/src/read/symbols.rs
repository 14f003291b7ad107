//! Groups of older files: a B-tree of symbol nodes, with the names in a local heap.

use estimand_tensor::{Error, Limits, Result};

use super::btree::{self, Indexed};
use super::cursor::Cursor;
use super::message::link::{Link, Target};
use super::source::Metadata;

/// Reads the links of a group from its symbol table message.
pub(super) fn read(metadata: &mut Metadata<'_>, message: &[u8], limits: &Limits) -> Result<Vec<Link>> {
    let widths = metadata.widths();
    let mut cursor = Cursor::new(message, widths);
    let tree = cursor.defined_address("a group's B-tree")?;
    let heap = cursor.defined_address("a group's heap")?;
    let names = local_heap(metadata, heap)?;
    let mut links = Vec::new();
    // Names are stored once. So links whose names share bytes are refused: a small file could
    // otherwise have a long name many times.
    let mut names_left = names.len();
    for (_, address) in btree::read(metadata, tree, Indexed::Links, widths.length.into(), limits)? {
        let header = metadata.block(address, 8)?;
        let mut cursor = Cursor::new(&header, widths);
        cursor.signature(b"SNOD", "a symbol node")?;
        cursor.version(&[1], "a symbol node")?;
        cursor.skip(1)?;
        let n = cursor.u16()?;
        limits.check_entries(links.len() + usize::from(n), "links in a group")?;
        let entry_len = 2 * u64::from(widths.address) + 24;
        let body = metadata.block(address.saturating_add(8), u64::from(n) * entry_len)?;
        let mut cursor = Cursor::new(&body, widths);
        for _ in 0..n {
            let name = cursor.number(widths.address)?;
            let object = cursor.address()?;
            let is_soft = cursor.u32()? == 2;
            cursor.skip(20)?;
            let name = name_at(&names, name)?;
            names_left = names_left.checked_sub(name.len() + 1).ok_or_else(|| Error::data("names of links overlap"))?;
            let target = match object {
                _ if is_soft => Target::Unread("it is a soft link"),
                Some(address) => Target::Object(address),
                None => return Err(Error::data(format!("the link `{name}` has no address"))),
            };
            links.push(Link { name, target, order: None });
        }
    }
    Ok(links)
}

/// The bytes of a local heap: names that end with a zero.
fn local_heap(metadata: &mut Metadata<'_>, address: u64) -> Result<Vec<u8>> {
    let widths = metadata.widths();
    let header = metadata.block(address, 8 + 2 * u64::from(widths.length) + u64::from(widths.address))?;
    let mut cursor = Cursor::new(&header, widths);
    cursor.signature(b"HEAP", "a local heap")?;
    cursor.version(&[0], "a local heap")?;
    cursor.skip(3)?;
    let n = cursor.length()?;
    cursor.length()?;
    let data = cursor.defined_address("the names of a group")?;
    Ok(metadata.block(data, n)?.into_owned())
}

fn name_at(heap: &[u8], offset: u64) -> Result<String> {
    let name = usize::try_from(offset).ok().and_then(|offset| heap.get(offset..)).and_then(|rest| {
        let end = rest.iter().position(|&byte| byte == 0)?;
        Some(&rest[..end])
    });
    let name = name.ok_or_else(|| Error::data("the name of a link is outside the names of its group"))?;
    super::message::link::name(name)
}
