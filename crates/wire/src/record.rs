//! TFRecord framing: the format in which `tf.Example`s, event files and warm-up requests are stored
//! one after another.
//!
//! A record is its length (u64, little-endian), the masked checksum of those 8 bytes, the payload,
//! and the masked checksum of the payload.
//!
//! ```
//! use estimand_wire::record::{RecordReader, RecordWriter};
//!
//! let mut writer = RecordWriter::new(Vec::new());
//! writer.write(b"one")?;
//! writer.write(b"")?;
//!
//! let file = writer.into_inner();
//! let mut reader = RecordReader::new(file.as_slice());
//! assert_eq!(reader.read()?, Some(&b"one"[..]));
//! assert_eq!(reader.read()?, Some(&b""[..]));
//! assert_eq!(reader.read()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::io::{self, Read, Write};

use estimand_tensor::Limits;

use crate::crc::masked_crc32c;

const HEADER_LEN: usize = 12;
const FOOTER_LEN: usize = 4;

/// The number of bytes of a record in addition to its payload.
pub const FRAME_LEN: usize = HEADER_LEN + FOOTER_LEN;

/// Reads records one by one. Give it a buffered reader: each record takes three small reads.
#[derive(Debug)]
pub struct RecordReader<R> {
    input: R,
    /// The offset of the next record, for error messages.
    offset: u64,
    payload: Vec<u8>,
    record_bytes: usize,
}

impl<R: Read> RecordReader<R> {
    /// Creates a reader that starts at the first record.
    pub fn new(input: R) -> RecordReader<R> {
        RecordReader { input, offset: 0, payload: Vec::new(), record_bytes: Limits::default().record_bytes }
    }

    /// The largest number of bytes in a payload. By default, [`Limits::record_bytes`].
    pub fn record_bytes(mut self, record_bytes: usize) -> RecordReader<R> {
        self.record_bytes = record_bytes;
        self
    }

    /// Reads the next payload; `None` at the end of the file. After an error, the position is lost.
    pub fn read(&mut self) -> Result<Option<&[u8]>, RecordError> {
        let mut header = [0; HEADER_LEN];
        match read_up_to(&mut self.input, &mut header)? {
            0 => return Ok(None),
            HEADER_LEN => {}
            n => return Err(self.truncated("header", n as u64, HEADER_LEN as u64)),
        }
        let [length @ .., _, _, _, _] = header;
        if stored_crc(&header[8..]) != masked_crc32c(&length) {
            return Err(self.corrupt("the checksum of its length is wrong".to_string()));
        }
        let length = u64::from_le_bytes(length);
        if length > self.record_bytes as u64 {
            let limit = self.record_bytes;
            return Err(self.corrupt(format!("it has {length} bytes; the limit is {limit} (`record_bytes`)")));
        }

        // The buffer grows with the bytes that arrive, not to the claimed length.
        self.payload.clear();
        let arrived = self.input.by_ref().take(length).read_to_end(&mut self.payload)? as u64;
        if arrived < length {
            return Err(self.truncated("payload", arrived, length));
        }
        let mut footer = [0; FOOTER_LEN];
        let n = read_up_to(&mut self.input, &mut footer)?;
        if n < FOOTER_LEN {
            return Err(self.truncated("checksum", n as u64, FOOTER_LEN as u64));
        }
        if stored_crc(&footer) != masked_crc32c(&self.payload) {
            return Err(self.corrupt(format!("the checksum of its {length} bytes is wrong")));
        }
        self.offset += (HEADER_LEN + FOOTER_LEN) as u64 + length;
        Ok(Some(&self.payload))
    }

    /// The offset of the next record in the input.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn truncated(&self, part: &str, arrived: u64, expected: u64) -> RecordError {
        self.corrupt(format!("the file ends after {arrived} of the {expected} bytes of its {part}"))
    }

    fn corrupt(&self, message: String) -> RecordError {
        RecordError::Corrupt { offset: self.offset, message }
    }
}

/// Returns the length of the first record in `bytes`, including its frame, as soon as its header is
/// complete. The record itself may be incomplete.
///
/// A damaged header is an error: then the start of the next record is unknown.
pub fn frame_len(bytes: &[u8]) -> Result<Option<u64>, String> {
    let Some(header) = bytes.first_chunk::<HEADER_LEN>() else { return Ok(None) };
    let [length @ .., _, _, _, _] = header;
    if stored_crc(&header[8..]) != masked_crc32c(length) {
        return Err("the checksum of its length is wrong".to_string());
    }
    let frame = u64::from_le_bytes(*length).checked_add((HEADER_LEN + FOOTER_LEN) as u64);
    frame.map(Some).ok_or_else(|| "its length is too large".to_string())
}

