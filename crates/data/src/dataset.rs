//! [`Dataset`], the plan that users write, and [`Batches`], the iterator over its batches.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use estimand_tensor::{Array, Batch, BatchSpec, Feature, Result};

use crate::Position;
use crate::source::memory::Memory;
use crate::stage::{InputContext, Stage, Stream, Unit};
use crate::told::Told;
use crate::transform::batch::{Batched, NoRemainder};
use crate::transform::filter::Filter;
use crate::transform::map::{Map, MapCall};
use crate::transform::repeat::Repeat;
use crate::transform::roles::Roles;
use crate::transform::shard::Shard;
use crate::transform::shuffle::{NoShuffle, Shuffle};
use crate::transform::{skip::Skip, take::Take};

/// A lazy plan of an input pipeline. Cheap to clone.
///
/// The methods read nothing and return no `Result`. A mistake is reported by
/// [`spec`](Dataset::spec), or as the first and only item of the iteration.
///
/// An element is a row before [`batch`](Dataset::batch) and a batch after it. So `take(2)` takes
/// two rows before `batch` and two batches after it.
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
    /// Creates a dataset from named arrays in memory. Each row of the arrays is an example.
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

    /// Creates a dataset from one unnamed array in memory.
    pub fn from_array(array: Array) -> Dataset {
        Dataset::from_arrays([("", array)])
    }

    /// Creates a dataset from the rows of a batch, with their labels and weights.
    pub fn from_batch(batch: Batch) -> Dataset {
        Dataset::new(Memory::from_batch(batch))
    }

    /// Creates a plan that ends in a custom stage.
    pub fn new(stage: impl Stage + 'static) -> Dataset {
        Dataset { node: Arc::new(Node { stage: Box::new(stage), spec: OnceLock::new() }) }
    }
}

/// Transformations.
impl Dataset {
    /// Turns a feature into a label.
    pub fn label(&self, name: &str) -> Dataset {
        Dataset::new(Roles::label(self.clone(), name))
    }

    /// Turns a feature into the weights of the rows.
    pub fn weights(&self, name: &str) -> Dataset {
        Dataset::new(Roles::weights(self.clone(), name))
    }

    /// Joins `n` rows into a batch. The last batch has the remaining rows;
    /// [`drop_remainder`](Dataset::drop_remainder) leaves it out if it is not full.
    ///
    /// Ragged features stay ragged, as with tf.data's `ragged_batch`.
    /// [`padded_batch`](Dataset::padded_batch) makes them dense.
    pub fn batch(&self, n: usize) -> Dataset {
        Dataset::new(Batched { input: self.clone(), n, drop_remainder: false })
    }

    /// Leaves out the last element if it is not full. Call it right after
    /// [`batch`](Dataset::batch), [`padded_batch`](Dataset::padded_batch) or
    /// [`window`](Dataset::window).
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

    /// Shuffles the elements. The order depends only on `seed`, the run's seed and the epoch;
    /// [`reshuffle_each_iteration`](Dataset::reshuffle_each_iteration) makes it depend on `seed`
    /// alone.
    ///
    /// Rows in memory are permuted as a whole and need no buffer. In a stream, each block of
    /// `buffer_size` elements is permuted. A shuffle placed after `repeat`, `label`, `prefetch`, or
    /// `map` and `filter` of rows is applied to their input, so epochs are never mixed.
    pub fn shuffle(&self, buffer_size: usize, seed: u64) -> Dataset {
        self.shuffled(buffer_size, seed, false)
    }

    /// Shuffles like [`shuffle`](Dataset::shuffle), in a different order for every worker. Use it
    /// when each worker reads all of the data.
    ///
    /// The data is not divided among the workers, so an epoch of all workers together sees every
    /// row once per worker. [`shard_by_worker`](Dataset::shard_by_worker) is refused in the same
    /// plan, because orders that differ cannot be divided.
    pub fn shuffle_by_worker(&self, buffer_size: usize, seed: u64) -> Dataset {
        self.shuffled(buffer_size, seed, true)
    }

    fn shuffled(&self, buffer_size: usize, seed: u64, by_worker: bool) -> Dataset {
        let below = self.stage().over_shuffled(&|input| input.shuffled(buffer_size, seed, by_worker));
        below.unwrap_or_else(|| {
            Dataset::new(Shuffle { input: self.clone(), buffer_size, seed, by_worker, each_iteration: true })
        })
    }

