//! Batches rows of similar length.

use std::collections::VecDeque;

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::{concat, gather, slice};
use crate::stage::{InputContext, PIECE, Stage, Stream, StreamItem, Unit};
use crate::transform::buckets::Buckets;
use crate::{Dataset, Position};

impl Dataset {
    /// Batches rows of similar length, so that little padding is needed. A bucket yields a batch
    /// when it is full. At the end, the other buckets yield their rows, shortest rows first. The
    /// order is tf.data's.
    ///
    /// ```
    /// # use estimand_data::{Buckets, Dataset};
    /// # use estimand_tensor::{Array, Feature, Ragged, Result};
    /// let words = Ragged::new(Array::from([1i64, 2, 3, 4, 5, 6, 7]), [0, 1, 4, 5, 7])?;
    /// // Rows shorter than 2 in batches of two, the others one by one.
    /// let buckets = Buckets::by_feature("words", [2], [2, 1]);
    /// let data = Dataset::from_arrays([("words", words)]).bucket_by_sequence_length(buckets);
    /// let sizes = |batch: Result<_>| match &estimand_tensor::Batch::features(&batch?)["words"] {
    ///     Feature::Dense(array) => Ok(array.dims().to_vec()),
    ///     Feature::Ragged(_) => unreachable!("it was padded"),
    /// };
    /// assert_eq!(data.iter().map(sizes).collect::<Result<Vec<_>>>()?, [[1, 3], [2, 1], [1, 2]]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn bucket_by_sequence_length(&self, buckets: Buckets) -> Dataset {
        Dataset::new(BucketByLength { input: self.clone(), buckets })
    }
}

/// The stage of `bucket_by_sequence_length`. The oldest piece is the first with a row that still
/// waits in a bucket. The position holds the number of rows read since the start of the oldest
/// piece, the number that each bucket has yielded since then, and the input's position before that
/// piece.
struct BucketByLength {
    input: Dataset,
    buckets: Buckets,
}

impl Stage for BucketByLength {
    fn describe(&self) -> String {
        let again = "going on reads again from the oldest row that waits in a bucket, at worst a whole epoch";
        format!("bucket_by_sequence_length({}): {again}", self.buckets.describe())
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn unit(&self) -> Unit {
        Unit::Batch
    }

    fn check(&self) -> Result<()> {
        match self.input.unit() {
            Unit::Row => self.buckets.check(),
            Unit::Batch => Err(Error::config("`bucket_by_sequence_length` was given batches; expected rows")
                .help("use it instead of `batch`")),
        }
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.buckets.spec(self.input.spec()?))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let n = self.buckets.batch_sizes.len();
        let (mut words, mut below) = from.parts_of(1 + n, 1)?;
        let given = words.split_off(1);
        if words == [0] && given.iter().any(|&given| given > 0) {
            return Err(Error::config("the position says that rows were yielded before any row was read")
                .help("resume with the plan that the position was taken from"));
        }
        let before = below.pop().unwrap_or_default();
        Ok(Box::new(BucketStream {
            input: self.input.stage().open(cx, &before)?,
            buckets: self.buckets.clone(),
            waiting: (0..n).map(|_| Waiting::default()).collect(),
            pieces: VecDeque::new(),
            n_gone: 0,
            after: before,
            coming: VecDeque::new(),
            to_replay: words[0],
            given,
            ended: false,
        }))
    }
}

struct BucketStream {
    input: Box<dyn Stream>,
    buckets: Buckets,
    waiting: Vec<Waiting>,
    /// Starts with the oldest piece that has rows not yet yielded.
    pieces: VecDeque<Piece>,
    /// The number of pieces before those.
    n_gone: usize,
    /// The input's position after the last piece.
    after: Position,
    /// The buckets of the last piece's rows that have not entered their bucket yet.
    coming: VecDeque<usize>,
    /// Rows still to replay after resuming: they had entered their buckets before the position.
    to_replay: u64,
    /// For each bucket, the rows yielded since the oldest piece.
    given: Vec<u64>,
    ended: bool,
}

/// The rows that wait in a bucket.
#[derive(Default)]
struct Waiting {
    /// Rows, each part with the number of its piece.
    parts: VecDeque<(usize, Batch)>,
    /// The number of these rows that have entered the bucket.
    n: usize,
}

struct Piece {
    before: Position,
    n_rows: usize,
    /// The number of rows per bucket.
    counts: Vec<u64>,
    n_given: usize,
}

