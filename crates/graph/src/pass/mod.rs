//! The rewrites between a graph and what runs: an ordered list of small passes over a [`Program`].

mod bias;
mod fuse;
mod merge;
mod pool;
mod prune;
mod reroute;

use crate::program::Program;

pub(crate) use fuse::is_elementwise;
pub(crate) use prune::prune;

/// A named rewrite.
pub(crate) struct Pass {
    /// What it is called in messages and tests.
    #[allow(dead_code, reason = "read by tests")]
    pub name: &'static str,
    pub run: fn(Program) -> Program,
}

/// Every pass, in the order they run.
pub(crate) const ALL: [Pass; 5] = [
    Pass { name: "reroute", run: reroute::reroute },
    Pass { name: "merge", run: merge::merge },
    Pass { name: "pool", run: pool::pool_after_relu },
    Pass { name: "bias", run: bias::fold_bias },
    Pass { name: "fuse", run: fuse::fuse },
];
