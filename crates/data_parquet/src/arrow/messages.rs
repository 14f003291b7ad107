//! The messages of Arrow's IPC formats. A stream consists of them; an IPC file has the same stream
//! between its magic number and its footer.
//!
//! A message is `0xffffffff`, the length of its header, the header, and a body whose length is in
//! the header. Reading them one after another serves both formats. No more is allocated than bytes
//! are present.

use std::io::{self, Read};

use arrow_buffer::Buffer;
use arrow_ipc::{Block, CompressionType, Message, MessageHeader, RecordBatch, root_as_message};
use estimand_tensor::{Limits, Result};

use super::bytes::Bytes;
use crate::columns::Origin;
use crate::guard::{damaged, guarded};

const CONTINUATION: [u8; 4] = [0xff; 4];
const MAGIC: &[u8; 6] = b"ARROW1";

pub(super) struct Messages {
    bytes: Bytes,
    /// The first bytes of the first message, which were read to detect the format.
    peeked: Option<[u8; 4]>,
    is_file: bool,
    origin: Origin,
    limits: Limits,
}

/// A whole message.
pub(super) struct Encapsulated {
    pub(super) block: Block,
    pub(super) bytes: Buffer,
}

/// A message whose body must still be read or skipped.
pub(super) struct Header {
    bytes: Vec<u8>,
    /// The offset of the header itself.
    start: usize,
    body: u64,
    pub(super) header_type: MessageHeader,
    /// The number of rows of a record batch.
    pub(super) n_rows: u64,
}

impl Messages {
    /// Detects the format and starts reading.
    pub(super) fn new(mut bytes: Bytes, origin: Origin, limits: Limits) -> Result<Messages> {
        let mut first = [0; 4];
        let n = read_up_to(&mut bytes, &mut first).map_err(|e| damaged(&origin, e))?;
        if n < 4 {
            return Err(damaged(&origin, format!("it has only {n} bytes, which is not an Arrow stream")));
        }
        let is_file = first == MAGIC[..4];
        if is_file {
            let mut rest = [0; 4];
            let n = read_up_to(&mut bytes, &mut rest).map_err(|e| damaged(&origin, e))?;
            if n < 4 || rest[..2] != MAGIC[4..] {
                return Err(damaged(&origin, "it begins like an Arrow file, but it is not one"));
            }
            // Some writers align the first message to 64 bytes.
            first = [0; 4];
            for _ in 0..16 {
                if first == [0; 4] && read_up_to(&mut bytes, &mut first).map_err(|e| damaged(&origin, e))? < 4 {
                    return Err(damaged(&origin, "it ends after its first bytes"));
                }
            }
        }
        Ok(Messages { bytes, peeked: Some(first), is_file, origin, limits })
    }

    /// Reads the header of the next message; `None` at the end.
    pub(super) fn header(&mut self) -> Result<Option<Header>> {
        let mut prefix = [0; 4];
        let n = match self.peeked.take() {
            Some(first) => {
                prefix = first;
                4
            }
            None => read_up_to(&mut self.bytes, &mut prefix).map_err(|e| damaged(&self.origin, e))?,
        };
        // A stream may end without a marker. A file has an end marker, followed by its footer.
        match n {
            0 if !self.is_file => return Ok(None),
            4 => {}
            _ => return Err(damaged(&self.origin, "it ends where a message should begin")),
        }
        let mut bytes = prefix.to_vec();
        if prefix == CONTINUATION {
            self.append(4, &mut bytes)?;
            prefix.copy_from_slice(&bytes[4..]);
        }
        // Streams of Arrow before 0.15 have only the length.
        let start = bytes.len();
        let length = match i32::from_le_bytes(prefix) {
            0 => return Ok(None),
            length => u64::try_from(length)
                .map_err(|_| damaged(&self.origin, format!("a header has the length {length}; expected 0 or more")))?,
        };
        self.append(length, &mut bytes)?;
        let (header_type, body, n_rows) = guarded(&self.origin, || {
            let message = root_as_message(&bytes[start..]).map_err(|e| format!("a message is damaged: {e}"))?;
            let records = message.header_as_record_batch();
            let n_rows = records.map_or(0, |records| u64::try_from(records.length()).unwrap_or(0));
            let body =
                u64::try_from(message.bodyLength()).map_err(|_| "a message has a negative length".to_string())?;
            Ok::<_, String>((message.header_type(), body, n_rows))
        })?;
        Ok(Some(Header { bytes, start, body, header_type, n_rows }))
    }

    /// Reads the body of a message.
    pub(super) fn body(&mut self, header: Header) -> Result<Encapsulated> {
        let Header { mut bytes, start, body, .. } = header;
        let length = bytes.len();
        self.append(body, &mut bytes)?;
        guarded(&self.origin, || {
            let message = root_as_message(&bytes[start..length]).map_err(|e| e.to_string())?;
            check_sizes(&message, &bytes[length..], &self.limits)
        })?;
        let lengths = i32::try_from(length).ok().zip(i64::try_from(body).ok());
        let (length, body) =
            lengths.ok_or_else(|| damaged(&self.origin, "the header of a message has more than 2 GiB"))?;
        Ok(Encapsulated { block: Block::new(0, length, body), bytes: Buffer::from_vec(bytes) })
    }

    /// Skips the body of a message.
    pub(super) fn skip(&mut self, header: &Header) -> Result<()> {
        self.bytes.skip(header.body).map_err(|e| damaged(&self.origin, e))
    }

    fn append(&mut self, n: u64, to: &mut Vec<u8>) -> Result<()> {
        self.bytes.append(n, to).map_err(|e| damaged(&self.origin, e))
    }
}

impl Header {
    /// Calls a function with the decoded header.
    pub(super) fn message<T>(&self, read: impl FnOnce(Message<'_>) -> Result<T, String>) -> Result<T, String> {
        read(root_as_message(&self.bytes[self.start..]).map_err(|e| e.to_string())?)
    }
}

/// Checks the sizes of compressed buffers. A buffer begins with its decompressed size, and the
/// decoder allocates that much memory.
fn check_sizes(message: &Message<'_>, body: &[u8], limits: &Limits) -> Result<(), String> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(records): Option<RecordBatch<'_>> = message.header_as_record_batch().or(dictionary) else { return Ok(()) };
    let Some(compression) = records.compression() else { return Ok(()) };
    // One byte of LZ4 can extend a copy by 255 bytes; four bytes of zstd can make a block of 128
    // KiB.
    let ratio = if compression.codec() == CompressionType::LZ4_FRAME { 256 } else { 1 << 15 };
    let mut unpacked = 0u64;
    for buffer in records.buffers().iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let packed = range.and_then(|(start, n)| body.get(start..start.checked_add(n)?));
        let packed = packed.ok_or("a buffer lies after the end of its message")?;
        let Some(size) = packed.first_chunk().copied().map(i64::from_le_bytes) else { continue };
        if size > packed.len() as i64 * ratio {
            return Err(format!("a buffer of {} bytes cannot unpack to {size} bytes", packed.len()));
        }
        // The sum over all buffers: buffers that share bytes count each time they are decompressed.
        unpacked = unpacked.saturating_add(u64::try_from(size).unwrap_or(0));
        limits.check_ratio(unpacked, body.len() as u64).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn read_up_to(bytes: &mut Bytes, out: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < out.len() {
        match bytes.read(&mut out[n..]) {
            Ok(0) => break,
            Ok(read) => n += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}
