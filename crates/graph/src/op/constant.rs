//! A value fixed when the graph was built.

use std::hash::{Hash, Hasher};

use super::rules::*;
use super::spelling;

/// The value of a constant; compared bit by bit.
#[derive(Clone, Debug)]
pub struct Constant(pub Array);

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        let (a, b) = (&self.0, &other.0);
        a.dtype() == b.dtype()
            && a.dims() == b.dims()
            && match a.dtype() {
                DType::Str => a == b,
                _ => a.bytes() == b.bytes(),
            }
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.dtype().hash(state);
        self.0.dims().hash(state);
        self.0.bytes().hash(state);
    }
}

impl OpRules for Constant {
    fn name(&self) -> &'static str {
        "Const"
    }

    fn infer(&self, _x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        one(self.0.dtype(), Shape::from(self.0.dims()))
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

    fn spell(&self, def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(spelling::constant(def, &self.0))
    }
}
