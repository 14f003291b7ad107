//! Shuffles elements. The random order is a function of (seed, epoch) alone.
//!
//! Rows that can be read by index are permuted by a keyed bijection, computed index by index. A
//! stream is permuted in blocks; to resume inside a block, the block is read again.

use estimand_tensor::random::{self, Key};
use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::{collect, gather};
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

pub(crate) struct Shuffle {
    pub(crate) input: Dataset,
    pub(crate) buffer_size: usize,
    pub(crate) seed: u64,
    /// Whether each worker has its own order.
    pub(crate) by_worker: bool,
    /// Whether each epoch of each run has its own order.
    pub(crate) each_iteration: bool,
}

impl Stage for Shuffle {
    fn describe(&self) -> String {
        let Shuffle { buffer_size: n, seed, .. } = self;
        let by_worker = if self.by_worker { ", by worker" } else { "" };
        let by_worker = format!("{by_worker}{}", if self.each_iteration { "" } else { ", the same in every epoch" });
        match (self.input.stage().indexed(), self.unit()) {
            (Some(_), _) => format!("shuffle(seed {seed}{by_worker}): a permutation of all rows"),
            (None, unit) => {
                let what = if unit == Unit::Row { "rows" } else { "batches" };
                format!("shuffle({n}, seed {seed}{by_worker}): blocks of {n} {what}; going on reads up to {n} again")
            }
        }
    }

    fn identity(&self, cx: &InputContext) -> String {
        let worker = if self.by_worker { format!(", worker {}", cx.worker) } else { String::new() };
        let run = if self.each_iteration { format!(", in a run of seed {}", cx.seed) } else { String::new() };
        format!("{}{run}{worker}", self.describe())
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        if self.buffer_size == 0 {
            return Err(Error::config("the buffer of `shuffle` has room for 0 elements; expected at least 1"));
        }
        Ok(())
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn reshuffles(&self) -> bool {
        self.each_iteration || self.input.reshuffles()
    }

    fn with_reshuffling(&self, each_iteration: bool) -> Option<Dataset> {
        let Shuffle { buffer_size, seed, by_worker, .. } = *self;
        Some(Dataset::new(Shuffle { input: self.input.clone(), buffer_size, seed, by_worker, each_iteration }))
    }

    fn differs_by_worker(&self) -> bool {
        self.by_worker
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let (run, epoch) = if self.each_iteration { (cx.seed, cx.epoch) } else { (0, 0) };
        let seed = match self.by_worker {
            false => self.seed.to_string(),
            true => format!("{}/worker {}", self.seed, cx.worker),
        };
        if let Some(rows) = self.input.stage().indexed() {
            let ([next], []) = from.parts()?;
            let n_rows = rows.n_rows()?;
            if next > n_rows {
                let message = format!("the position is after row {next}, but the shuffled arrays have {n_rows} rows");
                return Err(Error::config(message).help("resume with the data that the position was taken from"));
            }
            let key = Key::new(run, &format!("shuffle/{seed}"));
            let order = random::Stream::new(key, epoch).permutation(n_rows);
            return Ok(Box::new(Permuted {
                input: self.input.clone(),
                order,
                next,
                n_rows,
                numbers: Vec::new(),
                spare: None,
            }));
        }
        let ([block, given], [below]) = from.parts()?;
        Ok(Box::new(Blocks {
            input: self.input.stage().open(cx, below)?,
            unit: self.unit(),
            size: self.buffer_size,
            key: Key::new(run, &format!("shuffle/{seed}/{epoch}")),
            block,
            began: below.clone(),
            given,
            elements: None,
        }))
    }
}

/// The mistake of `reshuffle_each_iteration` without a shuffle. It is reported when the plan is
/// checked.
pub(crate) struct NoShuffle {
    pub(crate) input: Dataset,
}

impl Stage for NoShuffle {
    fn describe(&self) -> String {
        "reshuffle_each_iteration".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        let before = self.input.stage().describe();
        Err(Error::config(format!("`reshuffle_each_iteration` was called after `{before}`, which does not shuffle"))
            .help("call it right after `shuffle`"))
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        self.input.stage().open(cx, from)
    }
}

/// A stream of permuted rows. The position is the number of rows yielded.
struct Permuted {
    input: Dataset,
    order: random::Permutation,
    next: u64,
    n_rows: u64,
    /// The row numbers of the current item.
    numbers: Vec<u64>,
    spare: Option<StreamItem>,
}

impl Stream for Permuted {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let end = self.next.saturating_add(want as u64).min(self.n_rows);
        let Some(input) = self.input.stage().indexed().filter(|_| self.next < end) else { return Ok(None) };
        self.numbers.resize((end - self.next) as usize, 0);
        self.order.fill(self.next, &mut self.numbers);
        let StreamItem { batch, after } = self.spare.take().unwrap_or_default();
        let batch = input.gather_into(&self.numbers, batch)?;
        self.next = end;
        Ok(Some(StreamItem { batch, after: after.renew(end, None) }))
    }

    fn recycle(&mut self, item: StreamItem) {
        self.spare = Some(item);
    }
}

/// A stream of shuffled blocks. The position holds the number of the block, the elements yielded of
/// it, and the input's position before the block.
struct Blocks {
    input: Box<dyn Stream>,
    unit: Unit,
    size: usize,
    key: Key,
    block: u64,
    began: Position,
    given: u64,
    elements: Option<Block>,
}

struct Block {
    elements: Elements,
    order: Vec<u64>,
    /// The input's position before the next block.
    after: Position,
}

enum Elements {
    Rows(Box<Batch>),
    Batches(Vec<Batch>),
}

impl Blocks {
    fn fill(&mut self) -> Result<Option<Block>> {
        let (elements, n, after) = match self.unit {
            Unit::Row => {
                let Some(StreamItem { batch, after }) = collect(&mut *self.input, self.size)? else { return Ok(None) };
                let n = batch.n_rows();
                (Elements::Rows(Box::new(batch)), n, after)
            }
            Unit::Batch => {
                let (mut batches, mut after) = (Vec::new(), None);
                while batches.len() < self.size {
                    let Some(item) = self.input.pull(1)? else { break };
                    batches.push(item.batch);
                    after = Some(item.after);
                }
                let Some(after) = after else { return Ok(None) };
                let n = batches.len();
                (Elements::Batches(batches), n, after)
            }
        };
        let mut order = vec![0; n];
        random::Stream::new(self.key, self.block).fill_permutation(&mut order);
        Ok(Some(Block { elements, order, after }))
    }
}

impl Stream for Blocks {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        if self.elements.is_none() {
            self.elements = self.fill()?;
        }
        let Some(block) = &self.elements else { return Ok(None) };
        let given = usize::try_from(self.given).ok().filter(|&given| given < block.order.len()).ok_or_else(|| {
            Error::config(format!(
                "the position is after element {} of a block, but the block has {} elements",
                self.given,
                block.order.len()
            ))
            .help("resume with the plan and the data that the position was taken from")
        })?;
        let (batch, end) = match &block.elements {
            Elements::Rows(rows) => {
                let end = given.saturating_add(want).min(block.order.len());
                (gather(rows, &block.order[given..end])?, end)
            }
            Elements::Batches(batches) => (batches[block.order[given] as usize].clone(), given + 1),
        };
        if end < block.order.len() {
            self.given = end as u64;
        } else {
            self.began = block.after.clone();
            (self.block, self.given, self.elements) = (self.block.wrapping_add(1), 0, None);
        }
        Ok(Some(StreamItem { batch, after: Position::new([self.block, self.given], [self.began.clone()]) }))
    }
}
