//! Record batches as a source of rows: of files, one after another, or of one that is opened by a
//! function.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use estimand_data::{Files, InputContext, Position, Stage, Stream, StreamItem, slice_rows};
use estimand_tensor::{Batch, BatchSpec, Error, Result};

use super::reader::{Batches, IpcReader};
use crate::columns::{Columns, Origin, Selection, refuse_quarantine};
use crate::guard::caught;

/// Opens the batches of one other program, each time from the beginning.
pub(crate) type Opener = Arc<dyn Fn() -> Result<Box<dyn Batches>> + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Input {
    Files(Files),
    Opened(Opener),
}

/// The position is the file, the record batch in it, and the next row in that.
pub(crate) struct Records {
    input: Input,
    selection: Selection,
    /// Of the first file; all others must have the same.
    columns: OnceLock<Result<Arc<Columns>>>,
    /// Opened to look at the schema. Perhaps it cannot be opened again: the first reader gets it.
    parked: Mutex<Option<Box<dyn Batches>>>,
}

impl Records {
    pub(crate) fn new(input: Input, selection: Selection) -> Records {
        Records { input, selection, columns: OnceLock::new(), parked: Mutex::new(None) }
    }

    /// Where batches can be opened, in the order of reading; for nobody in particular, as they were
    /// named.
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

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([file, batch, row], []) = from.parts()?;
        let columns = self.columns()?;
        let places = self.places(Some(cx))?;
        let file = usize::try_from(file)
            .ok()
            .filter(|&file| file < places.len())
            .ok_or_else(|| foreign(format!("a position in file number {file} of {}", places.len())))?;
        let parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut rows =
            Rows { places, columns, file, batch: 0, row: 0, before: 0, open: None, piece: None, error: None };
        rows.open(parked)?;
        rows.pass_over(batch, row)?;
        Ok(Box::new(rows))
    }
}

fn foreign(what: String) -> Error {
    Error::config(what).help("a position continues only the data it was taken from, as they were")
}

/// Where batches can be opened, now that patterns are looked up.
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
    /// The record batch that the next row lies in or follows, and that row.
    batch: u64,
    row: u64,
    /// Rows of the file before that record batch.
    before: u64,
    open: Option<Box<dyn Batches>>,
    /// What is left of the record batch.
    piece: Option<Batch>,
    /// Met behind rows that were still good.
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

    /// Goes on to a row of a batch of the file that is open.
    fn pass_over(&mut self, batch: u64, row: u64) -> Result<()> {
        let gone =
            |rows: &Rows, what: String| foreign(format!("a position at {what} of {}", rows.places.origin(rows.file)));
        while self.batch < batch {
            let Some(n) = self.open.as_mut().map(|open| open.skip()).transpose()?.flatten() else {
                return Err(gone(self, format!("record batch {batch} of {}", self.batch)));
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

    /// The next record batch of the file, converted.
    fn decode(&mut self) -> Result<Option<Batch>> {
        let Some(records) = self.open.as_mut().map(|open| open.next()).transpose()?.flatten() else { return Ok(None) };
        let origin = self.places.origin(self.file);
        let (batch, error) = caught(&origin, || self.columns.rows(records, &origin, self.before))?;
        self.error = error;
        Ok(Some(batch))
    }

    /// Rows of which at least one is left.
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
        // Kept when it is empty too: then the record batch is counted once the next one is asked
        // for.
        self.piece = Some(slice_rows(&piece, n_rows.min(want)..n_rows)?);
        self.row += batch.n_rows() as u64;
        let after = Position::new([self.file as u64, self.batch, self.row], []);
        Ok(Some(StreamItem { batch, after }))
    }
}
