//! Keeps the first elements.

use estimand_tensor::{BatchSpec, Result};

use crate::rows::count;
use crate::stage::{InputContext, Stage, Stream, StreamItem, Unit};
use crate::told::Told;
use crate::{Dataset, Position};

/// The stage of `take`. The position holds the number of elements taken, and the input's position.
pub(crate) struct Take {
    pub(crate) input: Dataset,
    pub(crate) n: u64,
    /// Whether the warning about a shuffle was given.
    pub(crate) told: Told,
    /// Whether the warning about a cache was given.
    pub(crate) told_of_cache: Told,
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
        self.told.warn_if_reshuffled(&self.describe(), self.input.reshuffles());
        let input = self.input.stage().open(cx, below)?;
        let cached =
            self.input.stage().has_incomplete_cache().then(|| (self.input.clone(), self.told_of_cache.clone()));
        Ok(Box::new(TakeStream { input, unit: self.unit(), taken, n: self.n, cached }))
    }

    fn is_endless(&self) -> bool {
        false
    }
}

struct TakeStream {
    input: Box<dyn Stream>,
    unit: Unit,
    taken: u64,
    n: u64,
    /// The input, if it has a cache that no pass had completed when the stream was opened.
    cached: Option<(Dataset, Told)>,
}

impl TakeStream {
    /// Warns if the elements are taken from a cache that this reader never reads to its end.
    fn end(&mut self) {
        if let Some((input, told)) = self.cached.take()
            && input.stage().has_incomplete_cache()
            && told.is_first()
        {
            estimand_tensor::warn!(
                "take({0}) does not read its input to the end, so the cache before it is never complete, and every pass reads \
                 the rows anew: call cache() after take({0})",
                self.n
            );
        }
    }
}

impl Stream for TakeStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let left = self.n.saturating_sub(self.taken);
        if left == 0 {
            self.end();
            return Ok(None);
        }
        let want = usize::try_from(left).map_or(want, |left| left.min(want));
        let Some(StreamItem { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        self.taken += count(self.unit, &batch);
        Ok(Some(StreamItem { batch, after: Position::new([self.taken], [after]) }))
    }
}
