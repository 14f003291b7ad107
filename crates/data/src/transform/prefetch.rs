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
/// piece, and the input's position before that piece. Items read ahead do not count.
pub(crate) struct Prefetch {
    pub(crate) input: Dataset,
    /// The largest number of items that may wait.
    pub(crate) n: usize,
    /// The function that the threads apply to items.
    pub(crate) function: Option<Arc<MapFn>>,
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
        Dataset::new(Prefetch { input: self.clone(), n: AHEAD_A_THREAD, function: Some(Arc::new(function)) })
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
        let ([given], [below]) = from.parts()?;
        let mut input = self.input.stage().open(cx, below)?;
        discard(&mut *input, Unit::Row, given)?;
        let (n_threads, n_ahead) = match self.function {
            None => (1, self.n),
            Some(_) => (cx.threads(), self.n.saturating_mul(cx.threads())),
        };
        let idle = Some(Idle { input, function: self.function.clone(), n_threads, n_ahead });
        Ok(Box::new(PrefetchStream { idle, items: None, unit: self.unit(), piece: None, before: below.clone(), given }))
    }
}

/// The state before the first pull. That pull starts the threads and sets the size of the pieces.
struct Idle {
    input: Box<dyn Stream>,
    function: Option<Arc<MapFn>>,
    n_threads: usize,
    n_ahead: usize,
}

impl Idle {
    fn start(self, unit: Unit, want: usize) -> Result<Ordered<Result<StreamItem>, Result<StreamItem>>> {
        let Idle { mut input, function, n_threads, n_ahead } = self;
        let mut failed = false;
        let next = move || {
            if failed {
                return None;
            }
            let item = input.pull(want).transpose()?;
            failed = item.is_err();
            Some(item)
        };
        let work = move |item: Result<StreamItem>| match &function {
            None => item,
            Some(function) => apply(&**function, "map", unit, item?),
        };
        let mut items = Ordered::new(n_threads, n_ahead, next, work);
        items.start()?;
        Ok(items)
    }
}

struct PrefetchStream {
    idle: Option<Idle>,
    items: Option<Ordered<Result<StreamItem>, Result<StreamItem>>>,
    unit: Unit,
    /// A piece of which some rows were not yielded.
    piece: Option<StreamItem>,
    /// The input's position before the piece.
    before: Position,
    /// Rows yielded since then. After resuming inside a piece, this includes the skipped rows.
    given: u64,
}

impl PrefetchStream {
    fn next(&mut self, want: usize) -> Result<Option<StreamItem>> {
        if let Some(idle) = self.idle.take() {
            self.items = Some(idle.start(self.unit, want)?);
        }
        let Some(items) = &mut self.items else { return Ok(None) };
        items.take()?.transpose()
    }

    fn position(&self) -> Position {
        Position::new([self.given], [self.before.clone()])
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
        let n_rows = piece.batch.n_rows();
        if self.unit == Unit::Batch || n_rows <= want {
            (self.before, self.given) = (piece.after, 0);
            return Ok(Some(StreamItem { batch: piece.batch, after: self.position() }));
        }
        let first: Batch = slice(&piece.batch, 0..want)?;
        self.piece = Some(StreamItem { batch: slice(&piece.batch, want..n_rows)?, after: piece.after });
        self.given = self.given.saturating_add(want as u64);
        Ok(Some(StreamItem { batch: first, after: self.position() }))
    }
}
