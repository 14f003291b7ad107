//! Serves the bytes of a Parquet file to the decoder, which trusts the lengths in them. Impossible
//! lengths are refused here, before memory is allocated.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::parquet::basic::Compression;
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;
use estimand_tensor::{Error, Limits, Result};

pub(super) struct Chunks {
    file: File,
    length: u64,
    /// The byte ranges of the columns of the current row group, each with its largest possible
    /// compression ratio.
    columns: Vec<(Range<u64>, u64)>,
    limits: Limits,
    /// The sum of the decompressed sizes that the pages of the row group claim so far.
    unpacked: Arc<AtomicU64>,
}

impl Chunks {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Chunks> {
        let file = File::open(path).map_err(|e| Error::io(path, "open", &e))?;
        let length = file.metadata().map_err(|e| Error::io(path, "read", &e))?.len();
        Ok(Chunks { file, length, columns: Vec::new(), limits: *limits, unpacked: Arc::default() })
    }

    /// Prepares to read one row group.
    pub(super) fn of_group(mut self, group: &RowGroupMetaData) -> Chunks {
        let columns = group.columns().iter().map(|column| {
            let (start, length) = column.byte_range();
            (start..start.saturating_add(length), largest_ratio(column.compression()))
        });
        self.columns = columns.collect();
        self
    }

    fn at(&self, start: u64) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

/// The largest number of bytes that one byte can decompress to. A page that claims more is damaged.
fn largest_ratio(compression: Compression) -> u64 {
    match compression {
        Compression::UNCOMPRESSED => 1,
        // A copy of 64 bytes takes three bytes.
        Compression::SNAPPY => 22,
        // One byte extends a copy by 255 bytes.
        Compression::LZ4 | Compression::LZ4_RAW => 256,
        // A copy of 258 bytes takes two bits.
        Compression::GZIP(_) => 1_032,
        // A block of 128 KiB takes four bytes.
        Compression::ZSTD(_) => 1 << 15,
        // A few bytes can make 16 MiB.
        _ => 1 << 22,
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Chunks {
    type T = PageHeader;

    fn get_read(&self, start: u64) -> ParquetResult<PageHeader> {
        let column = self.columns.iter().find(|(range, _)| range.contains(&start));
        Ok(PageHeader {
            reader: BufReader::new(self.at(start)?),
            ratio: column.map(|(_, ratio)| *ratio),
            limits: self.limits,
            length: self.length,
            unpacked: self.unpacked.clone(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            let text =
                format!("there should be {length} bytes at byte {start}, but the file has {} bytes", self.length);
            return Err(ParquetError::EOF(text));
        }
        let mut bytes = Vec::with_capacity(length);
        if self.at(start)?.take(length as u64).read_to_end(&mut bytes)? < length {
            return Err(ParquetError::EOF("the file became shorter while it was read".to_string()));
        }
        Ok(bytes.into())
    }
}

/// A reader that starts at an offset of the file. Inside a column it starts with the header of a
/// page.
pub(super) struct PageHeader {
    reader: BufReader<File>,
    /// The ratio of the column, until the header has been checked.
    ratio: Option<u64>,
    limits: Limits,
    /// The length of the whole file.
    length: u64,
    unpacked: Arc<AtomicU64>,
}

impl Read for PageHeader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(ratio) = self.ratio.take() {
            let header = self.reader.fill_buf()?;
            check_page(header, ratio)?;
            // The sum over all pages of the row group: many small pages, or columns that share
            // bytes, are a decompression bomb too.
            let page = page_sizes(header).map_or(0, |(unpacked, _)| unpacked);
            let unpacked = self.unpacked.fetch_add(page, Ordering::Relaxed).saturating_add(page);
            self.limits.check_ratio(unpacked, self.length).map_err(io::Error::other)?;
        }
        self.reader.read(out)
    }
}

/// Slack for values that the sizes in the header do not count, and for empty pages.
const SLACK: u64 = 1 << 16;

fn check_page(header: &[u8], ratio: u64) -> io::Result<()> {
    // Anything but three sizes is left for the decoder to refuse.
    if let Some((unpacked, packed)) = page_sizes(header)
        && unpacked > packed.saturating_mul(ratio).saturating_add(SLACK)
    {
        let text =
            format!("a page of {packed} bytes cannot unpack to {unpacked} bytes: the header of the page is damaged");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(())
}

/// The decompressed and the compressed size of a page. Its header is a Thrift struct in the compact
/// protocol that begins with three 32-bit numbers: the type of the page and these two sizes.
fn page_sizes(mut header: &[u8]) -> Option<(u64, u64)> {
    let mut number = || {
        // A field header: the next field, with a 32-bit number.
        header.split_off_first().filter(|&&byte| byte == 0x15)?;
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = *header.split_off_first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // Zigzag encoding: an odd number is negative, and the decoder refuses it.
                return Some(value >> 1);
            }
        }
        None
    };
    let _type = number()?;
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_page() {
        // Type 0; 300 = 600 >> 1 = 0b100_1011000; 5 = 10 >> 1.
        let header = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 10, 0x2c];
        assert_eq!(page_sizes(&header), Some((300, 5)));
        assert_eq!(page_sizes(&header[..6]), None);
        assert_eq!(page_sizes(&[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), None);
        assert!(check_page(&header, 22).is_ok(), "small pages are not worth a word");
        // 5 bytes that claim to decompress to 2^31 - 1.
        let hostile = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 10];
        assert_eq!(page_sizes(&hostile), Some(((1 << 31) - 1, 5)));
        let error = check_page(&hostile, 22).unwrap_err().to_string();
        assert!(error.contains("5 bytes cannot unpack to 2147483647"), "{error}");
    }
}
