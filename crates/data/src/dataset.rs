//! [`Dataset`], the plan that users write, and [`Batches`], the iterator over it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use estimand_tensor::{Array, Batch, BatchSpec, Feature, Result};

use crate::Position;
use crate::source::memory::Memory;
use crate::stage::{InputContext, Stage, Stream, Unit};
use crate::transform::batch::{Batched, NoRemainder};
use crate::transform::filter::Filter;
use crate::transform::map::Map;
use crate::transform::repeat::Repeat;
use crate::transform::roles::Roles;
use crate::transform::shard::Shard;
use crate::transform::shuffle::Shuffle;
use crate::transform::{skip::Skip, take::Take};

/// A lazy plan of where batches come from. Cheap to clone.
///
/// Its methods read nothing and return no `Result`: a mistake comes back from
/// [`spec`](Dataset::spec), or as the first and only item of the iteration.
///
/// An element is a row before [`batch`](Dataset::batch) and a batch after it: `take(2)` takes two
/// rows there and two batches here.
#[derive(Clone)]
#[must_use]
pub struct Dataset {
    node: Arc<Node>,
}

struct Node {
    stage: Box<dyn Stage>,
    spec: OnceLock<Result<BatchSpec>>,
}

/// Sources.
impl Dataset {
    /// Named arrays in memory, whose rows are the examples.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_arrays([("age", Array::from([39i64, 50])), ("rich", Array::from([0i64, 1]))]).label("rich");
    /// let row = data.iter().next().unwrap()?;
    /// assert_eq!(row.labels()["rich"], Array::from([0i64]).into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn from_arrays<N: AsRef<str>, F: Into<Feature>>(features: impl IntoIterator<Item = (N, F)>) -> Dataset {
        Dataset::new(Memory::from_arrays(features))
    }

    /// One unnamed array in memory.
    pub fn from_array(array: Array) -> Dataset {
        Dataset::from_arrays([("", array)])
    }

    /// The rows of a batch, with its labels and weights.
    pub fn from_batch(batch: Batch) -> Dataset {
        Dataset::new(Memory::from_batch(batch))
    }

    /// The plan that ends in a stage of one's own.
    pub fn new(stage: impl Stage + 'static) -> Dataset {
        Dataset { node: Arc::new(Node { stage: Box::new(stage), spec: OnceLock::new() }) }
    }
}

/// Transformations.
impl Dataset {
    /// Makes a feature a label.
    pub fn label(&self, name: &str) -> Dataset {
        Dataset::new(Roles::label(self.clone(), name))
    }

    /// Makes a feature the weights of the rows.
    pub fn weights(&self, name: &str) -> Dataset {
        Dataset::new(Roles::weights(self.clone(), name))
    }

    /// Joins `n` rows to a batch. The last batch has the rows that are left;
    /// [`drop_remainder`](Dataset::drop_remainder) leaves it out if it is not full.
    ///
    /// Ragged features stay ragged, as tf.data's `ragged_batch` has them;
    /// [`padded_batch`](Dataset::padded_batch) makes them dense.
    pub fn batch(&self, n: usize) -> Dataset {
        Dataset::new(Batched { input: self.clone(), n, drop_remainder: false })
    }

    /// Leaves out the last element if it is not full. Stands right after [`batch`](Dataset::batch),
    /// [`padded_batch`](Dataset::padded_batch) or [`window`](Dataset::window).
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let rows = Dataset::from_array(Array::from([1i64, 2, 3, 4, 5]));
    /// assert_eq!(rows.batch(2).iter().count(), 3);
    /// assert_eq!(rows.batch(2).drop_remainder().iter().count(), 2);
    /// ```
    pub fn drop_remainder(&self) -> Dataset {
        self.stage().without_remainder().unwrap_or_else(|| Dataset::new(NoRemainder { input: self.clone() }))
    }

    /// Puts the elements into a random order that depends on `seed`, the run's seed and the epoch
    /// alone.
    ///
    /// Rows in memory are permuted as a whole, at the cost of no memory. Of a stream, each block of
    /// `buffer_size` elements is permuted. Shuffling behind `repeat`, `label`, `prefetch`, or `map`
    /// and `filter` of rows shuffles what they read: epochs are never mixed.
    pub fn shuffle(&self, buffer_size: usize, seed: u64) -> Dataset {
        self.shuffled(buffer_size, seed, false)
    }

    /// [`shuffle`](Dataset::shuffle) with another order for every worker, for workers that each
    /// read all of the data.
    ///
    /// This is the other way to feed several workers: nothing is divided, so each needs no more
    /// than its own order, and an epoch of all together sees every row as often as there are
    /// workers. With [`shard_by_worker`](Dataset::shard_by_worker) it is refused: orders that
    /// differ cannot be divided.
    pub fn shuffle_by_worker(&self, buffer_size: usize, seed: u64) -> Dataset {
        self.shuffled(buffer_size, seed, true)
    }

    fn shuffled(&self, buffer_size: usize, seed: u64, by_worker: bool) -> Dataset {
        let below = self.stage().over_shuffled(&|input| input.shuffled(buffer_size, seed, by_worker));
        below.unwrap_or_else(|| Dataset::new(Shuffle { input: self.clone(), buffer_size, seed, by_worker }))
    }

    /// All elements `n` times. What is shuffled is in another order each time.
    pub fn repeat(&self, n: u64) -> Dataset {
        Dataset::new(Repeat { input: self.clone(), n: Some(n) })
    }

    /// All elements again and again.
    pub fn repeat_forever(&self) -> Dataset {
        Dataset::new(Repeat { input: self.clone(), n: None })
    }

