//! The part of the zip format that NPZ and Keras need: stored or deflated members, listed in the
//! directory at the end; and archives of stored members. Archives of 4 GiB and more (Zip64) are
//! read.

use std::io::Read;

use estimand_tensor::{Error, Limits, Result};

const END: &[u8] = b"PK\x05\x06";
const END_SIZE: usize = 22;
const ENTRY: &[u8] = b"PK\x01\x02";
const ENTRY_SIZE: usize = 46;
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_SIZE: usize = 30;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The record of the end with eight-byte fields (Zip64), and what points to it.
const END_64: &[u8] = b"PK\x06\x06";
const END_64_SIZE: usize = 56;
const LOCATOR: &[u8] = b"PK\x06\x07";
const LOCATOR_SIZE: usize = 20;

/// The value of a four-byte field whose number needs more bytes and is stored elsewhere.
const ELSEWHERE: u64 = u32::MAX as u64;
/// The extra field of an entry that has such numbers in eight bytes each.
const LARGE: u16 = 1;

/// A file in an archive.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// The name, with its folders.
    pub name: &'a str,
    method: u16,
    crc: u32,
    packed: &'a [u8],
    size: usize,
    /// The bytes of the member in the archive, with its local header: their start and end.
    start: usize,
    end: usize,
}

/// Lists the members of an archive, in the order of its directory. No two members share bytes, and
/// together they decompress to no more than the limits allow.
pub fn members<'a>(archive: &'a [u8], limits: &Limits) -> Result<Vec<Member<'a>>> {
    let (n_members, mut directory) = directory(archive)?;
    limits.check_entries(n_members, "members of the archive")?;
    // An entry has 46 bytes or more, so the count may not exceed what the bytes can hold.
    let mut members = Vec::new();
    for number in 1..=n_members {
        let (member, rest) =
            entry(archive, directory).map_err(|e| e.context(format!("in member {number} of {n_members}")))?;
        members.push(member);
        directory = rest;
    }
    check_apart(&members)?;
    let unpacked = members.iter().fold(0u64, |sum, member| sum.saturating_add(member.size as u64));
    limits.check_unpacked(unpacked, &format!("{n_members} members"))?;
    limits.check_ratio(unpacked, archive.len() as u64)?;
    Ok(members)
}

/// Refuses members that share bytes: a small archive could decompress them again and again.
fn check_apart(members: &[Member<'_>]) -> Result<()> {
    let mut places: Vec<_> = members.iter().map(|member| (member.start, member.end, member.name)).collect();
    places.sort_unstable();
    match places.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        None => Ok(()),
        Some(pair) => Err(Error::data(format!("the members `{}` and `{}` overlap in the file", pair[0].2, pair[1].2))
            .help("do not trust this file: it is damaged, or made to fill the memory")),
    }
}

/// The number of members, and the bytes from the directory to the end of the file.
fn directory(archive: &[u8]) -> Result<(usize, &[u8])> {
    // A comment of up to 64 KiB may follow; the last signature counts.
    let from = archive.len().saturating_sub(END_SIZE + usize::from(u16::MAX));
    let end = archive[from..].windows(END_SIZE).rposition(|end| end.starts_with(END)).ok_or_else(|| {
        Error::data(format!("the file has {} bytes but no end of a zip archive", archive.len()))
            .help("the file was cut short, or is no archive, as .npz and .keras files are")
    })?;
    let place = from + end;
    let end = &archive[place..];
    let (mut n_members, mut offset) = (u64::from(u16_at(end, 10)), u32_at(end, 16));
    if offset == ELSEWHERE || n_members == u64::from(u16::MAX) {
        // Only a locator says that the numbers are elsewhere: they may be so large by chance.
        let locator = place.checked_sub(LOCATOR_SIZE).map(|at| &archive[at..place]);
        if let Some(locator) = locator.filter(|locator| locator.starts_with(LOCATOR)) {
            let end = usize::try_from(u64_at(locator, 8)).ok().and_then(|at| archive.get(at..));
            let end = end.filter(|end| end.len() >= END_64_SIZE && end.starts_with(END_64));
            let end =
                end.ok_or_else(|| Error::data("the end of the large archive (Zip64) is not where the file says"))?;
            (n_members, offset) = (u64_at(end, 32), u64_at(end, 48));
        }
    }
    let directory = usize::try_from(offset).ok().and_then(|offset| archive.get(offset..));
    let directory = directory.ok_or_else(|| Error::data("the archive's directory lies outside the file"))?;
    Ok((usize::try_from(n_members).unwrap_or(usize::MAX), directory))
}

/// Takes the numbers of an entry that need eight bytes from its extra fields: those that are
/// `ELSEWHERE`, in this order.
fn take_large(extra: &[u8], numbers: [&mut u64; 3]) -> Result<()> {
    let mut missing = numbers.into_iter().filter(|number| **number == ELSEWHERE).peekable();
    if missing.peek().is_none() {
        return Ok(());
    }
    let mut rest = extra;
    while let Some((head, after)) = rest.split_first_chunk::<4>() {
        let Some((field, others)) = after.split_at_checked(u16_at(head, 2).into()) else { break };
        if u16_at(head, 0) == LARGE {
            let mut values = field.chunks_exact(8).map(|bytes| u64_at(bytes, 0));
            for number in missing {
                *number =
                    values.next().ok_or_else(|| Error::data("the large numbers of the entry (Zip64) are cut off"))?;
            }
            return Ok(());
        }
        rest = others;
    }
    Err(Error::data("the entry has no large numbers (Zip64), which it should have"))
}

