//! A value fed at every run.

use estimand_wire::TensorShapeProto;

use super::rules::*;

/// A value fed at every run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placeholder;

impl OpRules for Placeholder {
    fn name(&self) -> &'static str {
        "Placeholder"
    }

    fn infer(&self, _x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Err(Error::internal("the shape of a placeholder is declared"))
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

    fn spell(&self, def: NodeDef, node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        let spec = &node.outputs[0];
        let sizes = spec.shape.dims().iter().map(|d| d.known().map_or(-1, |n| n as i64));
        Ok(typed(def, "dtype", spec.dtype).attr("shape", TensorShapeProto::of(sizes)))
    }

    fn has_effect(&self) -> bool {
        true
    }
}
