//! Object headers: the messages that describe a group or a dataset, in one or more blocks.

use std::collections::VecDeque;

use estimand_tensor::{Error, Result};

use super::cursor::Cursor;
use super::source::Metadata;
use crate::checksum;

/// The types of messages that are read.
pub(super) mod kind {
    pub const DATASPACE: u16 = 0x01;
    pub const LINK_INFO: u16 = 0x02;
    pub const DATATYPE: u16 = 0x03;
    pub const OLD_FILL: u16 = 0x04;
    pub const FILL: u16 = 0x05;
    pub const LINK: u16 = 0x06;
    pub const EXTERNAL_FILES: u16 = 0x07;
    pub const LAYOUT: u16 = 0x08;
    pub const GROUP_INFO: u16 = 0x0a;
    pub const FILTERS: u16 = 0x0b;
    pub const ATTRIBUTE: u16 = 0x0c;
    pub const CONTINUATION: u16 = 0x10;
    pub const SYMBOL_TABLE: u16 = 0x11;
    pub const ATTRIBUTE_INFO: u16 = 0x15;
    /// The largest type that the format defines.
    pub const LAST: u16 = 0x18;
}

/// One message of a header.
#[derive(Debug)]
pub(super) struct Message {
    pub kind: u16,
    flags: u8,
    pub data: Vec<u8>,
}

impl Message {
    /// An attribute that is not in the header.
    pub fn attribute(data: Vec<u8>) -> Message {
        Message { kind: kind::ATTRIBUTE, flags: 0, data }
    }

    /// Whether the message only refers to one that is stored elsewhere.
    pub fn is_shared(&self) -> bool {
        self.flags & 2 != 0
    }
}

/// Reads the messages of the header at an address.
pub(super) fn read(metadata: &mut Metadata<'_>, address: u64) -> Result<Vec<Message>> {
    let start = metadata.source.read_up_to(address, 34)?;
    match start.starts_with(b"OHDR") {
        true => read_new(metadata, address, &start),
        false => read_old(metadata, address, &start),
    }
}

/// Version 1: messages of multiples of eight bytes.
fn read_old(metadata: &mut Metadata<'_>, address: u64, start: &[u8]) -> Result<Vec<Message>> {
    let widths = metadata.widths();
    let mut cursor = Cursor::new(start, widths);
    cursor.version(&[1], "an object header")?;
    cursor.skip(7)?;
    let size = cursor.u32()?;
    let (mut messages, mut blocks) = (Vec::new(), VecDeque::from([(address.saturating_add(16), u64::from(size))]));
    while let Some((address, n)) = blocks.pop_front() {
        let block = metadata.block(address, n)?;
        let mut cursor = Cursor::new(&block, widths);
        while cursor.remaining() >= 8 {
            let (kind, size, flags) = (cursor.u16()?, cursor.u16()?, cursor.u8()?);
            cursor.skip(3)?;
            let data = cursor.take(size.into())?;
            keep(kind, flags, data, metadata, &mut messages, &mut blocks)?;
        }
    }
    Ok(messages)
}

/// Version 2: packed messages, and a checksum at the end of each block.
fn read_new(metadata: &mut Metadata<'_>, address: u64, start: &[u8]) -> Result<Vec<Message>> {
    let widths = metadata.widths();
    let mut cursor = Cursor::new(start, widths);
    cursor.skip(4)?;
    cursor.version(&[2], "an object header")?;
    let flags = cursor.u8()?;
    let has_times = flags & 0x20 != 0;
    let has_thresholds = flags & 0x10 != 0;
    cursor.skip(if has_times { 16 } else { 0 } + if has_thresholds { 4 } else { 0 })?;
    let size = cursor.number(1 << (flags & 3))?;
    let prefix = start.len() - cursor.remaining();
    let whole = size.saturating_add(prefix as u64 + 4);
    let (mut messages, mut blocks) = (Vec::new(), VecDeque::from([(address, whole)]));
    let mut skipped = prefix;
    while let Some((address, n)) = blocks.pop_front() {
        let block = metadata.block(address, n)?;
        let Some((covered, stored)) = block.split_last_chunk::<4>().filter(|(covered, _)| covered.len() >= skipped)
        else {
            return Err(Error::data(format!("a block of an object header has only {n} bytes")));
        };
        if !checksum::is_right(covered, u32::from_le_bytes(*stored)) {
            return Err(Error::data("the checksum of an object header is wrong").help("the file is damaged"));
        }
        let mut cursor = Cursor::new(covered, widths);
        if skipped == 4 {
            cursor.signature(b"OCHK", "a block of an object header")?;
        } else {
            cursor.skip(skipped)?;
        }
        // All later blocks begin with a signature.
        skipped = 4;
        let order = if flags & 4 != 0 { 2 } else { 0 };
        while cursor.remaining() >= 4 + order {
            let (kind, size, flags) = (cursor.u8()?, cursor.u16()?, cursor.u8()?);
            cursor.skip(order)?;
            let data = cursor.take(size.into())?;
            keep(kind.into(), flags, data, metadata, &mut messages, &mut blocks)?;
        }
    }
    Ok(messages)
}

/// Keeps a message that something reads; a continuation becomes a block to read.
fn keep(
    kind: u16,
    flags: u8,
    data: &[u8],
    metadata: &Metadata<'_>,
    messages: &mut Vec<Message>,
    blocks: &mut VecDeque<(u64, u64)>,
) -> Result<()> {
    use kind::*;
    match kind {
        CONTINUATION => {
            let mut cursor = Cursor::new(data, metadata.widths());
            blocks.push_back((cursor.defined_address("a block of an object header")?, cursor.length()?));
        }
        DATASPACE | LINK_INFO | DATATYPE | OLD_FILL | FILL | LINK | EXTERNAL_FILES | LAYOUT | GROUP_INFO | FILTERS
        | ATTRIBUTE | SYMBOL_TABLE | ATTRIBUTE_INFO => messages.push(Message { kind, flags, data: data.to_vec() }),
        // The writer says that a reader must know this message.
        LAST.. if kind > LAST && flags & 0x80 != 0 => {
            return Err(Error::unsupported(format!("an object header has a message of the unknown type {kind}")));
        }
        _ => {}
    }
    Ok(())
}
