//! The source of rows from record batches: of files, read one after another, or of one input that a
//! function opens.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use estimand_data::{Files, InputContext, Position, Stage, Stream, StreamItem, slice_rows};
use estimand_tensor::{Batch, BatchSpec, Error, Result};

use super::reader::{Batches, IpcReader};
use crate::columns::{Columns, Origin, Selection, refuse_quarantine};
use crate::guard::caught;

/// Opens an input from other code, each time from the beginning.
pub(crate) type Opener = Arc<dyn Fn() -> Result<Box<dyn Batches>> + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Input {
    Files(Files),
    Opened(Opener),
}

/// The stage of record batches. The position holds the file, the record batch in it, and the next
/// row in that batch.
pub(crate) struct Records {
    input: Input,
    selection: Selection,
    /// The columns of the first file; all other files must have the same.
    columns: OnceLock<Result<Arc<Columns>>>,
    /// An input that was opened to read the schema. It may not open a second time, so the first
    /// reader gets it.
    parked: Mutex<Option<Box<dyn Batches>>>,
}

impl Records {
    pub(crate) fn new(input: Input, selection: Selection) -> Records {
        Records { input, selection, columns: OnceLock::new(), parked: Mutex::new(None) }
    }

    /// The inputs in the order of reading; without a context, in the order they were given.
    fn places(&self, cx: Option<&InputContext>) -> Result<Places> {
        Ok(match &self.input {
            Input::Files(files) => {
                Places::Files(files.clone(), cx.map_or_else(|| files.resolve(), |cx| files.order(cx))?)
            }
            Input::Opened(opener) => Places::Opened(opener.clone()),
        })
    }

    fn columns(&self) -> Result<Arc<Columns>> {
        let resolve = || {
            let places = self.places(None)?;
            let batches = places.open(0)?;
            let columns = self.selection.resolve(&batches.schema(), &places.origin(0))?;
            if let Places::Opened(_) = places {
                *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(batches);
            }
            Ok(Arc::new(columns))
        };
        self.columns.get_or_init(resolve).clone()
    }
}

impl Stage for Records {
    fn describe(&self) -> String {
        let columns = self.selection.describe();
        match &self.input {
            Input::Files(files) => {
                let files = files.describe();
                format!("arrow: {columns} from {files}; going on passes over the batches before, and reads one again")
            }
            Input::Opened(_) => format!("record batches: {columns}; going on reads all batches before again"),
        }
    }

    fn identity(&self, cx: &InputContext) -> String {
        match &self.input {
            Input::Files(files) => self.describe() + &files.identity(cx),
            Input::Opened(_) => self.describe(),
        }
    }

    fn check(&self) -> Result<()> {
        if let Input::Files(files) = &self.input {
            refuse_quarantine(files)?;
        }
        self.selection.check()
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.columns()?.spec())
    }

    fn reshuffles(&self) -> bool {
        matches!(&self.input, Input::Files(files) if files.is_shuffled())
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([file, batch, row], []) = from.parts()?;
        let columns = self.columns()?;
        let places = self.places(Some(cx))?;
        let file = usize::try_from(file).ok().filter(|&file| file < places.len()).ok_or_else(|| {
            foreign(format!("the position is in file number {file}, but there are {} files", places.len()))
        })?;
        let parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut rows =
            Rows { places, columns, file, batch: 0, row: 0, before: 0, open: None, piece: None, error: None };
        rows.open(parked)?;
        rows.pass_over(batch, row)?;
        Ok(Box::new(rows))
    }
}

fn foreign(what: String) -> Error {
    Error::config(what).help("resume with the unchanged data that the position was taken from")
}

/// The inputs, after patterns are looked up.
enum Places {
    Files(Files, Arc<[PathBuf]>),
    Opened(Opener),
}

impl Places {
    fn len(&self) -> usize {
        match self {
            Places::Files(_, paths) => paths.len(),
            Places::Opened(_) => 1,
        }
    }

