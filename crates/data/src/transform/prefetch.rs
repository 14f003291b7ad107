//! Reads ahead, and runs functions in several threads. Both `prefetch` and `parallel_map` use
//! [`Ordered`] threads.

use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::ordered::Ordered;
use crate::rows::{discard, slice};
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::transform::map::{MapFn, apply, label_spec, specs_of_first};
use crate::{Dataset, Position};

/// The stage of `prefetch` and `parallel_map`. The position holds the number of rows yielded of a
/// piece, and the input's position before that piece; with a function that is told the place of its
/// items, also the number of rows before the piece. Items read ahead do not count.
pub(crate) struct Prefetch {
    pub(crate) input: Dataset,
    /// The largest number of items that may wait.
    pub(crate) n: usize,
    /// The function that the threads apply to items.
    pub(crate) function: Option<Function>,
}

/// What the threads do with items.
#[derive(Clone)]
pub(crate) enum Function {
    OfItem(Arc<MapFn>),
    OfPlace(Arc<PlacedFn>),
}

type PlacedFn = dyn Fn(Batch, Place) -> Result<Batch> + Send + Sync;

/// The place of an item in the input. It is the same with any number of threads and after a resume,
/// so a function that draws random numbers from it gives the same rows again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The seed of the run.
    pub seed: u64,
    /// The pass over the data, from 0.
    pub epoch: u64,
    /// The number of rows before the item in this pass.
    pub n_rows_before: u64,
    /// Whether items are batches. Rows come in groups of any size.
    pub unit: Unit,
}

/// The number of items that may wait per thread of a `map`.
const AHEAD_A_THREAD: usize = 2;

impl Dataset {
    /// Reads up to `n` items ahead in a separate thread. Changes nothing else.
    pub fn prefetch(&self, n: usize) -> Dataset {
        Dataset::new(Prefetch { input: self.clone(), n, function: None })
    }

    /// Applies a function like [`map`](Dataset::map), in all threads that the input may use, a few
    /// items ahead.
    ///
    /// The batches, their order and the positions are those of `map`; only the time differs.
    pub fn parallel_map(&self, function: impl Fn(Batch) -> Result<Batch> + Send + Sync + 'static) -> Dataset {
        self.in_threads(Function::OfItem(Arc::new(function)))
    }

    /// Like [`parallel_map`](Dataset::parallel_map), for a function that depends on the place of
    /// its rows: one that draws random numbers.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let rows = Dataset::from_arrays([("x", Array::from(vec![0.0f32; 4]))]).batch(2);
    /// let placed = rows.parallel_map_at(|batch, place| {
    ///     let n = (10 * place.epoch + place.n_rows_before) as f32;
    ///     let n_rows = batch.n_rows();
    ///     batch.with_feature("n", Array::from(vec![n; n_rows]))
    /// });
    /// let mut found = Vec::new();
    /// for batch in placed.repeat(2).iter() {
    ///     found.push(batch?.feature("n")?.dense()?.as_slice::<f32>()?[0]);
    /// }
    /// assert_eq!(found, [0.0, 2.0, 10.0, 12.0]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn parallel_map_at(&self, function: impl Fn(Batch, Place) -> Result<Batch> + Send + Sync + 'static) -> Dataset {
        self.in_threads(Function::OfPlace(Arc::new(function)))
    }

    fn in_threads(&self, function: Function) -> Dataset {
        Dataset::new(Prefetch { input: self.clone(), n: AHEAD_A_THREAD, function: Some(function) })
    }
}

impl Stage for Prefetch {
    fn describe(&self) -> String {
        match (&self.function, self.unit()) {
            (None, _) => format!("prefetch({})", self.n),
            (Some(_), Unit::Row) => "map(rows) in threads".to_string(),
            (Some(_), Unit::Batch) => "map(batches) in threads".to_string(),
        }
    }

    fn identity(&self, _cx: &InputContext) -> String {
        match (&self.function, self.unit()) {
            (None, _) => String::new(),
            (Some(_), Unit::Row) => "map(rows)".to_string(),
            (Some(_), Unit::Batch) => "map(batches)".to_string(),
        }
    }

