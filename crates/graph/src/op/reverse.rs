//! Reverses axes.

use super::rules::*;

/// Reverses axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reverse {
    /// The axes to reverse.
    pub axes: AxisSet,
}

impl OpRules for Reverse {
    fn name(&self) -> &'static str {
        "ReverseV2"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        within_rank(self.axes, x[0])?;
        same(x[0])
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.node(self.clone(), &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let axes = writer.ints(&def.name, "axis", &mut self.axes.iter().map(|a| a as i64))?;
        Ok(typed(typed(def.input(axes), "T", writer.dtype(node, 0)), "Tidx", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("ReverseV2", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let axes = reading.integers(1)?;
    Ok(vec![reading.tensor(0)?.reverse(&axes)])
}
