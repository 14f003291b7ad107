//! Rows from a function.

use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, FeatureSpec, Result};

use crate::agreement::difference;
use crate::rows::{keep_missing, slice, spec_of};
use crate::stage::{InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

impl Dataset {
    /// Creates a dataset from a function. The function is called once per epoch and returns an
    /// iterator over batches of any number of rows.
    ///
    /// To resume from a position, the rows before it are generated again and dropped. So the
    /// function must make the same rows for the same context. Take randomness from the context's
    /// seed and epoch.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::{Array, Batch, DType, FeatureSpec, Result};
    /// let squares = Dataset::from_generator([("square", FeatureSpec::dense(DType::I64, []))], |_context| {
    ///     (0..).map(|i: i64| Batch::new().with_feature("square", Array::from([i * i])))
    /// });
    /// let batch = squares.batch(4).drop_remainder().iter().next().unwrap()?;
    /// assert_eq!(batch.features()["square"], Array::from([0i64, 1, 4, 9]).into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn from_generator<N: Into<String>, I>(
        features: impl IntoIterator<Item = (N, FeatureSpec)>,
        function: impl Fn(&InputContext) -> I + Send + Sync + 'static,
    ) -> Dataset
    where
        I: IntoIterator<Item = Result<Batch>>,
        I::IntoIter: Send + 'static,
    {
        Dataset::new(Generator {
            spec: features.into_iter().map(|(name, spec)| (name.into(), spec)).collect(),
            function: Arc::new(move |cx| Box::new(function(cx).into_iter())),
        })
    }
}

type Pieces = Box<dyn Iterator<Item = Result<Batch>> + Send>;

/// The stage of a generator. The position is the number of rows yielded.
struct Generator {
    spec: BatchSpec,
    function: Arc<dyn Fn(&InputContext) -> Pieces + Send + Sync>,
}

impl Stage for Generator {
    fn describe(&self) -> String {
        let names: Vec<_> = self.spec.keys().map(|name| format!("`{name}`")).collect();
        format!("generator: {}; going on makes all rows before again", names.join(", "))
    }

    /// The function may use all of the context.
    fn identity(&self, cx: &InputContext) -> String {
        let InputContext { mode, worker, n_workers, n_replicas, seed, .. } = cx;
        format!("generator for {mode:?} by worker {worker} of {n_workers}, {n_replicas} replicas, seed {seed}")
    }

    fn check(&self) -> Result<()> {
        if self.spec.is_empty() {
            return Err(
                Error::config("the spec of the generator has no features").help("name at least one in the spec")
            );
        }
        match self.spec.iter().find(|(_, spec)| matches!(spec, FeatureSpec::Padded { .. })) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Error::unsupported(format!("feature `{name}` has a padded spec, but single rows cannot be padded"))
                    .help("make it ragged, and use `padded_batch`"))
            }
        }
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(self.spec.clone())
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([given], []) = from.parts()?;
        let pieces = Some((self.function)(cx));
        Ok(Box::new(Made { pieces, spec: self.spec.clone(), piece: None, given: 0, to_skip: given }))
    }
}

struct Made {
    /// `None` after the end or an error.
    pieces: Option<Pieces>,
    spec: BatchSpec,
    /// A piece of which some rows were not yielded.
    piece: Option<Batch>,
    given: u64,
    /// The number of rows before the position where reading began.
    to_skip: u64,
}

impl Made {
    /// Returns the next piece that has rows, checked against the spec.
    fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(piece) = self.piece.take() {
            return Ok(Some(piece));
        }
        loop {
            let made = self.pieces.as_mut().and_then(|pieces| pieces.next());
            let checked = made.transpose().and_then(|made| made.map(|batch| self.check(batch)).transpose());
            match checked {
                Ok(Some(batch)) if batch.n_rows() == 0 => {}
                Ok(Some(batch)) => return Ok(Some(batch)),
                Ok(None) => {
                    self.pieces = None;
                    return Ok(None);
                }
                Err(error) => {
                    self.pieces = None;
                    return Err(
                        error.context(format!("in the rows that the generator yielded after row {}", self.given))
                    );
                }
            }
        }
    }

    /// Checks that the features match the spec, and puts them in its order.
    fn check(&self, batch: Batch) -> Result<Batch> {
        let found = spec_of(&batch);
        let in_order: BatchSpec =
            self.spec.keys().filter_map(|name| Some((name.clone(), found.get(name)?.clone()))).collect();
        let expected = if in_order.len() == found.len() { &in_order } else { &found };
        match difference(&self.spec, expected, "in the spec", "in the rows") {
            Some(what) => Err(Error::shape(what).help("yield only rows that match the spec given to `from_generator`")),
            None if found.keys().eq(self.spec.keys()) => Ok(batch),
            None => {
                let mut ordered = Batch::new();
                for name in self.spec.keys() {
                    ordered = ordered.with_feature(name, batch.feature(name)?.clone())?;
                }
                for (name, label) in batch.labels() {
                    ordered = ordered.with_label(name, label.clone())?;
                }
                if let Some(weights) = batch.weights() {
                    ordered = ordered.with_weights(weights.clone())?;
                }
                keep_missing(&batch, ordered)
            }
        }
    }
}

impl Stream for Made {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        while let Some(batch) = self.next()? {
            let n_rows = batch.n_rows();
            let skipped = usize::try_from(self.to_skip).map_or(n_rows, |n| n.min(n_rows));
            let end = skipped.saturating_add(want).min(n_rows);
            self.to_skip -= skipped as u64;
            self.given = self.given.saturating_add(end as u64);
            if end < n_rows {
                self.piece = Some(slice(&batch, end..n_rows)?);
            }
            if skipped < end {
                let rows = slice(&batch, skipped..end)?;
                return Ok(Some(StreamItem { batch: rows, after: Position::new([self.given], []) }));
            }
        }
        if self.to_skip > 0 {
            let message = format!("the position is {} rows after the last row of the generator", self.to_skip);
            self.to_skip = 0;
            return Err(Error::config(message).help("make the same rows for the same context in the generator"));
        }
        Ok(None)
    }
}
