//! Ranges of integers.

use super::rules::*;

/// 0, 1, 2, ... below a size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The number of elements.
    pub size: Dim,
    /// The dtype of the elements.
    pub dtype: DType,
}

impl OpRules for Range {
    fn name(&self) -> &'static str {
        "Range"
    }

    fn infer(&self, _x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        number(self.dtype)?;
        one(self.dtype, Shape::from([self.size]))
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
        let start = writer.int(&def.name, "start", 0)?;
        let limit = writer.size(self.size, &def.name, "limit")?;
        let delta = writer.int(&def.name, "delta", 1)?;
        // TF: a range of floats can end differently than one of integers; ours are integers.
        let numbers = writer.part(&def.name, "range", "Range").input(start).input(limit).input(delta);
        let numbers = writer.add(typed(numbers, "Tidx", DType::I32));
        let def = NodeDef { op: "Cast".into(), ..def };
        Ok(typed(typed(def, "SrcT", DType::I32), "DstT", self.dtype).input(numbers))
    }
}
