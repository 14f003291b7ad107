//! Takes numbers from a block of metadata. Every step is checked against the end of the block.

use estimand_tensor::{Error, Result};

/// The widths of addresses and of lengths, in bytes: 2, 4 or 8. The superblock states them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths {
    pub address: u8,
    pub length: u8,
}

/// A position in a block. Numbers are little-endian.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    widths: Widths,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], widths: Widths) -> Cursor<'a> {
        Cursor { bytes, at: 0, widths }
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let (taken, _) = rest.split_at_checked(n).ok_or_else(|| {
            let message = format!("a block ends early: {n} bytes are expected, {} are left", rest.len());
            Error::data(message).help("the file is damaged or was cut off")
        })?;
        self.at += n;
        Ok(taken)
    }

    pub fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }

    /// An unsigned number of 1 to 8 bytes.
    pub fn number(&mut self, width: u8) -> Result<u64> {
        Ok(self.take(width.into())?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        Ok(self.number(2)? as u16)
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(self.number(4)? as u32)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.number(8)
    }

    pub fn length(&mut self) -> Result<u64> {
        self.number(self.widths.length)
    }

    /// An address. `None` is the undefined address: all bits are set.
    pub fn address(&mut self) -> Result<Option<u64>> {
        let width = self.widths.address;
        let address = self.number(width)?;
        let undefined = u64::MAX >> (64 - 8 * u32::from(width));
        Ok((address != undefined).then_some(address))
    }

    /// An address that must be defined.
    pub fn defined_address(&mut self, what: &str) -> Result<u64> {
        self.address()?.ok_or_else(|| Error::data(format!("the address of {what} is undefined")))
    }

    /// Refuses a block that does not begin with its signature.
    pub fn signature(&mut self, expected: &[u8; 4], what: &str) -> Result<()> {
        let found = self.take(4)?;
        if found == expected {
            return Ok(());
        }
        let (found, expected) = (found.escape_ascii(), expected.escape_ascii());
        Err(Error::data(format!("{what} begins with `{found}`, expected `{expected}`"))
            .help("the file is damaged or was cut off"))
    }

    /// Refuses a version other than the given ones.
    pub fn version(&mut self, expected: &[u8], what: &str) -> Result<u8> {
        let version = self.u8()?;
        if expected.contains(&version) {
            return Ok(version);
        }
        Err(Error::unsupported(format!("{what} has version {version}; versions {expected:?} are read")))
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// All bytes from here on.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }
}
