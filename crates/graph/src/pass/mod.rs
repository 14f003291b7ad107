//! The rewrites between a graph and what runs: an ordered list of small passes over a [`Program`].

mod bias;
mod cut;
mod fuse;
mod group;
mod merge;
mod pool;
mod pooled;
mod prune;
mod reroute;
mod which;

use crate::program::Program;

pub(crate) use cut::{all_given, cut, first_teller, reads};
pub(crate) use fuse::is_elementwise;
pub(crate) use prune::{each_dim, needed, prune};

/// A named rewrite.
pub(crate) struct Pass {
    /// What it is called in messages and tests.
    pub name: &'static str,
    pub run: fn(Program) -> Program,
}

/// The passes over the whole program, in the order they run; then comes the cut.
pub(crate) const WHOLE: [Pass; 2] =
    [Pass { name: "reroute", run: reroute::reroute }, Pass { name: "merge", run: merge::merge }];

/// The passes over the step's part, in the order they run.
pub(crate) const STEP: [Pass; 6] = [
    Pass { name: "pool", run: pool::pool_after_relu },
    Pass { name: "which", run: which::remember_the_largest },
    Pass { name: "pooled", run: pooled::gradients_of_pooled },
    Pass { name: "bias", run: bias::fold_bias },
    Pass { name: "convolve", run: pooled::pool_what_is_convolved },
    Pass { name: "fuse", run: fuse::fuse },
];
