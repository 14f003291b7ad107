//! Joins rows into batches. It asks for exactly the rows it needs, so its position is that of its
//! input.

use estimand_tensor::{BatchSpec, Error, Result};

use crate::rows::collect;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

pub(crate) struct Batched {
    pub(crate) input: Dataset,
    pub(crate) n: usize,
    pub(crate) drop_remainder: bool,
}

impl Stage for Batched {
    fn describe(&self) -> String {
        format!("batch({}{})", self.n, if self.drop_remainder { ", drop_remainder" } else { "" })
    }

    fn landmark(&self) -> String {
        "batch".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn unit(&self) -> Unit {
        Unit::Batch
    }

    fn check(&self) -> Result<()> {
        if self.n == 0 {
            return Err(Error::config("the batch size is 0; expected at least 1"));
        }
        if self.input.unit() == Unit::Batch {
            return Err(Error::config(format!("`batch({})` was given batches; expected rows", self.n))
                .help("call `batch` only once"));
        }
        Ok(())
    }

    fn without_remainder(&self) -> Option<Dataset> {
        Some(Dataset::new(Batched { input: self.input.clone(), n: self.n, drop_remainder: true }))
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let input = self.input.stage().open(cx, from)?;
        Ok(Box::new(BatchStream { input, n: self.n, drop_remainder: self.drop_remainder }))
    }
}

/// `drop_remainder` after a stage that has no remainder. This is a mistake, which `check` reports.
pub(crate) struct NoRemainder {
    pub(crate) input: Dataset,
}

impl Stage for NoRemainder {
    fn describe(&self) -> String {
        "drop_remainder()".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        let before = self.input.stage().landmark();
        Err(Error::config(format!("`drop_remainder()` follows `{before}`, which has no remainder"))
            .help("write it right after `batch`, `padded_batch` or `window`"))
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn open(&self, _cx: &InputContext, _from: &Position) -> Result<Box<dyn Stream>> {
        Err(self.check().err().unwrap_or_else(|| Error::internal("no error for a misplaced drop_remainder")))
    }
}

struct BatchStream {
    input: Box<dyn Stream>,
    n: usize,
    drop_remainder: bool,
}

impl Stream for BatchStream {
    fn pull(&mut self, _want: usize) -> Result<Option<StreamItem>> {
        let item = collect(&mut *self.input, self.n)?;
        Ok(item.filter(|item| !self.drop_remainder || item.batch.n_rows() == self.n))
    }

    fn recycle(&mut self, item: StreamItem) {
        self.input.recycle(item);
    }
}
