//! The interfaces of a pipeline: a [`Stage`] of the plan opens a [`Stream`], which hands out
//! [`StreamItem`]s.
//!
//! An *element* is a row before [`Dataset::batch`] and a batch after it. Rows travel together as
//! one [`Batch`] of as many rows as the taker asked for, so that a pipeline costs per piece and not
//! per row; no stage buffers rows to do so, and so each knows the position after every item.

use std::fmt;

use estimand_tensor::{Batch, BatchSpec, Error, Mode, Result};

use crate::{Dataset, Position};

/// The most rows that a stage asks for when the number is its own choice.
pub(crate) const PIECE: usize = 1024;

/// What one element of a stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// One row; an item holds one or more.
    Row,
    /// One batch; an item holds one.
    Batch,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Row => "rows",
            Unit::Batch => "batches",
        })
    }
}

/// A piece of a stream, and where the stream stands behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamItem {
    /// The rows.
    pub batch: Batch,
    /// The position from which the next item follows. The last one consumed is the truth: what was
    /// read ahead does not count.
    pub after: Position,
}

/// What is read for, by whom, and with which seed: what one input function needs to serve training
/// and evaluation, on one machine or many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InputContext {
    /// What the rows are for.
    pub mode: Mode,
    /// This worker's number, from 0: TensorFlow's `input_pipeline_id`.
    pub worker: usize,
    /// The number of workers that read together: TensorFlow's `num_input_pipelines`.
    pub n_workers: usize,
    /// The number of model replicas that a global batch is divided among: TensorFlow's
    /// `num_replicas_in_sync`.
    pub n_replicas: usize,
    /// The seed of the run.
    pub seed: u64,
    /// The pass over the data, from 0; [`Dataset::repeat`] counts it.
    pub epoch: u64,
    /// The threads that reading may use, 0 for one a core. What is read does not depend on it.
    pub n_threads: usize,
}

impl Default for InputContext {
    /// Training by one worker on all cores, seed 0.
    fn default() -> InputContext {
        InputContext { mode: Mode::Train, worker: 0, n_workers: 1, n_replicas: 1, seed: 0, epoch: 0, n_threads: 0 }
    }
}

impl InputContext {
    /// The batch size of one replica, if `global` is that of all together.
    ///
    /// ```
    /// # use estimand_data::InputContext;
    /// let cx = InputContext { n_replicas: 4, ..InputContext::default() };
    /// assert_eq!(cx.per_replica_batch_size(128)?, 32);
    /// assert!(cx.per_replica_batch_size(30).is_err());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn per_replica_batch_size(&self, global: usize) -> Result<usize> {
        if self.n_replicas == 0 || !global.is_multiple_of(self.n_replicas) {
            let message =
                format!("a global batch of {global} rows cannot be divided among {} replicas", self.n_replicas);
            return Err(Error::config(message).help("choose a multiple of the number of replicas"));
        }
        Ok(global / self.n_replicas)
    }

    /// The number of threads, found out if it is 0.
    pub fn threads(&self) -> usize {
        match self.n_threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.worker < self.n_workers {
            return Ok(());
        }
        Err(Error::config(format!("worker {} of {}; workers count from 0", self.worker, self.n_workers)))
    }
}

/// A source or a transformation: one node of the plan. It does nothing until it is opened.
pub trait Stage: Send + Sync {
    /// One line for [`Dataset::explain`]: name and arguments and, behind `: `, what else is worth
    /// knowing.
    fn describe(&self) -> String;

    /// What decides, with its inputs, the rows that a reader of this context gets:
    /// [`Dataset::fingerprint`] is made of it. By default what [`describe`](Stage::describe) says,
    /// whoever reads; empty if rows leave as they came.
    fn identity(&self, _cx: &InputContext) -> String {
        self.describe()
    }

    /// What a position must find again, lest its numbers mean other rows. By default
    /// [`describe`](Stage::describe) up to `: `.
    fn landmark(&self) -> String {
        let line = self.describe();
        line.split_once(": ").map_or(line.as_str(), |(name, _)| name).to_string()
    }

    /// What it reads from.
    fn inputs(&self) -> &[Dataset] {
        &[]
    }

    /// What its elements are. By default those of its first input; rows if it has none.
    fn unit(&self) -> Unit {
        self.inputs().first().map_or(Unit::Row, Dataset::unit)
    }

    /// Whether its own arguments make sense; called for every stage before anything is opened.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The features of every item. May read a header or a sample; [`Dataset::spec`] keeps the
    /// answer.
    fn spec(&self) -> Result<BatchSpec>;

    /// The labels of every item, as far as they are known without reading. By default, those of its
    /// first input.
    fn label_spec(&self) -> Result<BatchSpec> {
        self.inputs().first().map_or(Ok(BatchSpec::default()), Dataset::label_spec)
    }

    /// The names of the classes that the numbers of its labels stand for, where a source knows
    /// them. By default, those of the first input that knows some.
    fn classes(&self) -> Result<Option<Vec<String>>> {
        for input in self.inputs() {
            if let Some(classes) = input.classes()? {
                return Ok(Some(classes));
            }
        }
        Ok(None)
    }

    /// Access to rows by number, where that is cheap: then shuffling permutes all of them.
    fn indexed(&self) -> Option<&dyn Indexed> {
        None
    }

    /// This stage over shuffled input, if that is what shuffling its output should mean: it treats
    /// rows one by one.
    fn over_shuffled(&self, _shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        None
    }

    /// This stage without a last element that is not full. By default `None`: its elements have no
    /// size that it chooses.
    fn without_remainder(&self) -> Option<Dataset> {
        None
    }

    /// Whether workers get its elements in different orders, its inputs aside.
    fn differs_by_worker(&self) -> bool {
        false
    }

    /// Starts reading. [`Position::default`] is the beginning.
    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>>;
}

/// Rows that can be had in any order.
pub trait Indexed {
    /// The number of rows. May read them.
    fn n_rows(&self) -> Result<u64>;

    /// The rows of these numbers, in this order.
    fn gather(&self, rows: &[u64]) -> Result<Batch>;

    /// As [`gather`](Indexed::gather), in the memory of a batch that is no longer needed, where
    /// that is possible.
    fn gather_into(&self, rows: &[u64], _spare: Batch) -> Result<Batch> {
        self.gather(rows)
    }
}

/// An opened stage.
pub trait Stream: Send {
    /// The next item: of rows at least one and at most `want`, which is not 0; or one batch. `None`
    /// at the end.
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>>;

    /// Takes back an item of its own that nobody needs any more, for the next ones to be made in
    /// its memory. By default it is dropped.
    fn recycle(&mut self, _item: StreamItem) {}
}
