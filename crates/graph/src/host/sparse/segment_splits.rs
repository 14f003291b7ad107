//! The offsets where segments begin.

use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{integers, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_rank, integer_ids};
use crate::op::spelling::{Spelling, typed};

/// Non-decreasing segment ids `[n]` -> row splits, i64 `[last id + 2]`. A second input sets the
/// number of segments.
///
/// This is the part of TensorFlow's segment ops that depends only on the ids, so it can run before
/// a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentSplits;

/// The largest number of segments. A larger id is taken to be damaged or hostile.
const MAX_SEGMENTS: i64 = 1 << 26;

impl HostRules for SegmentSplits {
    fn name(&self) -> &'static str {
        "SegmentSplits"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "segment ids")?;
        expect_rank(1, x[0], "list of segment ids")?;
        if let Some(n) = x.get(1) {
            integer_ids(n, "number of segments")?;
            expect_rank(0, n, "number of segments")?;
        }
        Ok(smallvec![spec(DType::I64, [inference.axis(0, 0)])])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let ids = integers(x[0])?;
        let n_segments = match x.get(1) {
            Some(n) => integers(n)?[0],
            None => ids.last().map_or(0, |last| last.saturating_add(1)),
        };
        if !(0..=MAX_SEGMENTS).contains(&n_segments) {
            return Err(Error::index(format!("the number of segments is {n_segments}; expected 0 to {MAX_SEGMENTS}")));
        }
        let mut splits = Vec::with_capacity(n_segments as usize + 1);
        splits.push(0);
        for (i, &id) in ids.iter().enumerate() {
            // The number of splits so far is one more than the number of the open segment.
            let open = splits.len() as i64 - 1;
            if id < open {
                return Err(Error::index(format!("the segment ids are not increasing: id {id} follows {open}")));
            }
            if id >= n_segments {
                return Err(Error::index(format!("the segment id at {i} is {id}; expected less than {n_segments}")));
            }
            splits.resize(id as usize + 1, i as i64);
        }
        splits.resize(n_segments as usize + 1, ids.len() as i64);
        Ok(vec![Array::from(splits)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let owner = def.name.clone();
        let ids = writer.converted(def.input[0].clone(), writer.dtype(node, 0), DType::I64);
        let splits = match def.input.get(1) {
            Some(n) => {
                let n = writer.converted(n.clone(), writer.dtype(node, 1), DType::I32);
                writer.splits_of(&owner, ids, &n)?
            }
            None => {
                let ones = writer.part(&owner, "ones", "OnesLike").input(ids.clone());
                let ones = writer.add(typed(ones, "T", DType::I64));
                let lengths = writer.part(&owner, "lengths", "SegmentSum").input(ones).input(ids);
                let lengths = writer.add(typed(typed(lengths, "T", DType::I64), "Tindices", DType::I64));
                writer.splits_of_lengths(&owner, lengths)?
            }
        };
        Ok(typed(NodeDef { op: "Identity".into(), input: vec![splits], ..def }, "T", DType::I64))
    }
}
