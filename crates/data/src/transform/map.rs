//! Applies a function to batches.

use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::specs_of;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

pub(crate) type MapFn = dyn Fn(Batch) -> Result<Batch> + Send + Sync;

pub(crate) struct Map {
    pub(crate) input: Dataset,
    pub(crate) function: Arc<MapFn>,
    pub(crate) call: MapCall,
}

/// The method that made the stage.
#[derive(Clone, Debug)]
pub(crate) enum MapCall {
    Batch,
    Feature(String),
    Label,
}

impl MapCall {
    /// The name of the method, for errors.
    fn name(&self) -> &'static str {
        match self {
            MapCall::Batch => "map",
            MapCall::Feature(_) => "map_feature",
            MapCall::Label => "map_label",
        }
    }
}

impl Stage for Map {
    fn describe(&self) -> String {
        let unit = self.unit();
        match &self.call {
            MapCall::Batch | MapCall::Label => format!("{}({unit})", self.call.name()),
            MapCall::Feature(name) => format!("map_feature(`{name}`, {unit})"),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(specs_of_first(self)?.0)
    }

    fn label_spec(&self) -> Result<BatchSpec> {
        label_spec(self, &self.input)
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        let over = || Map { input: shuffle(&self.input), function: self.function.clone(), call: self.call.clone() };
        (self.unit() == Unit::Row).then(|| Dataset::new(over()))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let input = self.input.stage().open(cx, from)?;
        let (function, call) = (self.function.clone(), self.call.name());
        Ok(Box::new(MapStream { input, unit: self.unit(), function, call }))
    }
}

struct MapStream {
    input: Box<dyn Stream>,
    unit: Unit,
    function: Arc<MapFn>,
    call: &'static str,
}

impl Stream for MapStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let Some(item) = self.input.pull(want)? else { return Ok(None) };
        apply(&*self.function, self.call, self.unit, item).map(Some)
    }
}

/// Applies the function to an item. `call` is the method that made the stage.
pub(crate) fn apply(
    function: &(dyn Fn(Batch) -> Result<Batch> + Send + Sync + '_),
    call: &str,
    unit: Unit,
    StreamItem { batch, after }: StreamItem,
) -> Result<StreamItem> {
    let n_rows = batch.n_rows();
    let batch = function(batch).map_err(|e| e.context(format!("in the function of `{call}`")))?;
    if unit == Unit::Row && batch.n_rows() != n_rows {
        let message =
            format!("the function of `{call}` returned {} rows for {n_rows}; expected the same number", batch.n_rows());
        return Err(Error::shape(message).help("use `filter` to leave rows out, or `map` after `batch`"));
    }
    Ok(StreamItem { batch, after })
}

/// Finds the specs of features and labels by running the stage on the first rows: only a call shows
/// the result of a function.
pub(crate) fn specs_of_first(stage: &dyn Stage) -> Result<(BatchSpec, BatchSpec)> {
    let sample = first(stage)?.ok_or_else(|| {
        Error::config("the spec of a mapped dataset comes from its first row, but the dataset has no rows")
    })?;
    Ok(specs_of(&sample.batch))
}

/// The labels of a stage with a function. Without rows, those of its input.
pub(crate) fn label_spec(stage: &dyn Stage, input: &Dataset) -> Result<BatchSpec> {
    match first(stage)? {
        Some(sample) => Ok(specs_of(&sample.batch).1),
        None => input.label_spec(),
    }
}

fn first(stage: &dyn Stage) -> Result<Option<StreamItem>> {
    stage.open(&InputContext { n_threads: 1, ..InputContext::default() }, &Position::default())?.pull(1)
}
