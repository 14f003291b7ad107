//! Keeps the first elements.

use estimand_tensor::{BatchSpec, Result};

use crate::rows::count;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

/// The stage of `take`. The position holds the number of elements taken, and the input's position.
pub(crate) struct Take {
    pub(crate) input: Dataset,
    pub(crate) n: u64,
}

impl Stage for Take {
    fn describe(&self) -> String {
        format!("take({})", self.n)
    }

    fn landmark(&self) -> String {
        "take".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([taken], [below]) = from.parts()?;
        Ok(Box::new(TakeStream { input: self.input.stage().open(cx, below)?, unit: self.unit(), taken, n: self.n }))
    }
}

struct TakeStream {
    input: Box<dyn Stream>,
    unit: Unit,
    taken: u64,
    n: u64,
}

impl Stream for TakeStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let left = self.n.saturating_sub(self.taken);
        if left == 0 {
            return Ok(None);
        }
        let want = usize::try_from(left).map_or(want, |left| left.min(want));
        let Some(StreamItem { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        self.taken += count(self.unit, &batch);
        Ok(Some(StreamItem { batch, after: Position::new([self.taken], [after]) }))
    }
}
