//! Skips the first elements.

use estimand_tensor::{BatchSpec, Result};

use crate::rows::discard;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::told::Told;
use crate::{Dataset, Position};

/// The stage of `skip`. The position holds 1 once the elements are skipped, and the input's
/// position.
pub(crate) struct Skip {
    pub(crate) input: Dataset,
    pub(crate) n: u64,
    pub(crate) told: Told,
}

impl Stage for Skip {
    fn describe(&self) -> String {
        format!("skip({})", self.n)
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([skipped], [below]) = from.parts()?;
        self.told.warn_if_reshuffled(&self.describe(), self.input.reshuffles());
        let to_skip = if skipped == 0 { self.n } else { 0 };
        Ok(Box::new(SkipStream { input: self.input.stage().open(cx, below)?, unit: self.unit(), to_skip }))
    }
}

struct SkipStream {
    input: Box<dyn Stream>,
    unit: Unit,
    to_skip: u64,
}

impl Stream for SkipStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        discard(&mut *self.input, self.unit, std::mem::take(&mut self.to_skip))?;
        let Some(StreamItem { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        Ok(Some(StreamItem { batch, after: Position::new([1], [after]) }))
    }
}
