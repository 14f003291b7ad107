//! Nodes that change state, and those that TensorFlow cannot run.

use estimand_tensor::Error;
use estimand_wire::NodeDef;

use super::{Writer, typed};
use crate::graph::Body;
use crate::optimizer::Apply;
use crate::variables::VarId;

impl Writer<'_> {
    /// Ours happens at the end of the run: it waits for the node that reads the variable.
    pub(super) fn assign(&mut self, mut def: NodeDef, id: VarId) -> NodeDef {
        let handle = self.handle(id);
        def.input.insert(0, handle);
        let reads = self.reads.get(&id).map_or(&[][..], Vec::as_slice);
        def.input.extend(reads.iter().map(|read| format!("^{read}")));
        typed(NodeDef { op: "AssignVariableOp".into(), ..def }, "dtype", self.body.variables().spec(id).dtype)
    }
}

/// Runs its inputs: they are control inputs to TensorFlow.
pub(super) fn group(mut def: NodeDef) -> NodeDef {
    for input in &mut def.input {
        let node = input.split(':').next().unwrap_or_default();
        *input = format!("^{node}");
    }
    def.input.dedup();
    def
}

pub(super) fn refuse_custom(name: &str) -> Error {
    Error::unsupported(format!("custom op `{name}` is Rust code: TensorFlow cannot run it"))
        .help("build it from tensor operations, or fetch what goes into it and apply it outside of the graph")
}

pub(super) fn refuse_apply(body: &Body, apply: &Apply) -> Error {
    let rule = body.optimizers()[apply.optimizer.0 as usize].rule.name();
    let variable = &body.variables().spec(apply.variable).name;
    Error::unsupported(format!("the {rule} update of variable `{variable}` is not written to a GraphDef"))
        .help("write the loss or the predictions; the trained values and slots are in the checkpoint")
}