    fn landmark(&self) -> String {
        match self.function {
            None => "prefetch".to_string(),
            Some(_) => self.describe(),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        if self.n == 0 {
            return Err(Error::config("the buffer of `prefetch` has room for 0 items; expected at least 1"));
        }
        Ok(())
    }

    fn spec(&self) -> Result<BatchSpec> {
        match self.function {
            None => self.input.spec(),
            Some(_) => Ok(specs_of_first(self)?.0),
        }
    }

    fn label_spec(&self) -> Result<BatchSpec> {
        match self.function {
            None => self.input.label_spec(),
            Some(_) => label_spec(self, &self.input),
        }
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        let over = || Prefetch { input: shuffle(&self.input), n: self.n, function: self.function.clone() };
        (self.function.is_none() || self.unit() == Unit::Row).then(|| Dataset::new(over()))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let is_placed = matches!(self.function, Some(Function::OfPlace(_)));
        let (given, n_before, below) = match is_placed {
            // A position of version 0.1.0 has no number of rows.
            true if from.n_words() != 1 => from.parts().map(|([given, n_before], [below])| (given, n_before, below))?,
            _ => from.parts().map(|([given], [below])| (given, 0, below))?,
        };
        let mut input = self.input.stage().open(cx, below)?;
        discard(&mut *input, Unit::Row, given)?;
        let (n_threads, n_ahead) = match self.function {
            None => (1, self.n),
            Some(_) => (cx.threads(), self.n.saturating_mul(cx.threads())),
        };
        let unit = self.unit();
        let n_rows_before = n_before.saturating_add(given);
        let place = Place { seed: cx.seed, epoch: cx.epoch, n_rows_before, unit };
        let idle = Some(Idle { input, function: self.function.clone(), place, n_threads, n_ahead });
        let before = below.clone();
        let n_before = is_placed.then_some(n_before);
        Ok(Box::new(PrefetchStream { idle, items: None, unit, piece: None, before, given, n_before }))
    }
}

/// The state before the first pull. That pull starts the threads and sets the size of the pieces.
struct Idle {
    input: Box<dyn Stream>,
    function: Option<Function>,
    /// The place of the first item.
    place: Place,
    n_threads: usize,
    n_ahead: usize,
}

impl Idle {
    fn start(self, unit: Unit, want: usize) -> Result<Items> {
        let Idle { mut input, function, mut place, n_threads, n_ahead } = self;
        let mut failed = false;
        let next = move || {
            if failed {
                return None;
            }
            let item = input.pull(want).transpose()?;
            failed = item.is_err();
            let own = place;
            let n_rows = item.as_ref().map_or(0, |item| item.batch.n_rows());
            place.n_rows_before = place.n_rows_before.saturating_add(n_rows as u64);
            Some(item.map(|item| (item, own)))
        };
        let work = move |item: Result<(StreamItem, Place)>| {
            let (item, place) = item?;
            let end = place.n_rows_before.saturating_add(item.batch.n_rows() as u64);
            let item = match &function {
                None => item,
                Some(Function::OfItem(function)) => apply(&**function, "map", unit, item)?,
                Some(Function::OfPlace(function)) => apply(&|batch| function(batch, place), "map", unit, item)?,
            };
            Ok(Piece { item, end })
        };
        let mut items = Ordered::new(n_threads, n_ahead, next, work);
        items.start()?;
        Ok(items)
    }
}

/// An item of the threads. A piece of several rows may be yielded in parts.
struct Piece {
    item: StreamItem,
    /// The number of rows of the input up to its end.
    end: u64,
}

type Items = Ordered<Result<(StreamItem, Place)>, Result<Piece>>;

struct PrefetchStream {
    idle: Option<Idle>,
    items: Option<Items>,
    unit: Unit,
    /// A piece of which some rows were not yielded.
    piece: Option<Piece>,
    /// The input's position before the piece.
    before: Position,
    /// Rows yielded since then. After resuming inside a piece, this includes the skipped rows.
    given: u64,
    /// The number of rows before the piece, if the function is told it.
    n_before: Option<u64>,
}

impl PrefetchStream {
    fn next(&mut self, want: usize) -> Result<Option<Piece>> {
        if let Some(idle) = self.idle.take() {
            self.items = Some(idle.start(self.unit, want)?);
        }
        let Some(items) = &mut self.items else { return Ok(None) };
        items.take()?.transpose()
    }

    fn position(&self) -> Position {
        let words: Vec<u64> = [self.given].into_iter().chain(self.n_before).collect();
        Position::new(words, [self.before.clone()])
    }
}

impl Stream for PrefetchStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let piece = match self.piece.take() {
            Some(piece) => piece,
            None => match self.next(want)? {
                Some(piece) => piece,
                None => return Ok(None),
            },
        };
        let Piece { item, end } = piece;
        let n_rows = item.batch.n_rows();
        if self.unit == Unit::Batch || n_rows <= want {
            (self.before, self.given) = (item.after, 0);
            self.n_before = self.n_before.map(|_| end);
            return Ok(Some(StreamItem { batch: item.batch, after: self.position() }));
        }
        let first: Batch = slice(&item.batch, 0..want)?;
        let rest = StreamItem { batch: slice(&item.batch, want..n_rows)?, after: item.after };
        self.piece = Some(Piece { item: rest, end });
        self.given = self.given.saturating_add(want as u64);
        Ok(Some(StreamItem { batch: first, after: self.position() }))
    }
}
