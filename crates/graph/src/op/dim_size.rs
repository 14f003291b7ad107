//! The size of an axis as a number.

use smallvec::{SmallVec, smallvec};

use super::rules::*;

/// The size of an axis as a single number of the given dtype.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DimSize {
    /// The size.
    pub dim: Dim,
    /// The dtype of the number.
    pub dtype: DType,
}

impl OpRules for DimSize {
    fn name(&self) -> &'static str {
        "DimSize"
    }

    fn infer(&self, _x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        number(self.dtype)?;
        one(self.dtype, Shape::scalar())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let size = writer.size(self.dim, &def.name, "size")?;
        let def = NodeDef { op: "Cast".into(), ..def };
        Ok(typed(typed(def, "SrcT", DType::I32), "DstT", self.dtype).input(size))
    }

    fn sizes(&self) -> SmallVec<[Dim; 4]> {
        smallvec![self.dim]
    }
}
