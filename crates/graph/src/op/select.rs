//! Selects between two tensors, element by element.

use super::rules::*;

/// (condition, x, y): x where the condition holds, else y.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Select;

impl OpRules for Select {
    fn name(&self) -> &'static str {
        "SelectV2"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::Bool, x[0], "condition")?;
        same_dtype(x[1], x[2])?;
        let branches = broadcast(&x[1].shape, &x[2].shape, inference.symbols)?;
        one(x[1].dtype, broadcast(&x[0].shape, &branches, inference.symbols)?)
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        x.iter().all(|dims| spreads_to(dims, y))
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (x, dy, zero) = (&back.x, back.dy(0), back.number(&back.dy(0), 0.0));
        let then = back.node(Select, &[&x[0], &dy, &zero]);
        let other = back.node(Select, &[&x[0], &zero, &dy]);
        Ok(vec![
            Gradient::None,
            Gradient::Dense(back.unbroadcast(&then, &x[1])),
            Gradient::Dense(back.unbroadcast(&other, &x[2])),
        ])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.y[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 1)))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("SelectV2", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (condition, x, y) = (reading.tensor(0)?, reading.tensor(1)?, reading.tensor(2)?);
    reading.add(Select, &[&condition, &x, &y])
}
