//! Converts to another dtype.

use super::rules::*;

/// Converts to another dtype. Floats lose their fraction; a number is true unless it is 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// The dtype of the result.
    pub to: DType,
}

impl OpRules for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let from = x[0].dtype;
        if self.to == DType::Str || from == DType::Str {
            return Err(Error::dtype(None, from, format!("cannot cast {from} to {}", self.to))
                .help("use the string operations to convert between strings and numbers"));
        }
        one(self.to, x[0].shape.clone())
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        spreads_to(x[0], y)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let from = back.x[0].dtype();
        match self.to.is_float() && from.is_float() {
            true => dense([back.node(Cast { to: from }, &[&back.dy(0)])]),
            false => back.nothing(),
        }
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.y[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(typed(def, "SrcT", writer.dtype(node, 0)), "DstT", self.to))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Cast", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let to = reading.dtype("DstT")?;
    Ok(vec![reading.tensor(0)?.cast(to)])
}
