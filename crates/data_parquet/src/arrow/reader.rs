//! Readers of record batches: decoded from the bytes of Arrow's IPC formats, or taken from other
//! code.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{MessageHeader, MetadataVersion};
use arrow_schema::SchemaRef;
use estimand_data::{Compression, Files};
use estimand_tensor::{Limits, Result};

use super::bytes::Bytes;
use super::messages::{Header, Messages};
use crate::columns::{Columns, Origin};
use crate::guard::{damaged, guarded};

/// Record batches of one schema, in order.
pub(crate) trait Batches: Send {
    fn schema(&self) -> SchemaRef;

    /// Selects the columns to decode. Called before the first batch.
    fn select(&mut self, _columns: &Columns) {}

    fn next(&mut self) -> Result<Option<RecordBatch>>;

    /// Skips a batch; returns its number of rows.
    fn skip(&mut self) -> Result<Option<u64>> {
        Ok(self.next()?.map(|batch| batch.num_rows() as u64))
    }
}

/// A reader of the batches of an IPC file or stream.
pub(super) struct IpcReader {
    messages: Messages,
    /// The decoder, which also holds the dictionaries.
    decoder: FileDecoder,
    schema: SchemaRef,
    version: MetadataVersion,
    origin: Origin,
}

impl IpcReader {
    /// Opens a file of either format, compressed as a whole or not.
    pub(super) fn open(files: &Files, path: &Path) -> Result<IpcReader> {
        let bytes = match files.compression_of(path) {
            Compression::None => Bytes::open(path, files.piece_size())?,
            _ => Bytes::Stream(files.open(path, 0)?),
        };
        IpcReader::new(bytes, Origin::File(path.to_path_buf()), *files.reading_limits())
    }

    pub(super) fn new(bytes: Bytes, origin: Origin, limits: Limits) -> Result<IpcReader> {
        IpcReader::begin(bytes, origin, limits)
            .map_err(|e| e.help("check that the file is in Arrow's IPC format, as a file (Feather 2) or a stream"))
    }

    /// Reads up to and including the schema.
    fn begin(bytes: Bytes, origin: Origin, limits: Limits) -> Result<IpcReader> {
        let mut messages = Messages::new(bytes, origin.clone(), limits)?;
        let header = messages.header()?.ok_or_else(|| damaged(&origin, "it has no schema"))?;
        let (schema, version) = guarded(&origin, || {
            header.message(|message| {
                let schema = message.header_as_schema().ok_or("its first message is not a schema")?;
                Ok((Arc::new(try_fb_to_schema(schema).map_err(|e| e.to_string())?), message.version()))
            })
        })?;
        messages.skip(&header)?;
        let decoder = FileDecoder::new(schema.clone(), version);
        Ok(IpcReader { messages, decoder, schema, version, origin })
    }

    /// Reads the header of the next record batch. Keeps the dictionaries before it.
    fn next_header(&mut self) -> Result<Option<Header>> {
        while let Some(header) = self.messages.header()? {
            match header.header_type {
                MessageHeader::RecordBatch => return Ok(Some(header)),
                MessageHeader::DictionaryBatch => {
                    let message = self.messages.body(header)?;
                    guarded(&self.origin, || self.decoder.read_dictionary(&message.block, &message.bytes))?;
                }
                other => {
                    return Err(damaged(
                        &self.origin,
                        format!("a message has the type {other:?}; expected a record batch"),
                    ));
                }
            }
        }
        Ok(None)
    }
}

impl Batches for IpcReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn select(&mut self, columns: &Columns) {
        let fields = self.schema.fields().iter().enumerate();
        let selected = fields.filter(|(_, field)| columns.names().any(|name| name == field.name())).map(|(i, _)| i);
        // Nothing has been decoded yet, so no dictionary is lost.
        self.decoder = FileDecoder::new(self.schema.clone(), self.version).with_projection(selected.collect());
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(header) = self.next_header()? else { return Ok(None) };
        let message = self.messages.body(header)?;
        guarded(&self.origin, || self.decoder.read_record_batch(&message.block, &message.bytes))
    }

    fn skip(&mut self) -> Result<Option<u64>> {
        let Some(header) = self.next_header()? else { return Ok(None) };
        self.messages.skip(&header)?;
        Ok(Some(header.n_rows))
    }
}

/// Batches from other code.
pub(super) struct Foreign(pub(super) Box<dyn RecordBatchReader + Send>);

impl Batches for Foreign {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.0.next().transpose().map_err(|e| damaged(&Origin::Batches, e))
    }
}
