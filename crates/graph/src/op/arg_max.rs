//! The index of the largest element.

use super::rules::*;

/// The index of the largest (or smallest) element along an axis; the first of equals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgMax {
    /// The axis.
    pub axis: usize,
    /// Smallest instead of largest.
    pub min: bool,
    /// `I32` or `I64`.
    pub output: DType,
}

impl OpRules for ArgMax {
    fn name(&self) -> &'static str {
        if self.min { "ArgMin" } else { "ArgMax" }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(x[0].dtype.is_number(), x[0].dtype)?;
        accepts(matches!(self.output, DType::I32 | DType::I64), self.output)?;
        let axis = axis_of(self.axis, x[0])?;
        if x[0].shape.dims()[axis] == Dim::Known(0) {
            return Err(Error::shape(format!("axis {axis} of {} is empty: there is no largest element", x[0].shape)));
        }
        let mut shape = x[0].shape.clone();
        shape.0.remove(axis);
        one(self.output, shape)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0][self.axis] > 0
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let axis = writer.int(&def.name, "dimension", self.axis)?;
        let def = typed(typed(def.input(axis), "Tidx", DType::I32), "output_type", self.output);
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("ArgMax", read), ("ArgMin", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (tensor, along) = (reading.tensor(0)?, reading.integer(1)?);
    let output = reading.dtype_or("output_type", Some(DType::I64))?;
    let op = ArgMax { axis: axis(along, tensor.rank())?, min: reading.op() == "ArgMin", output };
    reading.add(op, &[&tensor])
}