impl BucketStream {
    /// Reads a piece and divides its rows among the buckets; `false` at the end.
    fn read(&mut self) -> Result<bool> {
        let Some(StreamItem { batch, after }) = self.input.pull(PIECE)? else { return Ok(false) };
        let of_rows = self.buckets.of(&batch)?;
        let number = self.n_gone + self.pieces.len();
        let mut counts = Vec::new();
        for (bucket, waiting) in self.waiting.iter_mut().enumerate() {
            let rows: Vec<u64> = (0..).zip(&of_rows).filter(|(_, b)| **b == bucket).map(|(row, _)| row).collect();
            counts.push(rows.len() as u64);
            if !rows.is_empty() {
                waiting.parts.push_back((number, gather(&batch, &rows)?));
            }
        }
        let before = std::mem::replace(&mut self.after, after);
        self.pieces.push_back(Piece { before, n_rows: batch.n_rows(), counts, n_given: 0 });
        self.coming.extend(of_rows);
        Ok(true)
    }

    /// Takes the first `n` rows of a bucket; at least `n` rows must have entered it.
    fn take(&mut self, bucket: usize, n: usize) -> Result<Batch> {
        let waiting = &mut self.waiting[bucket];
        waiting.n -= n;
        let (mut taken, mut n_taken) = (Vec::new(), 0);
        while n_taken < n {
            let Some((number, part)) = waiting.parts.pop_front() else { break };
            let (n_rows, end) = (part.n_rows(), (n - n_taken).min(part.n_rows()));
            if end < n_rows {
                waiting.parts.push_front((number, slice(&part, end..n_rows)?));
            }
            if let Some(piece) = self.pieces.get_mut(number - self.n_gone) {
                piece.n_given += end;
            }
            taken.push(slice(&part, 0..end)?);
            n_taken += end;
        }
        concat(taken)
    }

    /// Removes the rows that were already yielded before the position where reading began.
    fn forget_given(&mut self) -> Result<()> {
        for bucket in 0..self.waiting.len() {
            let (given, arrived) = (self.given[bucket], self.waiting[bucket].n);
            let n = usize::try_from(given).ok().filter(|&n| n <= arrived).ok_or_else(|| {
                Error::config(format!(
                    "the position is after row {given} of a bucket, but the bucket has {arrived} rows"
                ))
                .help("resume with the plan and the data that the position was taken from")
            })?;
            self.take(bucket, n)?;
        }
        Ok(())
    }

    fn give(&mut self, bucket: usize) -> Result<Option<StreamItem>> {
        let n = self.waiting[bucket].n.min(self.buckets.batch_sizes[bucket]);
        let batch = self.take(bucket, n)?;
        self.given[bucket] += n as u64;
        while let Some(piece) = self.pieces.pop_front_if(|piece| piece.n_given == piece.n_rows) {
            self.n_gone += 1;
            self.given.iter_mut().zip(&piece.counts).for_each(|(given, count)| *given -= count);
        }
        let n_rows: usize = self.pieces.iter().map(|piece| piece.n_rows).sum();
        let words = [&[(n_rows - self.coming.len()) as u64], &self.given[..]].concat();
        let before = self.pieces.front().map_or(&self.after, |piece| &piece.before).clone();
        Ok(Some(StreamItem { batch: self.buckets.finish(batch, bucket)?, after: Position::new(words, [before]) }))
    }
}

impl Stream for BucketStream {
    fn pull(&mut self, _want: usize) -> Result<Option<StreamItem>> {
        while !self.ended {
            let Some(bucket) = self.coming.pop_front() else {
                self.ended = !self.read()?;
                continue;
            };
            self.waiting[bucket].n += 1;
            if self.to_replay > 0 {
                self.to_replay -= 1;
                if self.to_replay == 0 {
                    self.forget_given()?;
                }
            } else if self.waiting[bucket].n >= self.buckets.batch_sizes[bucket] {
                return self.give(bucket);
            }
        }
        if std::mem::take(&mut self.to_replay) > 0 {
            return Err(Error::config("the position is after the last row")
                .help("resume with the plan and the data that the position was taken from"));
        }
        let Some(bucket) = self.waiting.iter().position(|waiting| waiting.n > 0) else { return Ok(None) };
        if self.buckets.drop_remainder {
            // TF: a row that cannot be padded is an error even where it would be left out; pinned
            // by fixtures/pipelines.jsonl.
            let mut left = (bucket..self.waiting.len()).filter(|&bucket| self.waiting[bucket].n > 0);
            left.try_for_each(|bucket| self.buckets.padded_size(bucket).map(drop))?;
            return Ok(None);
        }
        self.give(bucket)
    }
}
