//! Groups several nodes into one.

use super::rules::*;

/// Runs its inputs and has no value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group;

impl OpRules for Group {
    fn name(&self) -> &'static str {
        "NoOp"
    }

    fn infer(&self, _x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Ok(Specs::new())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    fn cost(&self, _operands: &Operands<'_>) -> Cost {
        Cost::default()
    }

    /// In TensorFlow, the inputs are control inputs.
    fn spell(&self, mut def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        for input in &mut def.input {
            let node = input.split(':').next().unwrap_or_default();
            *input = format!("^{node}");
        }
        def.input.dedup();
        Ok(def)
    }

    fn has_effect(&self) -> bool {
        true
    }
}
