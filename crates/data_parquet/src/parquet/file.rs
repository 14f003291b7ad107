//! One Parquet file: its footer, and the rows of one of its row groups.

use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::file::metadata::RowGroupMetaData;
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use estimand_tensor::{Batch, Error, Limits, Result};

use super::chunks::Chunks;
use crate::columns::{Columns, Origin};
use crate::guard::{damaged, guarded};

/// The largest number of rows in a piece.
const PIECE_ROWS: u64 = 1 << 13;

/// A file whose footer has been read.
pub(super) struct ParquetFile {
    pub(super) origin: Origin,
    metadata: ArrowReaderMetadata,
    pub(super) limits: Limits,
}

impl ParquetFile {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<ParquetFile> {
        let origin = Origin::File(path.to_path_buf());
        let chunks = Chunks::open(path, limits)?;
        let metadata = guarded(&origin, || ArrowReaderMetadata::load(&chunks, ArrowReaderOptions::new()))
            .map_err(|e| e.help("check that it is a Parquet file and that it is complete"))?;
        Ok(ParquetFile { origin, metadata, limits: *limits })
    }

    pub(super) fn schema(&self) -> &arrow_schema::Schema {
        self.metadata.schema()
    }

    pub(super) fn n_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    fn group(&self, group: usize) -> Result<&RowGroupMetaData> {
        let groups = self.metadata.metadata().row_groups();
        groups
            .get(group)
            .ok_or_else(|| Error::index(format!("there is no row group {group}; the file has {}", groups.len())))
    }

    /// The number of rows in a row group.
    pub(super) fn n_rows(&self, group: usize) -> Result<u64> {
        u64::try_from(self.group(group)?.num_rows())
            .map_err(|_| damaged(&self.origin, format!("row group {group} has a negative number of rows")))
    }

    /// Reads the rows of a row group from `row` on, in pieces of about `piece_size` bytes.
    pub(super) fn read(
        self: &Arc<Self>,
        columns: &Arc<Columns>,
        group: usize,
        row: u64,
        piece_size: usize,
    ) -> Result<Pieces> {
        let n_rows = self.n_rows(group)?;
        let metadata = self.group(group)?;
        let Origin::File(path) = &self.origin else { return Err(Error::internal("a Parquet file without a path")) };
        let chunks = Chunks::open(path, &self.limits)?.of_group(metadata);
        let roots = self.metadata.parquet_schema().root_schema().get_fields().iter().enumerate();
        let selected: Vec<usize> =
            roots.filter(|(_, root)| columns.names().any(|name| name == root.name())).map(|(i, _)| i).collect();
        let bytes: u64 = metadata.columns().iter().map(|c| u64::try_from(c.uncompressed_size()).unwrap_or(0)).sum();
        let piece = (piece_size as u64 / (bytes / n_rows.max(1)).max(1)).clamp(16, PIECE_ROWS);
        let reader = guarded(&self.origin, || {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(ProjectionMask::roots(self.metadata.parquet_schema(), selected))
                .with_batch_size(piece as usize);
            // Even an offset of 0 would make the decoder look for rows to skip.
            match usize::try_from(row) {
                Ok(0) => builder.build(),
                row => builder.with_offset(row.unwrap_or(usize::MAX)).build(),
            }
        })?;
        let groups_before = self.metadata.metadata().row_groups().iter().take(group);
        let before: u64 = groups_before.map(|g| u64::try_from(g.num_rows()).unwrap_or(0)).sum();
        Ok(Pieces {
            file: self.clone(),
            columns: columns.clone(),
            reader: Some(reader),
            group,
            before,
            row,
            n_rows,
            error: None,
        })
    }
}

/// An iterator over the rows of a row group, piece by piece. Ends after an error.
pub(super) struct Pieces {
    file: Arc<ParquetFile>,
    columns: Arc<Columns>,
    reader: Option<ParquetRecordBatchReader>,
    group: usize,
    /// The number of rows in the file before this row group.
    before: u64,
    /// The next row, and the number of rows that the footer claims.
    row: u64,
    n_rows: u64,
    /// An error found after good rows. The rows are yielded first.
    error: Option<Error>,
}

impl Iterator for Pieces {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let mut reader = self.reader.take()?;
        let origin = &self.file.origin;
        let decoded = guarded(origin, || Ok::<_, ArrowError>((reader.next().transpose()?, reader)));
        let result = decoded.and_then(|(records, reader)| {
            let Some(records) = records else { return self.end().map(|()| None) };
            self.reader = Some(reader);
            self.convert(records).map(Some)
        });
        if result.is_err() {
            self.reader = None;
        }
        result.transpose()
    }
}

impl Pieces {
    fn convert(&mut self, records: RecordBatch) -> Result<Batch> {
        let origin = self.file.origin.clone();
        let first = self.before.saturating_add(self.row);
        let (batch, error) = self.columns.rows(records, &origin, first)?;
        if let Some(error) = error {
            (self.error, self.reader) = (Some(error), None);
        }
        self.row += batch.n_rows() as u64;
        Ok(batch)
    }

    /// Checks the number of rows. Fewer than the footer claims means damage, not an end.
    fn end(&self) -> Result<()> {
        if self.row == self.n_rows {
            return Ok(());
        }
        let text = format!("row group {} ends after {} of {} rows", self.group, self.row, self.n_rows);
        Err(damaged(&self.file.origin, text))
    }
}
