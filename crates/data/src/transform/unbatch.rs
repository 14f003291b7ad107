//! Splits batches into rows.

use estimand_tensor::{BatchSpec, Error, Result};

use crate::rows::slice;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

impl Dataset {
    /// Splits batches into rows, which can be shuffled, filtered or batched differently.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let batches = Dataset::from_array(Array::from([1i64, 2, 3, 4])).batch(3);
    /// let pairs = batches.unbatch().batch(2);
    /// assert_eq!(pairs.iter().map(|batch| Ok(batch?.n_rows())).collect::<Result<Vec<_>, estimand_tensor::Error>>()?, [2, 2]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn unbatch(&self) -> Dataset {
        Dataset::new(Unbatch { input: self.clone() })
    }
}

/// The stage of `unbatch`. The position holds the number of rows yielded of a batch, and the
/// input's position before the batch.
struct Unbatch {
    input: Dataset,
}

impl Stage for Unbatch {
    fn describe(&self) -> String {
        "unbatch: going on reads one batch again".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn unit(&self) -> Unit {
        Unit::Row
    }

    fn check(&self) -> Result<()> {
        match self.input.unit() {
            Unit::Batch => Ok(()),
            Unit::Row => Err(Error::config("`unbatch` was given rows; expected batches")
                .help("use it after `batch`, or leave it out")),
        }
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([given], [below]) = from.parts()?;
        let input = self.input.stage().open(cx, below)?;
        Ok(Box::new(UnbatchStream { input, current: None, before: below.clone(), given }))
    }
}

struct UnbatchStream {
    input: Box<dyn Stream>,
    /// The batch whose rows are being yielded.
    current: Option<StreamItem>,
    /// The input's position before it.
    before: Position,
    /// The number of its rows already yielded.
    given: u64,
}

impl Stream for UnbatchStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        loop {
            let Some(current) = &self.current else {
                self.current = self.input.pull(1)?;
                if self.current.is_none() {
                    return Ok(None);
                }
                continue;
            };
            let n_rows = current.batch.n_rows();
            let start = usize::try_from(self.given).ok().filter(|&given| given <= n_rows).ok_or_else(|| {
                Error::config(format!(
                    "the position is after row {} of a batch, but the batch has {n_rows} rows",
                    self.given
                ))
                .help("resume with the plan and the data that the position was taken from")
            })?;
            let end = start.saturating_add(want).min(n_rows);
            let rows = slice(&current.batch, start..end)?;
            self.given = end as u64;
            if end == n_rows {
                (self.before, self.given) = (current.after.clone(), 0);
                self.current = None;
            }
            if end > start {
                return Ok(Some(StreamItem { batch: rows, after: Position::new([self.given], [self.before.clone()]) }));
            }
        }
    }
}
