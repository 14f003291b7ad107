//! Leaves out rows.

use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::gather;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

pub(crate) type FilterFn = dyn Fn(&Batch) -> Result<Vec<bool>> + Send + Sync;

pub(crate) struct Filter {
    pub(crate) input: Dataset,
    pub(crate) function: Arc<FilterFn>,
}

impl Stage for Filter {
    fn describe(&self) -> String {
        match self.unit() {
            Unit::Row => "filter(rows)".to_string(),
            Unit::Batch => "filter(rows of batches)".to_string(),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        let over = || Dataset::new(Filter { input: shuffle(&self.input), function: self.function.clone() });
        (self.unit() == Unit::Row).then(over)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let input = self.input.stage().open(cx, from)?;
        Ok(Box::new(FilterStream { input, function: self.function.clone() }))
    }
}

struct FilterStream {
    input: Box<dyn Stream>,
    function: Arc<FilterFn>,
}

impl Stream for FilterStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        while let Some(StreamItem { batch, after }) = self.input.pull(want)? {
            let keep = (self.function)(&batch).map_err(|e| e.context("in the function of `filter`"))?;
            if keep.len() != batch.n_rows() {
                let message = format!(
                    "the function of `filter` returned {} answers for {} rows; expected one for each row",
                    keep.len(),
                    batch.n_rows()
                );
                return Err(Error::shape(message));
            }
            let kept: Vec<u64> = (0..).zip(&keep).filter_map(|(row, &keep)| keep.then_some(row)).collect();
            if kept.len() == keep.len() {
                return Ok(Some(StreamItem { batch, after }));
            }
            if !kept.is_empty() {
                return Ok(Some(StreamItem { batch: gather(&batch, &kept)?, after }));
            }
        }
        Ok(None)
    }
}
