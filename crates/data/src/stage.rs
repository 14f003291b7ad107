//! The interfaces of a pipeline: a [`Stage`] of the plan opens a [`Stream`], which yields
//! [`StreamItem`]s.
//!
//! An *element* is a row before [`Dataset::batch`] and a batch after it. Rows are passed on in
//! pieces: one [`Batch`] with up to as many rows as the caller asked for. So a pipeline costs time
//! per piece and not per row. Stages do not buffer rows for this, and so each knows the position
//! after every item.

use std::fmt;
use std::path::PathBuf;

use estimand_tensor::{Batch, BatchSpec, Error, Mode, Result};

use crate::{Dataset, Placeholders, Position};

/// The largest number of rows that a stage asks for when the choice is its own.
pub(crate) const PIECE: usize = 1024;

/// The kind of element that a stream yields.
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

/// A piece of a stream, and the position of the stream after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamItem {
    /// The rows.
    pub batch: Batch,
    /// The position where the next item begins. The position of the last item consumed is the valid
    /// one: items read ahead do not count.
    pub after: Position,
}

/// The context of one reader: its purpose, its worker and its seed. With it, one input function can
/// serve training and evaluation, on one machine or many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InputContext {
    /// The purpose of the rows: training, evaluation or prediction.
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
    /// The number of threads that reading may use; 0 means one per core. It does not affect the
    /// rows.
    pub n_threads: usize,
}

impl Default for InputContext {
    /// Training by one worker on all cores, seed 0.
    fn default() -> InputContext {
        InputContext { mode: Mode::Train, worker: 0, n_workers: 1, n_replicas: 1, seed: 0, epoch: 0, n_threads: 0 }
    }
}

impl InputContext {
    /// The batch size of one replica, for the batch size `global` of all replicas together.
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

    /// The number of threads, with 0 replaced by the number of cores.
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
        Err(Error::config(format!(
            "the worker is number {}, but there are {} workers, counted from 0",
            self.worker, self.n_workers
        )))
    }
}

/// A source or a transformation: one node of the plan. It does nothing until it is opened.
pub trait Stage: Send + Sync {
    /// One line for [`Dataset::explain`]: the name, the arguments and, after `: `, other useful
    /// facts.
    fn describe(&self) -> String;

    /// All that decides, together with its inputs, the rows that a reader with this context gets.
    /// [`Dataset::fingerprint`] is computed from it. By default, the text of
    /// [`describe`](Stage::describe) for every reader. Empty if the stage does not change rows.
    fn identity(&self, _cx: &InputContext) -> String {
        self.describe()
    }

    /// The fields that a position depends on. If they change, the position is refused. By default,
    /// [`describe`](Stage::describe) up to `: `.
    fn landmark(&self) -> String {
        let line = self.describe();
        line.split_once(": ").map_or(line.as_str(), |(name, _)| name).to_string()
    }

    /// The datasets that it reads from.
    fn inputs(&self) -> &[Dataset] {
        &[]
    }

    /// The files that it reads rows from, sorted by name. May list a folder. By default, the files
    /// of its inputs.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for input in self.inputs() {
            files.extend(input.stage().files()?);
        }
        Ok(files)
    }

    /// The kind of its elements. By default, the kind of its first input; rows if it has none.
    fn unit(&self) -> Unit {
        self.inputs().first().map_or(Unit::Row, Dataset::unit)
    }

    /// Checks its own arguments. Called for every stage before anything is opened.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The features of every item. May read a header or a sample; [`Dataset::spec`] caches the
    /// result.
    fn spec(&self) -> Result<BatchSpec>;

    /// The labels of every item, as far as they are known. May read a sample. By default, the
    /// labels of its first input.
    fn label_spec(&self) -> Result<BatchSpec> {
        self.inputs().first().map_or(Ok(BatchSpec::default()), Dataset::label_spec)
    }

    /// The names of the classes, indexed by label, where a source knows them. By default, the names
    /// from the first input that knows some.
    fn classes(&self) -> Result<Option<Vec<String>>> {
        for input in self.inputs() {
            if let Some(classes) = input.classes()? {
                return Ok(Some(classes));
            }
        }
        Ok(None)
    }

    /// The placeholders that this stage itself reads; they are fed later. By default, none.
    fn placeholders(&self) -> Option<&Placeholders> {
        None
    }

    /// Access to rows by index, where it is cheap. Shuffling then permutes all rows.
    fn indexed(&self) -> Option<&dyn Indexed> {
        None
    }

    /// Applies the shuffle to the input of this stage instead of its output. Stages that treat rows
    /// one by one do so. By default `None`.
    fn over_shuffled(&self, _shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        None
    }

    /// This stage without a last element that is not full. By default `None`: the stage does not
    /// choose the size of its elements.
    fn without_remainder(&self) -> Option<Dataset> {
        None
    }

    /// Whether it yields other elements first in another epoch or another run, because something
    /// shuffles them. By default, whether one of its inputs does.
    fn reshuffles(&self) -> bool {
        self.inputs().iter().any(Dataset::reshuffles)
    }

    /// Whether it certainly never ends. By default, whether one of its inputs never ends.
    fn is_endless(&self) -> bool {
        self.inputs().iter().any(Dataset::is_endless)
    }

    /// Whether it holds or reads a cache that no pass has completed yet. By default, whether one of
    /// its inputs does.
    fn has_incomplete_cache(&self) -> bool {
        self.inputs().iter().any(|input| input.stage().has_incomplete_cache())
    }

    /// This stage, or one that it was moved to, with the same order in every epoch or with a new
    /// one. By default `None`: the stage does not shuffle.
    fn with_reshuffling(&self, _each_iteration: bool) -> Option<Dataset> {
        None
    }

    /// Whether this stage itself gives workers different orders. Its inputs are not considered.
    fn differs_by_worker(&self) -> bool {
        false
    }

    /// Starts reading. [`Position::default`] is the beginning.
    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>>;
}

/// Rows that can be read in any order, by index.
pub trait Indexed {
    /// The number of rows. May read them.
    fn n_rows(&self) -> Result<u64>;

    /// Returns the rows with these indices, in this order.
    fn gather(&self, rows: &[u64]) -> Result<Batch>;

    /// Like [`gather`](Indexed::gather), but reuses the memory of a batch that is no longer needed,
    /// where that is possible.
    fn gather_into(&self, rows: &[u64], _spare: Batch) -> Result<Batch> {
        self.gather(rows)
    }
}

/// An opened stage.
pub trait Stream: Send {
    /// Returns the next item, or `None` at the end. An item is one batch, or at least one and at
    /// most `want` rows; `want` is not 0.
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>>;

    /// Takes back an item of this stream that is no longer needed, so that the next items can reuse
    /// its memory. By default, the item is dropped.
    fn recycle(&mut self, _item: StreamItem) {}
}
