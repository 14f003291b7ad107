//! Ops that TensorFlow has no node for. They are written as several nodes; an attribute of the last
//! one names the op and its inputs ([`ATTRIBUTE`]), so that a reader can take the nodes for one op
//! again.
//!
//! A reader compares the nodes with those that we would write, so nodes that somebody has changed
//! are read as they are. If an op is written in another way, earlier exports are still read, but
//! slower.

use std::ops::RangeInclusive;

use super::{Combiner, Op, SparseSegment};
use crate::host::HostOp;
use crate::host::ragged::{FromDense, FromRows, LookupIds};

/// The attribute of the last node: the name of the op, and the names of its inputs, with a space
/// between them. TensorFlow ignores it.
pub const ATTRIBUTE: &str = "_estimand_op";

/// Names an op, if its nodes can become one op again.
pub fn describe(op: &Op) -> Option<&'static str> {
    match op {
        Op::SparseSegment(SparseSegment { combiner }) => Some(match combiner {
            Combiner::Sum => "SparseSegmentSum",
            Combiner::Mean => "SparseSegmentMean",
            Combiner::SqrtN => "SparseSegmentSqrtN",
        }),
        Op::Host(op) if op.get::<FromDense>().is_some() => Some("FromDense"),
        Op::Host(op) if op.get::<FromRows>().is_some() => Some("FromRows"),
        Op::Host(op) => op.get::<LookupIds>().map(|ids| match ids.drop_light {
            true => "LookupHeavyIds",
            false => "LookupIds",
        }),
        _ => None,
    }
}

/// The op that [`describe`] names, and how many inputs it takes.
pub fn described(name: &str) -> Option<(Op, RangeInclusive<usize>)> {
    let ids = |drop_light| HostOp::new(LookupIds { drop_light, n_rows: None, source: None });
    let segments = |combiner| (Op::from(SparseSegment { combiner }), 3..=4);
    Some(match name {
        "FromDense" => (HostOp::new(FromDense).into(), 1..=1),
        "FromRows" => (HostOp::new(FromRows).into(), 1..=1),
        "LookupIds" => (ids(false).into(), 2..=3),
        "LookupHeavyIds" => (ids(true).into(), 2..=3),
        "SparseSegmentSum" => segments(Combiner::Sum),
        "SparseSegmentMean" => segments(Combiner::Mean),
        "SparseSegmentSqrtN" => segments(Combiner::SqrtN),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ops() {
        let names = ["FromDense", "FromRows", "LookupIds", "LookupHeavyIds"];
        for name in names.into_iter().chain(["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]) {
            assert_eq!(describe(&described(name).unwrap().0), Some(name));
        }
        assert!(described("MatMul").is_none() && described("").is_none());
    }
}
