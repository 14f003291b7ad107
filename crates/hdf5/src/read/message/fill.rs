//! Fill values: elements that no chunk holds.

use estimand_tensor::{Error, Result};

use crate::read::cursor::{Cursor, Widths};
use crate::read::header::{Message, kind};

/// The bytes of the fill value, as an element is stored. `None` stands for zeros.
pub(in crate::read) fn find(messages: &[Message], size: usize, widths: Widths) -> Result<Option<Vec<u8>>> {
    let mut found = None;
    for message in messages {
        let mut cursor = Cursor::new(&message.data, widths);
        match message.kind {
            kind::OLD_FILL if found.is_none() => {}
            kind::FILL => match cursor.version(&[1, 2, 3], "a fill value")? {
                3 => {
                    if cursor.u8()? & 0x20 == 0 {
                        continue;
                    }
                }
                version => {
                    cursor.skip(2)?;
                    let is_defined = cursor.u8()? != 0;
                    if version == 2 && !is_defined {
                        continue;
                    }
                }
            },
            _ => continue,
        }
        let n = cursor.u32()? as usize;
        if n == 0 {
            continue;
        }
        if n != size {
            return Err(Error::data(format!("a fill value of {n} bytes for elements of {size} bytes")));
        }
        found = Some(cursor.take(n)?.to_vec());
    }
    Ok(found)
}
