//! Mixes rows of several inputs into one piece. `interleave` and `sample_from_datasets` are built
//! on it.
//!
//! Taking rows one by one from each input would cost a small batch for every row. Instead, inputs
//! are read ahead. A piece is recorded as runs of rows, and then assembled at once.

use estimand_tensor::{Batch, Error, Result};

use crate::rows::{concat, discard, gather, slice};
use crate::stage::{InputContext, PIECE, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

/// An input that is read ahead. Its position holds the number of rows yielded of a piece, and the
/// input's position before that piece.
pub(crate) struct Ahead {
    input: Box<dyn Stream>,
    unit: Unit,
    piece: Option<StreamItem>,
    /// The number of the current piece, which identifies it.
    number: usize,
    /// The first row of the piece that was not yielded.
    start: usize,
    /// The input's position before the piece.
    before: Position,
    /// Rows yielded since then: those of this piece, and those skipped to resume inside it.
    given: u64,
}

impl Ahead {
    pub(crate) fn open(input: &Dataset, cx: &InputContext, from: &Position) -> Result<Ahead> {
        let ([given], [before]) = from.parts()?;
        if given >= PIECE as u64 {
            return Err(Error::config(format!(
                "the position is after {given} rows of a piece, but a piece has at most {PIECE}"
            ))
            .help("resume with the plan that the position was taken from"));
        }
        let mut stream = input.stage().open(cx, before)?;
        discard(&mut *stream, Unit::Row, given)?;
        Ok(Ahead { input: stream, unit: input.unit(), piece: None, number: 0, start: 0, before: before.clone(), given })
    }

    /// The number of elements ready. Reads a piece if there are none; 0 at the end.
    pub(crate) fn available(&mut self) -> Result<usize> {
        if self.piece.is_none() {
            // When reading resumes inside a piece, the rest of the piece ends where it ended
            // before, so `given` stays below `PIECE`.
            let want = PIECE - usize::try_from(self.given).unwrap_or(0);
            self.piece = self.input.pull(want)?;
            (self.number, self.start) = (self.number + 1, 0);
        }
        Ok(match (&self.piece, self.unit) {
            (None, _) => 0,
            (Some(_), Unit::Batch) => 1,
            (Some(piece), Unit::Row) => piece.batch.n_rows() - self.start,
        })
    }

    pub(crate) fn position(&self) -> Position {
        Position::new([self.given], [self.before.clone()])
    }

    /// Marks the next `n` elements as yielded; at least `n` must be available.
    fn advance(&mut self, n: usize) {
        let Some(piece) = &self.piece else { return };
        (self.start, self.given) = (self.start + n, self.given + n as u64);
        if self.unit == Unit::Batch || self.start == piece.batch.n_rows() {
            (self.before, self.given) = (piece.after.clone(), 0);
            self.piece = None;
        }
    }
}

/// A piece that is being assembled.
#[derive(Default)]
pub(crate) struct Mixed {
    parts: Vec<PieceRows>,
    /// For each input, its last part.
    last: Vec<Option<usize>>,
    /// Runs of rows: the part, and the number of rows.
    runs: Vec<(usize, usize)>,
    n: usize,
}

/// Rows from one piece of an input, in order.
struct PieceRows {
    /// The number of the piece.
    number: usize,
    batch: Batch,
    start: usize,
    n: usize,
}

impl Mixed {
    /// Adds the next `n` elements of an input; at least `n` must be available.
    pub(crate) fn add(&mut self, which: usize, input: &mut Ahead, n: usize) {
        self.last.resize(self.last.len().max(which + 1), None);
        let known = self.last[which].filter(|&part| self.parts[part].number == input.number);
        let part = known.unwrap_or_else(|| {
            let batch = input.piece.as_ref().map(|piece| piece.batch.clone()).unwrap_or_default();
            self.parts.push(PieceRows { number: input.number, batch, start: input.start, n: 0 });
            self.parts.len() - 1
        });
        self.last[which] = Some(part);
        self.parts[part].n += n;
        self.runs.push((part, n));
        self.n += n;
        input.advance(n);
    }

    /// Assembles the elements in the order in which they were added: rows, or one batch.
    fn finish(self, unit: Unit) -> Result<Batch> {
        if let (Unit::Batch, [part]) = (unit, &self.parts[..]) {
            return Ok(part.batch.clone());
        }
        let mut firsts = Vec::new();
        let mut rows = Vec::new();
        let mut n = 0;
        for part in &self.parts {
            rows.push(slice(&part.batch, part.start..part.start + part.n)?);
            firsts.push(n);
            n += part.n as u64;
        }
        let joined = concat(rows)?;
        if self.parts.len() < 2 {
            return Ok(joined);
        }
        let mut order = Vec::with_capacity(self.n);
        for (part, n) in self.runs {
            order.extend(firsts[part]..firsts[part] + n as u64);
            firsts[part] += n as u64;
        }
        gather(&joined, &order)
    }
}

/// Decides the order of a [`MixedStream`].
pub(crate) trait Mixing: Send {
    /// Adds up to `want` of the next elements, or prepares the next step; `false` at the end.
    fn step(&mut self, want: usize, mixed: &mut Mixed) -> Result<bool>;

    /// The position after the added elements.
    fn position(&self) -> Position;
}

/// A stream that mixes the elements of several inputs.
pub(crate) struct MixedStream<M> {
    mixing: M,
    unit: Unit,
    /// An error found after good rows. The rows are yielded first.
    error: Option<Error>,
}

impl<M> MixedStream<M> {
    pub(crate) fn new(mixing: M, unit: Unit) -> MixedStream<M> {
        MixedStream { mixing, unit, error: None }
    }
}

impl<M: Mixing> Stream for MixedStream<M> {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let want = if self.unit == Unit::Row { want.min(PIECE) } else { 1 };
        let mut mixed = Mixed::default();
        while mixed.n < want {
            match self.mixing.step(want - mixed.n, &mut mixed) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if mixed.n == 0 => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        if mixed.n == 0 {
            return Ok(None);
        }
        Ok(Some(StreamItem { batch: mixed.finish(self.unit)?, after: self.mixing.position() }))
    }
}
