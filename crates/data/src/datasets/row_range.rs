//! A piece of a dataset whose rows can be read by index, cut from one fixed random order of its
//! rows.

use estimand_tensor::random::{Key, Stream as Random};
use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::stage::{Indexed, InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

/// A boundary of a piece, as a place in the order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Cut {
    Row(u64),
    /// A fraction of all rows.
    Share(f64),
}

impl Cut {
    pub(crate) const BEGINNING: Cut = Cut::Row(0);
    pub(crate) const END: Cut = Cut::Row(u64::MAX);

    /// The number of rows before it, out of `n`. Rounded: 29 % of 100 is 29, however a float stores
    /// it.
    fn of(self, n: u64) -> u64 {
        match self {
            Cut::Row(row) => row.min(n),
            Cut::Share(share) => ((n as f64 * share).round() as u64).min(n),
        }
    }
}

/// The stage of a piece. The position is the number of the next row in the piece.
pub(crate) struct RowRange {
    pub(crate) input: Dataset,
    pub(crate) from: Cut,
    pub(crate) to: Cut,
}

impl RowRange {
    fn input(&self) -> Result<&dyn Indexed> {
        self.input.stage().indexed().ok_or_else(|| Error::internal("a part of rows that have no numbers"))
    }

    /// The first row of the piece in the order, its number of rows, and the number of all rows.
    fn extent(&self) -> Result<(u64, u64, u64)> {
        let n = self.input()?.n_rows()?;
        let (from, to) = (self.from.of(n), self.to.of(n));
        Ok((from, to.saturating_sub(from), n))
    }
}

/// The fixed order. It must never change: another order would move rows from validation to
/// training.
fn order() -> Random {
    Random::new(Key::new(0, "datasets/part"), 0)
}

impl Stage for RowRange {
    fn describe(&self) -> String {
        let text = |cut| match cut {
            Cut::BEGINNING | Cut::END => String::new(),
            Cut::Row(row) => row.to_string(),
            Cut::Share(share) => format!("{}%", (share * 1e4).round() / 1e2),
        };
        format!("part [{}:{}] of a fixed random order", text(self.from), text(self.to))
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        Some(self)
    }

    fn open(&self, _cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([next], []) = from.parts()?;
        let (_, n_rows, _) = self.extent()?;
        if next > n_rows {
            return Err(Error::config(format!("the position is after row {next}, but this part has {n_rows} rows"))
                .help("resume with the data that the position was taken from"));
        }
        let part = RowRange { input: self.input.clone(), from: self.from, to: self.to };
        Ok(Box::new(PartStream { part, next, n_rows }))
    }
}

impl Indexed for RowRange {
    fn n_rows(&self) -> Result<u64> {
        Ok(self.extent()?.1)
    }

    fn gather(&self, rows: &[u64]) -> Result<Batch> {
        let (first, n_rows, n) = self.extent()?;
        if let Some(row) = rows.iter().find(|&&row| row >= n_rows) {
            return Err(Error::index(format!("there is no row {row}; the part has {n_rows} rows")));
        }
        let order = order().permutation(n);
        let numbers: Vec<u64> = rows.iter().map(|row| order.at(first + row)).collect();
        self.input()?.gather(&numbers)
    }
}

struct PartStream {
    part: RowRange,
    next: u64,
    n_rows: u64,
}

impl Stream for PartStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let end = self.next.saturating_add(want as u64).min(self.n_rows);
        if end == self.next {
            return Ok(None);
        }
        let numbers: Vec<u64> = (self.next..end).collect();
        let batch = self.part.gather(&numbers)?;
        self.next = end;
        Ok(Some(StreamItem { batch, after: Position::new([end], []) }))
    }
}