/// Returns the payload of a whole record. `frame` has the length that [`frame_len`] returned.
pub fn payload(frame: &[u8]) -> Result<&[u8], String> {
    let payload = frame.get(HEADER_LEN..).and_then(|rest| rest.split_last_chunk::<FOOTER_LEN>());
    let (payload, footer) = payload.ok_or_else(|| format!("{} bytes are not a record", frame.len()))?;
    if stored_crc(footer) != masked_crc32c(payload) {
        return Err(format!("the checksum of its {} bytes is wrong", payload.len()));
    }
    Ok(payload)
}

/// The error message for a file that ends with these bytes, which are not a whole record.
pub fn truncation(bytes: &[u8]) -> String {
    let (part, arrived, expected) = match bytes.first_chunk::<HEADER_LEN>() {
        None => ("header", bytes.len() as u64, HEADER_LEN as u64),
        Some([length @ .., _, _, _, _]) => {
            let (arrived, length) = ((bytes.len() - HEADER_LEN) as u64, u64::from_le_bytes(*length));
            match arrived.checked_sub(length) {
                Some(footer) => ("checksum", footer, FOOTER_LEN as u64),
                None => ("payload", arrived, length),
            }
        }
    };
    format!("the file ends after {arrived} of the {expected} bytes of its {part}")
}

fn stored_crc(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Fills the buffer unless the input ends first; returns the number of bytes read.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Writes records one by one.
#[derive(Debug)]
pub struct RecordWriter<W> {
    output: W,
}

impl<W: Write> RecordWriter<W> {
    /// Creates a writer that appends to `output`.
    pub fn new(output: W) -> RecordWriter<W> {
        RecordWriter { output }
    }

    /// Appends one record.
    pub fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let length = (payload.len() as u64).to_le_bytes();
        self.output.write_all(&length)?;
        self.output.write_all(&masked_crc32c(&length).to_le_bytes())?;
        self.output.write_all(payload)?;
        self.output.write_all(&masked_crc32c(payload).to_le_bytes())
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// A reference to the output.
    pub fn get_ref(&self) -> &W {
        &self.output
    }

    /// Returns the output without flushing it.
    pub fn into_inner(self) -> W {
        self.output
    }
}

/// The reason why a record could not be read.
#[derive(Debug)]
pub enum RecordError {
    /// The input failed.
    Io(io::Error),
    /// The input is not a sequence of records, or is damaged.
    Corrupt {
        /// The offset of the record.
        offset: u64,
        /// A description of the problem.
        message: String,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Io(error) => error.fmt(f),
            RecordError::Corrupt { offset, message } => write!(f, "record at byte {offset}: {message}"),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::Io(error) => Some(error),
            RecordError::Corrupt { .. } => None,
        }
    }
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> RecordError {
        RecordError::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(payloads: &[&[u8]]) -> Vec<u8> {
        let mut writer = RecordWriter::new(Vec::new());
        for payload in payloads {
            writer.write(payload).unwrap();
        }
        writer.into_inner()
    }

    fn read_all(file: &[u8]) -> Result<Vec<Vec<u8>>, RecordError> {
        let mut reader = RecordReader::new(file);
        let mut payloads = Vec::new();
        while let Some(payload) = reader.read()? {
            payloads.push(payload.to_vec());
        }
        Ok(payloads)
    }

    #[test]
    fn round_trip() {
        let long = vec![7; 100_000];
        let payloads: [&[u8]; 3] = [b"", b"abc", &long];
        assert_eq!(read_all(&framed(&payloads)).unwrap(), payloads);
        assert!(read_all(b"").unwrap().is_empty());
    }

    #[test]
    fn damage_is_an_error() {
        let file = framed(&[b"abc", b"de"]);
        for position in 0..file.len() {
            let mut damaged = file.clone();
            damaged[position] ^= 0x10;
            assert!(read_all(&damaged).is_err(), "byte {position} flipped");
        }
        let first = framed(&[b"abc"]).len();
        for length in (1..file.len()).filter(|&n| n != first) {
            let message = read_all(&file[..length]).unwrap_err().to_string();
            assert!(message.contains("the file ends after"), "cut to {length}: {message}");
        }
    }

    #[test]
    fn a_huge_length_is_not_allocated() {
        let length = u64::MAX.to_le_bytes();
        let mut file = length.to_vec();
        file.extend(masked_crc32c(&length).to_le_bytes());
        file.extend(b"only this");
        let message = read_all(&file).unwrap_err().to_string();
        assert!(message.contains("it has 18446744073709551615 bytes; the limit is 2147483648"), "{message}");
        let mut unlimited = RecordReader::new(file.as_slice()).record_bytes(usize::MAX);
        let message = unlimited.read().unwrap_err().to_string();
        assert!(message.contains("ends after 9 of the 18446744073709551615 bytes"), "{message}");
    }
}
