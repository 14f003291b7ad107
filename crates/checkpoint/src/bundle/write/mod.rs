//! Writes a bundle: tensors go to the data file one by one, and the index is written at the end.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use estimand_tensor::{Array, DType, Error, Result};
use estimand_wire::bundle::{BundleEntryProto, BundleHeaderProto, Endianness};
use estimand_wire::temporary::{Backup, Mount, TemporaryFile, sync_folder};
use estimand_wire::{DataType, Message, TensorShapeProto, VersionDef};

use super::{HEADER_KEY, VERSION, checksum, data_path, index_path, slice, strings};
use crate::sstable::TableWriter;

#[cfg(test)]
mod tests;

/// A checkpoint that is being written. [`finish`](Self::finish) gives the files their names. If it
/// is dropped before that, nothing is left on disk.
pub struct BundleWriter {
    prefix: PathBuf,
    data: TemporaryFile,
    offset: u64,
    entries: BTreeMap<String, BundleEntryProto>,
    mount: Mount,
}

impl BundleWriter {
    /// Starts a checkpoint with this prefix, such as `model/model.ckpt-100`. Creates the folder if
    /// it does not exist.
    pub fn create(prefix: impl AsRef<Path>) -> Result<BundleWriter> {
        BundleWriter::mounted(prefix.as_ref(), |file| Box::new(file))
    }

    fn mounted(prefix: &Path, mount: Mount) -> Result<BundleWriter> {
        let data = TemporaryFile::mounted(&data_path(prefix, 0, 1), mount)?;
        Ok(BundleWriter { prefix: prefix.to_path_buf(), data, offset: 0, entries: BTreeMap::new(), mount })
    }

    /// Appends a tensor. Names may come in any order, but each only once. Returns the
    /// [`checksum`](super::checksum) of its values.
    pub fn add(&mut self, name: &str, array: &Array) -> Result<u32> {
        if name.is_empty() || name.as_bytes()[0] == slice::KEY_MARK {
            return Err(self.refused(name, "a name must not be empty or begin with a zero byte"));
        }
        if self.entries.contains_key(name) {
            return Err(self.refused(name, "a tensor of that name was already added"));
        }
        let (begin, crc32c) = (self.offset, checksum(array)?);
        match array.dtype() {
            DType::Str => {
                let (header, _) = strings::header(array.strings()?);
                self.append(&header)?;
                for string in array.strings()? {
                    self.append(string)?;
                }
            }
            _ => self.append(array.bytes())?,
        }
        let entry = BundleEntryProto {
            dtype: DataType::from(array.dtype()).into(),
            shape: Some(TensorShapeProto::of(array.dims().iter().map(|&dim| dim as i64))),
            offset: begin as i64,
            size: (self.offset - begin) as i64,
            crc32c,
            ..Default::default()
        };
        self.entries.insert(name.to_string(), entry);
        Ok(crc32c)
    }

    /// Appends custom bytes as a string tensor without dimensions. TensorFlow has no variable for
    /// it and ignores it.
    pub fn add_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.add(name, &Array::from_strings([], [bytes])?)?;
        Ok(())
    }

    /// Writes the index and gives the files their names. Replaces an older checkpoint with the same
    /// prefix; if that fails, the older one is still there.
    pub fn finish(mut self) -> Result<()> {
        let written = self.data.sync()?;
        if written != self.offset {
            // An `add` failed half-way and the caller continued.
            let message = format!("{written} bytes of data were written; expected {}", self.offset);
            return Err(Error::checkpoint(&self.prefix, message));
        }
        let mut index = self.write_index()?;
        index.sync()?;

        // The index comes last: a reader that finds it also finds the data.
        let data_name = data_path(&self.prefix, 0, 1);
        let backup = Backup::of(&data_name);
        self.data.rename()?;
        if let Err(error) = index.rename() {
            return match backup.map_or(Ok(()), Backup::restore) {
                Ok(()) => Err(error),
                Err(restoring) => Err(error.context(restoring.to_string())),
            };
        }
        sync_folder(&data_name)
    }

    fn write_index(&self) -> Result<TemporaryFile> {
        let path = index_path(&self.prefix);
        let header = BundleHeaderProto {
            num_shards: 1,
            endianness: Endianness::Little.into(),
            version: Some(VersionDef { producer: VERSION, ..Default::default() }),
        };
        let mut table = TableWriter::new(TemporaryFile::mounted(&path, self.mount)?);
        let mut add = |key: &[u8], value: Vec<u8>| table.add(key, &value).map_err(|e| Error::io(&path, "write", &e));
        add(HEADER_KEY, header.encode_to_vec())?;
        for (name, entry) in &self.entries {
            add(name.as_bytes(), entry.encode_to_vec())?;
        }
        table.finish().map_err(|e| Error::io(&path, "write", &e))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.data.write_all(bytes).map_err(|e| self.data.error("write", &e))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn refused(&self, name: &str, reason: &str) -> Error {
        let place = format!("in checkpoint {}", self.prefix.display());
        Error::config(format!("the tensor name `{}` cannot be saved: {reason}", name.escape_debug())).context(place)
    }
}
