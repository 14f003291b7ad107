//! Keeps every n-th element, for one of n workers.

use estimand_tensor::{BatchSpec, Error, Result};

use crate::rows::{collect, gather};
use crate::stage::{InputContext, PIECE, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

/// The stage of `shard`. It reads whole rounds of one element per worker. So its position is that
/// of its input and the same for all workers, and their number may change when reading resumes.
pub(crate) struct Shard {
    pub(crate) input: Dataset,
    /// The number of shards and the index of this one; `None` takes both from the context.
    pub(crate) shard: Option<(usize, usize)>,
}

impl Stage for Shard {
    fn describe(&self) -> String {
        match self.shard {
            Some((n, index)) => format!("shard({n}, {index})"),
            None => "shard by worker".to_string(),
        }
    }

    fn identity(&self, cx: &InputContext) -> String {
        match self.shard {
            Some(_) => self.describe(),
            None => format!("shard({}, {})", cx.n_workers, cx.worker),
        }
    }

    fn landmark(&self) -> String {
        "shard".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        match self.shard {
            Some((n, index)) if index >= n => Err(Error::config(format!(
                "`shard({n}, {index})` was given the index {index}; expected less than the number of shards, {n}"
            ))),
            None if self.input.is_shuffled_by_worker() => Err(Error::config(
                "`shard_by_worker` follows `shuffle_by_worker`, so every worker would see the rows in another order",
            )
            .help("use `shuffle` before it, or leave `shard_by_worker` out and let every worker read all rows")),
            _ => Ok(()),
        }
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let (n, index) = self.shard.unwrap_or((cx.n_workers, cx.worker));
        Ok(Box::new(ShardStream { input: self.input.stage().open(cx, from)?, unit: self.unit(), n, index }))
    }
}

struct ShardStream {
    input: Box<dyn Stream>,
    unit: Unit,
    n: usize,
    index: usize,
}

impl Stream for ShardStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        match self.unit {
            Unit::Row => self.rows(want),
            Unit::Batch => self.batch(),
        }
    }
}

impl ShardStream {
    fn rows(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let n_rounds = want.min((PIECE / self.n).max(1));
        let Some(StreamItem { batch, after }) = collect(&mut *self.input, n_rounds.saturating_mul(self.n))? else {
            return Ok(None);
        };
        let mine: Vec<u64> = (self.index..batch.n_rows()).step_by(self.n).map(|row| row as u64).collect();
        // Only the last round can be too short to have a row for every worker.
        if mine.is_empty() {
            return Ok(None);
        }
        Ok(Some(StreamItem { batch: gather(&batch, &mine)?, after }))
    }

    fn batch(&mut self) -> Result<Option<StreamItem>> {
        let (mut mine, mut last) = (None, None);
        for i in 0..self.n {
            let Some(StreamItem { batch, after }) = self.input.pull(1)? else { break };
            last = Some(after);
            if i == self.index {
                mine = Some(batch);
            }
        }
        Ok(mine.zip(last).map(|(batch, after)| StreamItem { batch, after }))
    }
}
