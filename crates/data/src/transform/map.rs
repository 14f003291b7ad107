//! Applies a function to batches.

use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::spec_of;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

pub(crate) type MapFn = dyn Fn(Batch) -> Result<Batch> + Send + Sync;

pub(crate) struct Map {
    pub(crate) input: Dataset,
    pub(crate) function: Arc<MapFn>,
}

impl Stage for Map {
    fn describe(&self) -> String {
        match self.unit() {
            Unit::Row => "map(rows)".to_string(),
            Unit::Batch => "map(batches)".to_string(),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        spec_of_first(self)
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        let over = || Dataset::new(Map { input: shuffle(&self.input), function: self.function.clone() });
        (self.unit() == Unit::Row).then(over)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let input = self.input.stage().open(cx, from)?;
        Ok(Box::new(MapStream { input, unit: self.unit(), function: self.function.clone() }))
    }
}

struct MapStream {
    input: Box<dyn Stream>,
    unit: Unit,
    function: Arc<MapFn>,
}

impl Stream for MapStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let Some(item) = self.input.pull(want)? else { return Ok(None) };
        apply(&*self.function, self.unit, item).map(Some)
    }
}

/// Applies the function to an item.
pub(crate) fn apply(function: &MapFn, unit: Unit, StreamItem { batch, after }: StreamItem) -> Result<StreamItem> {
    let n_rows = batch.n_rows();
    let batch = function(batch).map_err(|e| e.context("in the function of `map`"))?;
    if unit == Unit::Row && batch.n_rows() != n_rows {
        let message =
            format!("the function of `map` returned {} rows for {n_rows}; expected the same number", batch.n_rows());
        return Err(Error::shape(message).help("use `filter` to leave rows out, or `map` after `batch`"));
    }
    Ok(StreamItem { batch, after })
}

/// Finds the spec by running the stage on the first rows: only a call shows the result of a
/// function.
pub(crate) fn spec_of_first(stage: &dyn Stage) -> Result<BatchSpec> {
    let mut stream = stage.open(&InputContext { n_threads: 1, ..InputContext::default() }, &Position::default())?;
    let sample = stream.pull(1)?.ok_or_else(|| {
        Error::config("the spec of a mapped dataset comes from its first row, but the dataset has no rows")
    })?;
    Ok(spec_of(&sample.batch))
}
