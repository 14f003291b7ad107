//! The rewrites that suit the processor's memory: an ordered list of small passes over the steps of
//! a program.
//!
//! They put several nodes into one kernel, so that what lies between them is never written to
//! memory. Each changes no bit of any result (`tests/passes.rs`).

mod bias;
mod fuse;
mod group;
mod pool;
mod pooled;
mod which;

use estimand_graph::pass::Pass;

/// All of them, in the order they run.
pub(crate) const ALL: [Pass; 6] = [
    Pass { name: "pool", run: pool::pool_after_relu },
    Pass { name: "which", run: which::remember_the_largest },
    Pass { name: "pooled", run: pooled::gradients_of_pooled },
    Pass { name: "bias", run: bias::fold_bias },
    Pass { name: "convolve", run: pooled::pool_what_is_convolved },
    Pass { name: "fuse", run: fuse::fuse },
];