fn entry<'a>(archive: &'a [u8], directory: &'a [u8]) -> Result<(Member<'a>, &'a [u8])> {
    let outside = || Error::data("the entry lies outside the file");
    let (head, rest) = directory.split_at_checked(ENTRY_SIZE).ok_or_else(outside)?;
    if !head.starts_with(ENTRY) {
        return Err(Error::data("the archive's directory has no entry here"));
    }
    let (name, rest) = rest.split_at_checked(u16_at(head, 28).into()).ok_or_else(outside)?;
    let name = std::str::from_utf8(name).map_err(|_| Error::data("the name of the entry is not UTF-8"))?;
    let (extra, rest) = rest.split_at_checked(u16_at(head, 30).into()).ok_or_else(outside)?;
    let rest = rest.get(usize::from(u16_at(head, 32))..).ok_or_else(outside)?;
    let (mut packed_size, mut size, mut offset) = (u32_at(head, 20), u32_at(head, 24), u32_at(head, 42));
    take_large(extra, [&mut size, &mut packed_size, &mut offset])?;
    let number = |n: u64| usize::try_from(n).map_err(|_| outside());
    let (packed_size, size, offset) = (number(packed_size)?, number(size)?, number(offset)?);
    if u16_at(head, 8) & 1 != 0 {
        return Err(Error::data(format!("`{name}` is encrypted")));
    }
    let local = archive.get(offset..).filter(|local| local.len() >= LOCAL_SIZE).ok_or_else(outside)?;
    if !local.starts_with(LOCAL) {
        return Err(Error::data(format!("`{name}` is not where the archive's directory says")));
    }
    let start = LOCAL_SIZE + usize::from(u16_at(local, 26)) + usize::from(u16_at(local, 28));
    let packed = local.get(start..).and_then(|data| data.get(..packed_size)).ok_or_else(outside)?;
    let crc = u32_at(head, 16) as u32;
    let (start, end) = (offset, offset + start + packed_size);
    Ok((Member { name, method: u16_at(head, 10), crc, packed, size, start, end }, rest))
}

fn too_large() -> Error {
    Error::data("the archive is to have 4 GiB or more, or 65,536 members or more, which are read and not written")
}

impl Member<'_> {
    /// The number of bytes that it unpacks to.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Decompresses the member and verifies its checksum.
    pub fn unpack(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let unpacked = match self.method {
            STORED => (&mut &*self.packed).read_to_end(&mut bytes),
            // Reads one byte more than the claimed size, to detect a longer member.
            DEFLATED => flate2::read::DeflateDecoder::new(self.packed)
                .take((self.size as u64).saturating_add(1))
                .read_to_end(&mut bytes),
            other => {
                return Err(Error::data(format!(
                    "the member is compressed by method {other}; expected 0 (stored) or 8 (deflated)"
                )));
            }
        };
        unpacked.map_err(|e| Error::data(format!("the compressed data are damaged: {e}")))?;
        if bytes.len() != self.size {
            return Err(Error::data(format!(
                "the member unpacks to {} bytes; the archive says {}",
                bytes.len(),
                self.size
            )));
        }
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        if crc.sum() != self.crc {
            return Err(Error::data(format!(
                "the checksum of the member is {:08x}; the archive says {:08x}",
                crc.sum(),
                self.crc
            )));
        }
        Ok(bytes)
    }
}

/// Writes an archive of members that are stored as they are. The bytes depend on names and contents
/// alone: every member has the first time that the format knows.
pub fn write(members: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let small = |n: usize| u32::try_from(n).ok().filter(|&n| u64::from(n) != ELSEWHERE).ok_or_else(too_large);
        let (size, offset) = (small(bytes.len())?.to_le_bytes(), small(archive.len())?.to_le_bytes());
        let n_name = u16::try_from(name.len()).map_err(|_| Error::data(format!("the name `{name}` is too long")))?;
        // Version 2.0, UTF-8 names, stored, 1980-01-01.
        let mut head = vec![20, 0, 0, 8, 0, 0, 0, 0, 33, 0];
        head.extend(crc.sum().to_le_bytes());
        head.extend(size);
        head.extend(size);
        head.extend(n_name.to_le_bytes());
        head.extend([0, 0]);
        archive.extend(LOCAL);
        archive.extend(&head);
        archive.extend(name.as_bytes());
        archive.extend(*bytes);
        directory.extend(ENTRY);
        directory.extend([20, 0]);
        directory.extend(&head);
        // No comment, first disk, no attributes.
        directory.extend([0; 10]);
        directory.extend(offset);
        directory.extend(name.as_bytes());
    }
    let n = u16::try_from(members.len()).map_err(|_| too_large())?.to_le_bytes();
    let start = u32::try_from(archive.len()).map_err(|_| too_large())?;
    let size = u32::try_from(directory.len()).map_err(|_| too_large())?;
    archive.extend(directory);
    archive.extend(END);
    archive.extend([0; 4]);
    archive.extend([n, n].concat());
    archive.extend([size.to_le_bytes(), start.to_le_bytes()].concat());
    archive.extend([0; 2]);
    Ok(archive)
}

/// Reads a number of two bytes. The caller has checked the bounds.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16_at(bytes, at)) | u64::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u32_at(bytes, at) | u32_at(bytes, at + 4) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() -> Result<()> {
        let members = [("config.json", &b"{}"[..]), ("a/b", &[0u8; 1000]), ("empty", &[])];
        let archive = write(&members)?;
        let found = super::members(&archive, &Limits::default())?;
        assert_eq!(found.len(), 3);
        for (member, (name, bytes)) in found.iter().zip(members) {
            assert_eq!((member.name, &member.unpack()?[..]), (name, bytes));
        }
        assert_eq!(write(&members)?, archive);
        Ok(())
    }
}