    /// Whether a shuffle has a new order in every epoch and every run. By default, it has. Call it
    /// right after [`shuffle`](Dataset::shuffle).
    ///
    /// With `false`, the order depends only on the shuffle's seed: every epoch of training, every
    /// evaluation and every run see the same order. So `take` and `skip` after it divide the rows
    /// into parts that never mix. [`split`](Dataset::split) does that without a shuffle.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let rows = Dataset::from_array(Array::from([1i64, 2, 3, 4, 5])).shuffle(5, 7).reshuffle_each_iteration(false);
    /// let epochs: Vec<_> = rows.batch(5).repeat(2).iter().collect::<Result<_, estimand_tensor::Error>>()?;
    /// assert_eq!(epochs[0], epochs[1]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn reshuffle_each_iteration(&self, reshuffle: bool) -> Dataset {
        let own = self.stage().with_reshuffling(reshuffle);
        // A shuffle moves below stages that treat rows one by one.
        let below = || self.stage().over_shuffled(&|input| input.reshuffle_each_iteration(reshuffle));
        own.or_else(below).unwrap_or_else(|| Dataset::new(NoShuffle { input: self.clone() }))
    }

    /// Repeats all elements `n` times. Shuffled elements come in a different order each time.
    pub fn repeat(&self, n: u64) -> Dataset {
        Dataset::new(Repeat { input: self.clone(), n: Some(n) })
    }

    /// Repeats all elements without end.
    pub fn repeat_forever(&self) -> Dataset {
        Dataset::new(Repeat { input: self.clone(), n: None })
    }

    /// Keeps the first `n` elements.
    ///
    /// After a [`shuffle`](Dataset::shuffle), the first elements are others in every epoch, and a
    /// warning says so. To divide rows into parts, call [`split`](Dataset::split).
    pub fn take(&self, n: u64) -> Dataset {
        Dataset::new(Take { input: self.clone(), n, told: Told::default(), told_of_cache: Told::default() })
    }

    /// Skips the first `n` elements. After a [`shuffle`](Dataset::shuffle), a warning says that
    /// these are others in every epoch, as with [`take`](Dataset::take).
    pub fn skip(&self, n: u64) -> Dataset {
        Dataset::new(Skip { input: self.clone(), n, told: Told::default() })
    }

    /// Keeps every `n_shards`th element, starting with element `index`.
    ///
    /// Shuffle before `shard`, so that all shards see one order, and batch after it. Then batch t
    /// of all shards together is batch t of the whole dataset. The position is the same in every
    /// shard, so the number of shards may change when reading resumes.
    pub fn shard(&self, n_shards: usize, index: usize) -> Dataset {
        Dataset::new(Shard { input: self.clone(), shard: Some((n_shards, index)) })
    }

    /// Shards like [`shard`](Dataset::shard). The worker of the [`InputContext`] that opens the
    /// plan selects the shard.
    pub fn shard_by_worker(&self) -> Dataset {
        Dataset::new(Shard { input: self.clone(), shard: None })
    }

    /// Changes batches with a function. After [`batch`](Dataset::batch), the function gets each
    /// batch.
    ///
    /// Before `batch`, the function gets any number of rows and must return the same number. Each
    /// returned row must depend only on its own input row.
    pub fn map(&self, function: impl Fn(Batch) -> Result<Batch> + Send + Sync + 'static) -> Dataset {
        Dataset::new(Map { input: self.clone(), function: Arc::new(function), call: MapCall::Batch })
    }

    /// Keeps the rows for which a function returns `true`. The function gets any number of rows and
    /// returns one answer per row.
    ///
    /// After [`batch`](Dataset::batch), the batches become smaller, and a batch without rows is
    /// left out.
    pub fn filter(&self, function: impl Fn(&Batch) -> Result<Vec<bool>> + Send + Sync + 'static) -> Dataset {
        Dataset::new(Filter { input: self.clone(), function: Arc::new(function) })
    }
}

/// Properties of a plan.
impl Dataset {
    pub(crate) fn stage(&self) -> &dyn Stage {
        &*self.node.stage
    }

    /// The kind of element: rows or batches.
    pub fn unit(&self) -> Unit {
        self.stage().unit()
    }

    /// The features of every batch. The first call may read a sample.
    pub fn spec(&self) -> Result<BatchSpec> {
        self.node.spec.get_or_init(|| self.check().and_then(|()| self.stage().spec())).clone()
    }

    /// The labels of every batch, as far as they are known. May read a sample, as
    /// [`spec`](Dataset::spec) does.
    pub fn label_spec(&self) -> Result<BatchSpec> {
        self.stage().label_spec()
    }

    /// The names of the classes, indexed by label, where the source knows them: for an image
    /// folder, its sub-folders. May list a folder. Functions of rows may have changed the labels
    /// since.
    pub fn classes(&self) -> Result<Option<Vec<String>>> {
        self.stage().classes()
    }

    /// The files that rows are read from, sorted and each once. Sources in memory have none. May
    /// list a folder.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// let data = Dataset::from_text_lines(["b.txt", "a.txt"]).repeat(2).batch(8);
    /// assert_eq!(data.files()?, [std::path::PathBuf::from("a.txt"), "b.txt".into()]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = self.stage().files()?;
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Prints the plan: each stage, and below it the stages that it reads from.
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

    /// Whether the dataset certainly never ends. A generator may be endless without it being known.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_array(Array::from([1i64, 2, 3]));
    /// assert!(data.repeat_forever().batch(2).is_endless());
    /// assert!(!data.repeat_forever().batch(2).take(10).is_endless());
    /// ```
    pub fn is_endless(&self) -> bool {
        self.stage().is_endless()
    }

    pub(crate) fn reshuffles(&self) -> bool {
        self.stage().reshuffles()
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

    /// Iterates over all batches from the beginning, as one worker with seed 0. Without
    /// [`batch`](Dataset::batch), every batch has one row.
    pub fn iter(&self) -> Batches {
        self.iter_from(&InputContext::default(), &Position::default())
    }

    /// Iterates over the batches from a position on.
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

/// An iterator over the batches of a dataset that knows its position. Ends after an error.
pub struct Batches {
    stream: Option<Result<Box<dyn Stream>>>,
    position: Position,
    /// Identify the plan in positions.
    marks: Arc<[u32]>,
}

impl Batches {
    /// The position after the last batch. Save it in a checkpoint, and pass it to
    /// [`Dataset::iter_from`] to resume.
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
