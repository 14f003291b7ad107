//! The superblock: the signature, the widths of numbers, and the address of the root group.

use estimand_tensor::{Error, Result};

use super::cursor::{Cursor, Widths};
use super::source::Source;
use crate::checksum;

/// The first eight bytes of every file.
pub(super) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Finds the superblock, sets the widths and the base of the source, and returns the address of the
/// root group's header.
pub(super) fn read(source: &mut Source) -> Result<u64> {
    let start = find(source)?;
    source.set_base(start);
    let bytes = source.read_up_to(0, 256)?.into_owned();
    let mut cursor = Cursor::new(&bytes, source.widths);
    cursor.skip(SIGNATURE.len())?;
    let version = cursor.version(&[0, 1, 2, 3], "the superblock")?;
    let old = version < 2;
    if old {
        cursor.skip(4)?;
    }
    let widths = Widths { address: width(cursor.u8()?)?, length: width(cursor.u8()?)? };
    source.widths = widths;
    let at = bytes.len() - cursor.remaining();
    let mut cursor = Cursor::new(&bytes[at..], widths);
    cursor.skip(match version {
        0 => 9,
        1 => 13,
        _ => 1,
    })?;
    let base = cursor.defined_address("the superblock")?;
    if base != start {
        let message = format!("the superblock is at {start} and says that it is at {base}");
        return Err(Error::data(message).help("the file is damaged"));
    }
    // Free space in older files, an extension in newer ones: nothing that is read.
    cursor.address()?;
    let end = cursor.defined_address("the file's end")?;
    if end > source.len() {
        let message = format!("the file has {} bytes, and its superblock says {end}", source.len());
        return Err(Error::data(message).help("the file was cut off"));
    }
    if old {
        // The driver's block, and the name of the root.
        cursor.address()?;
        cursor.address()?;
    }
    let root = cursor.defined_address("the root group")?;
    if !old {
        let covered = bytes.len() - cursor.remaining();
        if !checksum::is_right(&bytes[..covered], cursor.u32()?) {
            return Err(Error::data("the checksum of the superblock is wrong").help("the file is damaged"));
        }
    }
    Ok(root)
}

/// The superblock is at 0, or after a user block of 512, 1024, 2048, ... bytes.
fn find(source: &Source) -> Result<u64> {
    let mut at = 0;
    while source.check(at, SIGNATURE.len() as u64).is_ok() {
        if *source.read(at, SIGNATURE.len() as u64)? == SIGNATURE {
            return Ok(at);
        }
        at = if at == 0 { 512 } else { 2 * at };
    }
    Err(Error::data("this is no HDF5 file: it does not begin with the signature of one"))
}

fn width(width: u8) -> Result<u8> {
    match width {
        2 | 4 | 8 => Ok(width),
        _ => Err(Error::data(format!("addresses or lengths of {width} bytes; expected 2, 4 or 8"))),
    }
}
