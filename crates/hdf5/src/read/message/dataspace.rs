//! Dataspaces: the sizes of a dataset or an attribute.

use estimand_tensor::{Error, MAX_RANK, Result, element_count};

use crate::read::cursor::{Cursor, Widths};

/// The sizes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) struct Dataspace {
    /// The sizes of the axes: none for a scalar, `[0]` for a null dataspace.
    pub dims: Vec<usize>,
    /// Whether there is no value at all (`h5py.Empty`).
    pub is_null: bool,
}

impl Dataspace {
    pub fn parse(bytes: &[u8], widths: Widths) -> Result<Dataspace> {
        let mut cursor = Cursor::new(bytes, widths);
        let version = cursor.version(&[1, 2], "a dataspace")?;
        let (rank, _flags) = (usize::from(cursor.u8()?), cursor.u8()?);
        let class = cursor.u8()?;
        if version == 1 {
            cursor.skip(4)?;
        } else if class == 2 {
            return Ok(Dataspace { dims: vec![0], is_null: true });
        } else if class > 2 {
            return Err(Error::unsupported(format!("a dataspace of the unknown class {class}")));
        }
        if rank > MAX_RANK {
            return Err(Error::unsupported(format!("an array of {rank} axes; at most {MAX_RANK} are supported")));
        }
        let too_large = |n: u64| Error::data(format!("an axis of {n} elements does not fit into memory"));
        let dims = (0..rank)
            .map(|_| cursor.length().and_then(|n| usize::try_from(n).map_err(|_| too_large(n))))
            .collect::<Result<Vec<_>>>()?;
        element_count(&dims)?;
        Ok(Dataspace { dims, is_null: false })
    }

    /// The number of elements.
    pub fn len(&self) -> Result<usize> {
        element_count(&self.dims)
    }
}
