//! Running sums and products.

use super::rules::*;

/// Running sum or product along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cumulate {
    /// Product instead of sum.
    pub product: bool,
    /// The axis.
    pub axis: usize,
    /// Starts at 0 (or 1) instead of the first element.
    pub exclusive: bool,
    /// Starts from the end.
    pub reverse: bool,
}

impl OpRules for Cumulate {
    fn name(&self) -> &'static str {
        if self.product { "Cumprod" } else { "Cumsum" }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(x[0].dtype.is_number(), x[0].dtype)?;
        axis_of(self.axis, x[0])?;
        same(x[0])
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        use Binary::*;
        let other_way = |g: &Tensor| {
            let Cumulate { axis, exclusive, reverse, .. } = *self;
            back.node(Cumulate { product: false, axis, exclusive, reverse: !reverse }, &[g])
        };
        dense([match self.product {
            false => other_way(&back.dy(0)),
            // TF: divides by x, so an element of 0 gives NaN.
            true => back.binary(Div, &other_way(&back.binary(Mul, &back.y[0], &back.dy(0))), &back.x[0]),
        }])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let axis = writer.int(&def.name, "axis", self.axis)?;
        let def = def.input(axis).attr("exclusive", self.exclusive).attr("reverse", self.reverse);
        Ok(typed(typed(def, "T", writer.dtype(node, 0)), "Tidx", DType::I32))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Cumsum", read), ("Cumprod", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (tensor, along) = (reading.tensor(0)?, reading.integer(1)?);
    let (exclusive, reverse) = (reading.flag("exclusive", false)?, reading.flag("reverse", false)?);
    let axis = axis(along, tensor.rank())?;
    reading.add(Cumulate { product: reading.op() == "Cumprod", axis, exclusive, reverse }, &[&tensor])
}
