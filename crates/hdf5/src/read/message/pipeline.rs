//! Filter pipelines: how the chunks of a dataset are packed.

use estimand_tensor::{Error, Result};

use crate::read::cursor::{Cursor, Widths};

/// A filter that is undone when a chunk is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Filter {
    Deflate,
    Shuffle,
}

/// Filters that are known by name only.
const KNOWN: [(u16, &str); 9] = [
    (3, "fletcher32"),
    (4, "szip"),
    (5, "nbit"),
    (6, "scaleoffset"),
    (32000, "lzf"),
    (32001, "blosc"),
    (32004, "lz4"),
    (32008, "bitshuffle"),
    (32015, "zstd"),
];

/// The filters in the order in which the writer applied them.
pub(in crate::read) fn parse(bytes: &[u8], widths: Widths) -> Result<Vec<Filter>> {
    let mut cursor = Cursor::new(bytes, widths);
    let version = cursor.version(&[1, 2], "a filter pipeline")?;
    let n = cursor.u8()?;
    // The mask of a chunk has 32 bits.
    if n > 32 {
        return Err(Error::data(format!("{n} filters, at most 32 are possible")));
    }
    if version == 1 {
        cursor.skip(6)?;
    }
    let mut filters = Vec::with_capacity(n.into());
    for _ in 0..n {
        let id = cursor.u16()?;
        let name_len = if version == 1 || id >= 256 { usize::from(cursor.u16()?) } else { 0 };
        let _flags = cursor.u16()?;
        let n_values = usize::from(cursor.u16()?);
        cursor.skip(if version == 1 { name_len.next_multiple_of(8) } else { name_len })?;
        cursor.skip(4 * n_values)?;
        if version == 1 && n_values % 2 == 1 {
            cursor.skip(4)?;
        }
        filters.push(match id {
            1 => Filter::Deflate,
            2 => Filter::Shuffle,
            _ => {
                let name = KNOWN.iter().find(|known| known.0 == id).map_or("unknown", |known| known.1);
                return Err(Error::unsupported(format!("the filter {id} ({name}) is not read"))
                    .help("write the dataset without compression or with gzip"));
            }
        });
    }
    Ok(filters)
}