    /// The first `n` elements.
    pub fn take(&self, n: u64) -> Dataset {
        Dataset::new(Take { input: self.clone(), n })
    }

    /// All but the first `n` elements.
    pub fn skip(&self, n: u64) -> Dataset {
        Dataset::new(Skip { input: self.clone(), n })
    }

    /// Every `n_shards`th element from number `index` on.
    ///
    /// Shuffle before, so that all shards see one order, and batch behind: batch t of all shards
    /// together is then batch t of the whole, and the position is the same in every shard, so that
    /// their number may change when reading goes on.
    pub fn shard(&self, n_shards: usize, index: usize) -> Dataset {
        Dataset::new(Shard { input: self.clone(), shard: Some((n_shards, index)) })
    }

    /// [`shard`](Dataset::shard) by the worker of the [`InputContext`] that the plan is opened
    /// with.
    pub fn shard_by_worker(&self) -> Dataset {
        Dataset::new(Shard { input: self.clone(), shard: None })
    }

    /// Changes batches by a function. Behind [`batch`](Dataset::batch) it gets each batch.
    ///
    /// Before, it gets any number of rows and must return as many, each a function of the row it
    /// came from.
    pub fn map(&self, function: impl Fn(Batch) -> Result<Batch> + Send + Sync + 'static) -> Dataset {
        Dataset::new(Map { input: self.clone(), function: Arc::new(function) })
    }

    /// Keeps the rows for which a function says `true`: it gets any number of rows and returns as
    /// many answers.
    ///
    /// Behind [`batch`](Dataset::batch) the batches become smaller; one without rows is left out.
    pub fn filter(&self, function: impl Fn(&Batch) -> Result<Vec<bool>> + Send + Sync + 'static) -> Dataset {
        Dataset::new(Filter { input: self.clone(), function: Arc::new(function) })
    }
}

/// What can be asked of a plan.
impl Dataset {
    pub(crate) fn stage(&self) -> &dyn Stage {
        &*self.node.stage
    }

    /// What its elements are.
    pub fn unit(&self) -> Unit {
        self.stage().unit()
    }

    /// The features of every batch. May read a sample, the first time.
    pub fn spec(&self) -> Result<BatchSpec> {
        self.node.spec.get_or_init(|| self.check().and_then(|()| self.stage().spec())).clone()
    }

    /// The labels of every batch, as far as the plan tells without reading.
    pub fn label_spec(&self) -> Result<BatchSpec> {
        self.stage().label_spec()
    }

    /// The names of the classes that the numbers of labels stand for, where the source knows them:
    /// the folders of an image folder. May list a folder. Functions of rows may have changed the
    /// labels since.
    pub fn classes(&self) -> Result<Option<Vec<String>>> {
        self.stage().classes()
    }

    /// The plan as text: each stage above what it reads from.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_array(Array::from([1i64, 2, 3])).repeat(2).shuffle(100, 7).batch(2).drop_remainder();
    /// assert_eq!(data.explain(), "\
    /// batch(2, drop_remainder)
    ///   repeat(2)
    ///     shuffle(seed 7): a permutation of all rows
    ///       arrays: 3 rows of ``
    /// ");
    /// ```
    pub fn explain(&self) -> String {
        let mut text = String::new();
        self.write_plan(0, &mut text);
        text
    }

    fn write_plan(&self, depth: usize, out: &mut String) {
        out.push_str(&"  ".repeat(depth));
        out.push_str(&self.stage().describe());
        out.push('\n');
        self.stage().inputs().iter().for_each(|input| input.write_plan(depth + 1, out));
    }

    pub(crate) fn is_shuffled_by_worker(&self) -> bool {
        self.stage().differs_by_worker() || self.stage().inputs().iter().any(Dataset::is_shuffled_by_worker)
    }

    fn check(&self) -> Result<()> {
        self.stage().inputs().iter().try_for_each(Dataset::check)?;
        self.stage().check()
    }

    /// Starts reading from a position.
    pub fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        cx.check()?;
        self.check()?;
        self.check_position(from)?;
        self.stage().open(cx, from)
    }

    /// All batches from the beginning, as one worker with seed 0; without
    /// [`batch`](Dataset::batch), batches of one row.
    pub fn iter(&self) -> Batches {
        self.iter_from(&InputContext::default(), &Position::default())
    }

    /// The batches from a position on.
    pub fn iter_from(&self, cx: &InputContext, from: &Position) -> Batches {
        Batches { stream: Some(self.open(cx, from)), position: from.clone(), marks: self.marks() }
    }
}

impl IntoIterator for &Dataset {
    type Item = Result<Batch>;
    type IntoIter = Batches;

    fn into_iter(self) -> Batches {
        self.iter()
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.explain())
    }
}

/// The batches of a dataset, and where the reader of them stands. Ends after an error.
pub struct Batches {
    stream: Option<Result<Box<dyn Stream>>>,
    position: Position,
    /// What positions say of the plan.
    marks: Arc<[u32]>,
}

impl Batches {
    /// The position after the last batch: a checkpoint keeps it, and [`Dataset::iter_from`] goes on
    /// from it.
    pub fn position(&self) -> &Position {
        &self.position
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        let pulled = match self.stream.as_mut()? {
            Ok(stream) => stream.pull(1),
            Err(error) => Err(error.clone()),
        };
        match pulled {
            Ok(Some(item)) => {
                self.position = item.after.of_plan(self.marks.clone());
                Some(Ok(item.batch))
            }
            Ok(None) => {
                self.stream = None;
                None
            }
            Err(error) => {
                self.stream = None;
                Some(Err(error))
            }
        }
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("position", &self.position).finish_non_exhaustive()
    }
}
