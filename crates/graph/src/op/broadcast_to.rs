//! Broadcasts axes of size 1.

use super::rules::*;

/// Repeats axes of size 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BroadcastTo {
    /// The shape of the result.
    pub shape: Shape,
}

impl OpRules for BroadcastTo {
    fn name(&self) -> &'static str {
        "BroadcastTo"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        // A symbol may have the target size or 1; only the run knows.
        let fits = |(from, to): (&Dim, &Dim)| from == to || matches!(from, Dim::Known(1) | Dim::Sym(_));
        let (from, to) = (x[0].shape.dims(), self.shape.dims());
        if from.len() > to.len() || !from.iter().rev().zip(to.iter().rev()).all(fits) {
            return Err(Error::shape(format!("{} cannot be broadcast to {}", x[0].shape, self.shape)));
        }
        one(x[0].dtype, self.shape.clone())
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        spreads_to(x[0], y)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.unbroadcast(&back.dy(0), &back.x[0])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let sizes = writer.shape(&def.name, "shape", self.shape.dims(), DType::I32)?;
        Ok(typed(typed(def.input(sizes), "T", writer.dtype(node, 0)), "Tidx", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("BroadcastTo", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let shape = reading.shape(1)?;
    Ok(vec![reading.tensor(0)?.broadcast_to(shape)])
}
