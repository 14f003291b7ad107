//! Reading ahead in a thread.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::{discard, slice};
use crate::stage::{InputContext, Item, Stage, Stream, Unit};
use crate::{Dataset, Position};

/// The position is how many rows of a piece were given, and the input's before that piece. What lies ready in the queue does
/// not count.
pub(crate) struct Prefetch {
    pub(crate) input: Dataset,
    pub(crate) n: usize,
}

impl Stage for Prefetch {
    fn describe(&self) -> String {
        format!("prefetch({})", self.n)
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        if self.n == 0 {
            return Err(Error::config("prefetch(0): expected room for at least one item"));
        }
        Ok(())
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        Some(Dataset::new(Prefetch { input: shuffle(&self.input), n: self.n }))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([given], [below]) = from.parts()?;
        let mut input = self.input.stage().open(cx, below)?;
        discard(&mut *input, Unit::Row, given)?;
        let source = Source::Idle { input, n: self.n };
        Ok(Box::new(PrefetchStream { source, unit: self.unit(), piece: None, before: below.clone(), given }))
    }
}

struct PrefetchStream {
    source: Source,
    unit: Unit,
    /// Rows of which not all are given.
    piece: Option<Item>,
    /// The input's position before the piece.
    before: Position,
    /// Rows given since then. More than the piece's own after starting within one.
    given: u64,
}

enum Source {
    /// The thread starts with the first pull, which tells how large the pieces should be.
    Idle {
        input: Box<dyn Stream>,
        n: usize,
    },
    Running {
        items: Receiver<Result<Item>>,
        thread: JoinHandle<()>,
    },
    Ended,
}

impl Source {
    fn next(&mut self, want: usize) -> Result<Option<Item>> {
        if let Source::Idle { .. } = self
            && let Source::Idle { input, n } = std::mem::replace(self, Source::Ended)
        {
            let (sender, items) = sync_channel(n);
            let thread = thread::Builder::new().name("prefetch".to_string());
            let thread = thread.spawn(move || read_ahead(input, want, &sender));
            let thread = thread.map_err(|e| Error::config(format!("cannot start the thread of `prefetch`: {e}")))?;
            *self = Source::Running { items, thread };
        }
        let Source::Running { items, .. } = self else { return Ok(None) };
        if let Ok(item) = items.recv() {
            return item.map(Some);
        }
        self.end();
        Ok(None)
    }

    /// Waits for the thread, which ends once nobody takes its items, and hands on its panic: without a thread it would have
    /// been the caller's.
    fn end(&mut self) {
        if let Source::Running { items, thread } = std::mem::replace(self, Source::Ended) {
            drop(items);
            if let Err(panic) = thread.join()
                && !thread::panicking()
            {
                resume_unwind(panic);
            }
        }
    }
}

fn read_ahead(mut input: Box<dyn Stream>, want: usize, items: &SyncSender<Result<Item>>) {
    while let Some(item) = input.pull(want).transpose() {
        let is_last = item.is_err();
        if items.send(item).is_err() || is_last {
            break;
        }
    }
}

impl Drop for PrefetchStream {
    fn drop(&mut self) {
        if let Source::Running { items, thread } = std::mem::replace(&mut self.source, Source::Ended) {
            drop(items);
            // A panic behind the last item that anybody took is nobody's.
            let _ = thread.join();
        }
    }
}

impl Stream for PrefetchStream {
    fn pull(&mut self, want: usize) -> Result<Option<Item>> {
        let piece = match self.piece.take() {
            Some(piece) => piece,
            None => match self.source.next(want)? {
                Some(piece) => piece,
                None => return Ok(None),
            },
        };
        let n_rows = piece.batch.n_rows();
        if self.unit == Unit::Batch || n_rows <= want {
            (self.before, self.given) = (piece.after, 0);
            return Ok(Some(Item { batch: piece.batch, after: self.position() }));
        }
        let first: Batch = slice(&piece.batch, 0..want)?;
        self.piece = Some(Item { batch: slice(&piece.batch, want..n_rows)?, after: piece.after });
        self.given = self.given.saturating_add(want as u64);
        Ok(Some(Item { batch: first, after: self.position() }))
    }
}

impl PrefetchStream {
    fn position(&self) -> Position {
        Position::new([self.given], [self.before.clone()])
    }
}
