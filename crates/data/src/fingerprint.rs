//! Fingerprints of plans. A cache of other rows is refused, and so is a position of another plan;
//! the error names the stage that differs.
//!
//! Every stage contributes two texts. [`Stage::identity`](crate::Stage::identity) is all that
//! decides the rows. [`Stage::landmark`](crate::Stage::landmark) is the part of it that a position
//! depends on: a position stays valid when the batch size, the number of epochs or the number of
//! workers changes.

use std::sync::Arc;

use estimand_tensor::cpu::text::fingerprint64;
use estimand_tensor::{Error, Result};

use crate::agreement::text;
use crate::stage::InputContext;
use crate::{Dataset, Position};

impl Dataset {
    /// A number that identifies the plan: its stages, their arguments, and the features of its
    /// sources. It is the same in every run and on every machine, for any number of threads and
    /// workers. All functions count as equal. Data is read only as far as [`spec`](Dataset::spec)
    /// of a source reads it.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_array(Array::from([1i64, 2, 3])).shuffle(100, 7);
    /// assert_eq!(data.batch(2).drop_remainder().fingerprint(), data.prefetch(4).batch(2).drop_remainder().prefetch(1).fingerprint());
    /// assert_ne!(data.batch(2).drop_remainder().fingerprint(), data.batch(3).drop_remainder().fingerprint());
    /// ```
    pub fn fingerprint(&self) -> u64 {
        fingerprint64(self.identity(&InputContext::default()).as_bytes())
    }

    /// Whether workers read different rows, or the same rows in different orders.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_array(Array::from([1i64, 2, 3]));
    /// assert!(data.shard_by_worker().batch(2).drop_remainder().differs_by_worker());
    /// assert!(!data.shard(2, 0).batch(2).drop_remainder().differs_by_worker());
    /// ```
    pub fn differs_by_worker(&self) -> bool {
        let of = |worker| self.identity(&InputContext { worker, n_workers: 2, ..InputContext::default() });
        of(0) != of(1)
    }

    /// All that decides the rows that a reader with this context gets, one line per stage.
    pub(crate) fn identity(&self, cx: &InputContext) -> String {
        let mut lines = String::new();
        self.write_identity(cx, 0, &mut lines);
        lines
    }

    fn write_identity(&self, cx: &InputContext, depth: usize, out: &mut String) {
        let inputs = self.stage().inputs();
        // Read before the stage describes itself: the description of a source may say more once its
        // features are known.
        let spec = if inputs.is_empty() { self.spec().ok() } else { None };
        let own = self.stage().identity(cx);
        if !own.is_empty() {
            out.push_str(&"  ".repeat(depth));
            out.push_str(&own);
            for (name, feature) in spec.iter().flatten() {
                out.push_str(&format!(", `{name}` {}", text(feature)));
            }
            out.push('\n');
        }
        let depth = depth + usize::from(!own.is_empty());
        inputs.iter().for_each(|input| input.write_identity(cx, depth, out));
    }

    /// Adds the marks of this plan to a position. Another plan refuses it, and names the stage that
    /// differs.
    pub fn marked(&self, position: &Position) -> Position {
        position.clone().of_plan(self.marks())
    }

    /// The marks that a position of this plan carries, one per stage.
    pub(crate) fn marks(&self) -> Arc<[u32]> {
        self.landmarks().iter().map(|(depth, landmark)| mark(*depth, landmark)).collect()
    }

    fn landmarks(&self) -> Vec<(usize, String)> {
        fn walk(data: &Dataset, depth: usize, out: &mut Vec<(usize, String)>) {
            out.push((depth, data.stage().landmark()));
            data.stage().inputs().iter().for_each(|input| walk(input, depth + 1, out));
        }
        let mut all = Vec::new();
        walk(self, 0, &mut all);
        all
    }

    /// Checks that a position belongs to this plan, if it has marks.
    pub fn check_position(&self, position: &Position) -> Result<()> {
        let Some(marks) = position.marks() else { return Ok(()) };
        let landmarks = self.landmarks();
        let differs =
            landmarks.iter().enumerate().find(|(i, (depth, name))| marks.get(*i) != Some(&mark(*depth, name)));
        let place = match (differs, landmarks.last()) {
            (Some((_, (_, name))), _) => format!("differs at `{name}`"),
            (None, Some((_, name))) if marks.len() > landmarks.len() => format!("has more stages below `{name}`"),
            _ => return Ok(()),
        };
        Err(Error::config(format!("the position was taken from another plan, which {place}")).help(
            "resume with the plan that it was taken from; only batch sizes, epochs, workers and threads may change",
        ))
    }
}

fn mark(depth: usize, landmark: &str) -> u32 {
    fingerprint64(format!("{depth} {landmark}").as_bytes()) as u32
}