    fn origin(&self, i: usize) -> Origin {
        match self {
            Places::Files(_, paths) => Origin::File(paths[i].clone()),
            Places::Opened(_) => Origin::Batches,
        }
    }

    fn open(&self, i: usize) -> Result<Box<dyn Batches>> {
        match self {
            Places::Files(files, paths) => Ok(Box::new(IpcReader::open(files, &paths[i])?)),
            Places::Opened(opener) => opener(),
        }
    }
}

struct Rows {
    places: Places,
    columns: Arc<Columns>,
    file: usize,
    /// The record batch that holds the next row, or ends just before it, and the number of that
    /// row.
    batch: u64,
    row: u64,
    /// The number of rows in the file before that record batch.
    before: u64,
    open: Option<Box<dyn Batches>>,
    /// The rest of the record batch.
    piece: Option<Batch>,
    /// An error found after good rows. The rows are yielded first.
    error: Option<Error>,
}

impl Rows {
    fn open(&mut self, parked: Option<Box<dyn Batches>>) -> Result<()> {
        let mut batches = match parked {
            Some(parked) => parked,
            None => self.places.open(self.file)?,
        };
        self.columns.check(&batches.schema(), &self.places.origin(self.file))?;
        batches.select(&self.columns);
        self.open = Some(batches);
        Ok(())
    }

    /// Skips to a row of a record batch in the open file.
    fn pass_over(&mut self, batch: u64, row: u64) -> Result<()> {
        let gone = |rows: &Rows, what: String| {
            foreign(format!("the position is at {what} of {}, which is shorter", rows.places.origin(rows.file)))
        };
        while self.batch < batch {
            let Some(n) = self.open.as_mut().map(|open| open.skip()).transpose()?.flatten() else {
                return Err(gone(self, format!("record batch {batch}")));
            };
            self.before = self.before.saturating_add(n);
            self.batch += 1;
        }
        if row == 0 {
            return Ok(());
        }
        let piece = self.decode()?.filter(|piece| piece.n_rows() as u64 >= row);
        let Some(piece) = piece else { return Err(gone(self, format!("row {row} of record batch {batch}"))) };
        self.piece = Some(slice_rows(&piece, row as usize..piece.n_rows())?);
        self.row = row;
        Ok(())
    }

    /// Decodes and converts the next record batch of the file.
    fn decode(&mut self) -> Result<Option<Batch>> {
        let Some(records) = self.open.as_mut().map(|open| open.next()).transpose()?.flatten() else { return Ok(None) };
        let origin = self.places.origin(self.file);
        let (batch, error) = caught(&origin, || self.columns.rows(records, &origin, self.before))?;
        self.error = error;
        Ok(Some(batch))
    }

    /// Returns rows that are not yet yielded, at least one; `None` at the end.
    fn next_piece(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(piece) = self.piece.take() {
                if piece.n_rows() > 0 {
                    return Ok(Some(piece));
                }
                self.batch += 1;
                self.before = self.before.saturating_add(self.row);
                self.row = 0;
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if self.open.is_none() {
                return Ok(None);
            }
            self.piece = self.decode()?;
            if self.piece.is_none() {
                self.open = None;
                if self.file + 1 < self.places.len() {
                    self.file += 1;
                    (self.batch, self.row, self.before) = (0, 0, 0);
                    self.open(None)?;
                }
            }
        }
    }
}

impl Stream for Rows {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let piece = match self.next_piece() {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.open = None;
                return Err(error);
            }
        };
        let n_rows = piece.n_rows();
        let batch = slice_rows(&piece, 0..n_rows.min(want))?;
        // An empty rest is kept too: the record batch counts as read only when the next one is
        // requested.
        self.piece = Some(slice_rows(&piece, n_rows.min(want)..n_rows)?);
        self.row += batch.n_rows() as u64;
        let after = Position::new([self.file as u64, self.batch, self.row], []);
        Ok(Some(StreamItem { batch, after }))
    }
}
