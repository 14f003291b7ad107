//! Stops gradients.

use super::rules::*;

/// Returns the input without a gradient.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StopGradient;

impl OpRules for StopGradient {
    fn name(&self) -> &'static str {
        "StopGradient"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        same(x[0])
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    /// Free: the result is the same bytes.
    fn cost(&self, _operands: &Operands<'_>) -> Cost {
        Cost::default()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("StopGradient", |reading| Ok(vec![reading.tensor(0)?.stop_gradient()]))]
    }
}
