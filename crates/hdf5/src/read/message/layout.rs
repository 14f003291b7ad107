//! Data layouts: where the elements of a dataset are.

use estimand_tensor::{Error, Result};

use crate::read::cursor::{Cursor, Widths};

/// Where the elements of a dataset are.
#[derive(Debug)]
pub(in crate::read) enum Layout {
    /// In the header.
    Compact(Vec<u8>),
    /// In one piece. Nothing is stored if there is no address.
    Contiguous { address: Option<u64>, size: u64 },
    /// In chunks of equal sizes, found through a B-tree. Nothing is stored without an address.
    Chunked { tree: Option<u64>, dims: Vec<usize>, element_size: usize },
}

/// The chunk indexes of version 4, in the order of their numbers from 1.
const INDEXES: [&str; 5] = ["single chunk", "implicit", "fixed array", "extensible array", "B-tree of version 2"];

impl Layout {
    pub fn parse(bytes: &[u8], widths: Widths) -> Result<Layout> {
        let mut cursor = Cursor::new(bytes, widths);
        let version = cursor.version(&[3, 4, 5], "a data layout")?;
        match cursor.u8()? {
            0 => {
                let n = cursor.u16()?;
                Ok(Layout::Compact(cursor.take(n.into())?.to_vec()))
            }
            1 => Ok(Layout::Contiguous { address: cursor.address()?, size: cursor.length()? }),
            2 if version == 3 => {
                let n = usize::from(cursor.u8()?);
                let tree = cursor.address()?;
                let mut dims = (0..n).map(|_| Ok(cursor.u32()? as usize)).collect::<Result<Vec<_>>>()?;
                let element_size = dims.pop().ok_or_else(|| Error::data("chunks without sizes"))?;
                Ok(Layout::Chunked { tree, dims, element_size })
            }
            2 => {
                let (_flags, n, width) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
                cursor.skip(usize::from(n) * usize::from(width))?;
                let index = cursor.u8()?;
                let name = usize::from(index).checked_sub(1).and_then(|i| INDEXES.get(i)).unwrap_or(&"unknown");
                Err(Error::unsupported(format!("the chunks have an index of type {index} ({name}), which is not read"))
                    .help("write the file without libver=\"latest\", or without chunks"))
            }
            3 => Err(Error::unsupported("virtual datasets are not read")),
            class => Err(Error::unsupported(format!("a data layout of the unknown class {class}"))),
        }
    }
}
