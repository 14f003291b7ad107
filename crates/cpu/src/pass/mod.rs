//! Rewrites that reduce memory traffic: an ordered list of small passes over the steps of a
//! program.
//!
//! They fuse several nodes into one kernel, so that intermediate values are never written to
//! memory. No pass changes any bit of a result (`tests/passes.rs`).

mod bias;
mod ended;
mod fuse;
mod group;
mod pool;
mod pooled;
mod scale;
mod singles;
mod summed;
mod which;

use estimand_graph::pass::Pass;

pub(crate) use singles::group_singles;

/// All passes, in the order they run.
pub(crate) const ALL: [Pass; 9] = [
    Pass { name: "pool", run: pool::pool_after_relu },
    Pass { name: "which", run: which::remember_the_largest },
    Pass { name: "pooled", run: pooled::gradients_of_pooled },
    Pass { name: "bias", run: bias::fold_bias },
    Pass { name: "convolve", run: pooled::pool_what_is_convolved },
    Pass { name: "scale", run: scale::fold_scale },
    Pass { name: "ended", run: ended::leave_out_what_has_ended },
    Pass { name: "fuse", run: fuse::fuse },
    Pass { name: "sum", run: summed::sum_what_is_computed },
];
