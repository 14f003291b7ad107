//! Repeats the elements, epoch after epoch.

use estimand_tensor::{BatchSpec, Error, Result};

use crate::stage::{InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

/// The largest number of empty epochs in a row. A later epoch may have elements, because shuffling
/// differs, but an endless search would look like a hang.
const MAX_EMPTY: u64 = 16;

/// The stage of `repeat`. The position holds the epoch, and the input's position in it.
pub(crate) struct Repeat {
    pub(crate) input: Dataset,
    /// `None` repeats without end.
    pub(crate) n: Option<u64>,
}

impl Stage for Repeat {
    fn describe(&self) -> String {
        match self.n {
            Some(n) => format!("repeat({n})"),
            None => "repeat for ever".to_string(),
        }
    }

    fn landmark(&self) -> String {
        "repeat".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    /// Elements that are counted after it are counted over epochs, not chosen in each of them.
    fn reshuffles(&self) -> bool {
        false
    }

    fn is_endless(&self) -> bool {
        self.n.is_none() || (self.n != Some(0) && self.input.is_endless())
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        Some(Dataset::new(Repeat { input: shuffle(&self.input), n: self.n }))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([epoch], [below]) = from.parts()?;
        let mut stream = RepeatStream {
            input: self.input.clone(),
            n: self.n,
            cx: *cx,
            epoch,
            current: None,
            n_empty: 0,
            found: true,
            spare: Position::default(),
        };
        if self.n.is_none_or(|n| epoch < n) {
            stream.current = Some(stream.open_epoch(below)?);
            stream.found = !below.is_beginning();
        }
        Ok(Box::new(stream))
    }
}

struct RepeatStream {
    input: Dataset,
    n: Option<u64>,
    cx: InputContext,
    epoch: u64,
    /// The stream of the current epoch; `None` after the last.
    current: Option<Box<dyn Stream>>,
    /// The number of empty epochs in a row before this one.
    n_empty: u64,
    /// Whether this epoch had an element.
    found: bool,
    spare: Position,
}

impl RepeatStream {
    fn open_epoch(&self, from: &Position) -> Result<Box<dyn Stream>> {
        // A repeat inside a repeat continues the count of epochs, so no two passes get the same
        // shuffle.
        let epoch = self.cx.epoch.wrapping_mul(self.n.unwrap_or(1)).wrapping_add(self.epoch);
        self.input.stage().open(&InputContext { epoch, ..self.cx }, from)
    }
}

impl Stream for RepeatStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        while let Some(current) = &mut self.current {
            if let Some(StreamItem { batch, after }) = current.pull(want)? {
                (self.found, self.n_empty) = (true, 0);
                let after = std::mem::take(&mut self.spare).renew(self.epoch, Some(after));
                return Ok(Some(StreamItem { batch, after }));
            }
            if !self.found {
                self.n_empty += 1;
            }
            (self.epoch, self.found) = (self.epoch.saturating_add(1), false);
            self.current = None;
            if self.n.is_none_or(|n| self.epoch < n) {
                if self.n_empty >= MAX_EMPTY {
                    let message = format!("there is nothing to repeat: {MAX_EMPTY} epochs in a row had no elements");
                    return Err(Error::config(message).help("check the filters and the files before `repeat`"));
                }
                self.current = Some(self.open_epoch(&Position::default())?);
            }
        }
        Ok(None)
    }

    fn recycle(&mut self, mut item: StreamItem) {
        if let Some(current) = &mut self.current {
            let after = item.after.take_input();
            current.recycle(StreamItem { batch: item.batch, after });
        }
        self.spare = item.after;
    }
}
