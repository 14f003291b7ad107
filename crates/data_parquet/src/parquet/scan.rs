//! The source of rows from Parquet files, read one after another.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use estimand_data::{Compression, Files, InputContext, Position, Stage, Stream, StreamItem, slice_rows};
use estimand_tensor::{Batch, BatchSpec, Error, Result};

use super::file::ParquetFile;
use super::workers::{Group, Start, Workers};
use crate::columns::{Columns, Selection, refuse_quarantine};

/// The stage of Parquet files. The position holds the file, the row group in it, and the next row
/// in that group.
pub(crate) struct Scan {
    files: Files,
    selection: Selection,
    /// The columns of the first file; all other files must have the same.
    columns: OnceLock<Result<Arc<Columns>>>,
}

impl Scan {
    pub(crate) fn new(files: Files, selection: Selection) -> Scan {
        Scan { files, selection, columns: OnceLock::new() }
    }

    fn columns(&self) -> Result<Arc<Columns>> {
        let resolve = || {
            let paths = self.files.resolve()?;
            self.check_files(&paths)?;
            let file = ParquetFile::open(&paths[0], self.files.reading_limits())?;
            self.selection.resolve(file.schema(), &file.origin).map(Arc::new)
        };
        self.columns.get_or_init(resolve).clone()
    }

    fn check_files(&self, paths: &[PathBuf]) -> Result<()> {
        match paths.iter().find(|path| self.files.compression_of(path) != Compression::None) {
            Some(path) => Err(Error::unsupported(format!("{} is a compressed file", path.display()))
                .help("unpack it first; Parquet compresses its pages itself")),
            None => Ok(()),
        }
    }
}

impl Stage for Scan {
    fn describe(&self) -> String {
        format!(
            "parquet: {} from {}; going on reads at most one row group again",
            self.selection.describe(),
            self.files.describe()
        )
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.files.resolve()?.to_vec())
    }

    fn identity(&self, cx: &InputContext) -> String {
        self.describe() + &self.files.identity(cx)
    }

    fn check(&self) -> Result<()> {
        refuse_quarantine(&self.files)?;
        self.selection.check()
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.columns()?.spec())
    }

    fn reshuffles(&self) -> bool {
        self.files.is_shuffled()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([file, group, row], []) = from.parts()?;
        let columns = self.columns()?;
        let paths = self.files.order(cx)?;
        self.check_files(&paths)?;
        let foreign = |what: String| {
            Err(Error::config(what).help("resume with the unchanged files that the position was taken from"))
        };
        let Some(path) = usize::try_from(file).ok().and_then(|file| paths.get(file)) else {
            return foreign(format!("the position is in file number {file}, but there are {} files", paths.len()));
        };
        let first = Arc::new(ParquetFile::open(path, self.files.reading_limits())?);
        columns.check(first.schema(), &first.origin)?;
        let n_groups = first.n_groups() as u64;
        let n_rows = if group < n_groups { first.n_rows(group as usize)? } else { 0 };
        if group > n_groups || row > n_rows {
            return foreign(format!(
                "the position is at row {row} of row group {group} of {}, but there are {n_groups} row groups \
                 and this one has {n_rows} rows",
                path.display()
            ));
        }
        let start = Start { file: file as usize, group: group as usize, row };
        // A small file needs no more threads than it has row groups.
        let is_last = start.file + 1 == paths.len();
        let n_useful = if is_last { first.n_groups().saturating_sub(start.group).max(1) } else { usize::MAX };
        let n_threads = cx.threads().min(n_useful);
        let workers = Workers::begin(paths, columns, first, start, n_threads, self.files.piece_size())?;
        Ok(Box::new(Rows { workers, group: None, piece: None, at: start }))
    }
}

struct Rows {
    workers: Workers,
    group: Option<Group>,
    /// A piece of the group of which some rows were not yielded.
    piece: Option<Batch>,
    /// The position of the next row.
    at: Start,
}

impl Rows {
    /// Returns the next piece of which no row is yielded yet, in the order of the files.
    fn next_piece(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.group.is_none() {
                self.group = self.workers.next()?;
            }
            let Some(group) = &self.group else { return Ok(None) };
            if group.start.group != self.at.group || group.start.file != self.at.file {
                self.at = group.start;
            }
            match group.pieces.recv() {
                Ok(piece) => match piece? {
                    batch if batch.n_rows() == 0 => {}
                    batch => return Ok(Some(batch)),
                },
                Err(_) if self.at.row == group.n_rows => self.group = None,
                Err(_) => return Err(Error::internal("a thread ended within a row group")),
            }
        }
    }
}

impl Stream for Rows {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let piece = match self.piece.take() {
            Some(piece) => piece,
            None => match self.next_piece() {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(None),
                Err(error) => {
                    self.group = None;
                    self.workers.stop();
                    return Err(error);
                }
            },
        };
        let n_rows = piece.n_rows();
        let batch = if n_rows <= want {
            piece
        } else {
            self.piece = Some(slice_rows(&piece, want..n_rows)?);
            slice_rows(&piece, 0..want)?
        };
        self.at.row += batch.n_rows() as u64;
        let after = Position::new([self.at.file as u64, self.at.group as u64, self.at.row], []);
        Ok(Some(StreamItem { batch, after }))
    }
}
