//! Element-wise nodes outside of groups.

use estimand_graph::Program;

use crate::kernel::{Fused, Member};

/// Makes groups of one from element-wise nodes that no pass has grouped, so that there is only one
/// way to compute them.
pub(crate) fn group_singles(mut program: Program) -> Program {
    let body = program.body.clone();
    for step in &mut program.steps {
        if step.is_elementwise(&body) {
            let member = Member { node: step.kernel.node(), reads: step.inputs.clone() };
            step.kernel = Fused::Elementwise(vec![member]).into();
            step.inputs.retain(|v| body.scalar_constant(*v).is_none());
            // A tile reads an input once, even if the operation uses it several times.
            let mut seen = Vec::new();
            step.inputs.retain(|v| {
                !seen.contains(v) && {
                    seen.push(*v);
                    true
                }
            });
        }
    }
    program
}
