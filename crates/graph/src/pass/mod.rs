//! The rewrites between a graph and a program: an ordered list of small passes, the same for every
//! executor.

mod cut;
mod merge;
mod prune;
mod reroute;

use crate::program::Program;

pub(crate) use cut::cut;
pub use cut::{all_given, first_batch_value, reads};
pub(crate) use prune::prune;
pub use prune::{each_dim, needed};

/// A named rewrite.
pub struct Pass {
    /// Its name in messages and tests.
    pub name: &'static str,
    pub run: fn(Program) -> Program,
}

/// The passes over the whole program, in the order they run. The cut follows.
pub const WHOLE: [Pass; 2] =
    [Pass { name: "reroute", run: reroute::reroute }, Pass { name: "merge", run: merge::merge }];

/// Runs the wanted passes in order.
pub fn run(passes: &[Pass], program: Program, is_wanted: impl Fn(&str) -> bool) -> Program {
    passes.iter().filter(|pass| is_wanted(pass.name)).fold(program, |program, pass| (pass.run)(program))
}
