//! One-hot encoding of indices.

use super::rules::*;

/// (indices, on, off) -> a new axis of the given depth.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OneHot {
    /// Size of the new axis.
    pub depth: usize,
    /// The position of the new axis in the result.
    pub axis: usize,
}

impl OpRules for OneHot {
    fn name(&self) -> &'static str {
        "OneHot"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "indices")?;
        same_dtype(x[1], x[2])?;
        expect_rank(0, x[1], "on value")?;
        expect_rank(0, x[2], "off value")?;
        if self.axis > x[0].shape.rank() {
            return Err(Error::shape(format!(
                "the axis of one_hot is {}, which does not fit indices {}",
                self.axis, x[0].shape
            )));
        }
        let mut shape = x[0].shape.clone();
        shape.0.insert(self.axis, Dim::Known(self.depth));
        one(x[1].dtype, shape)
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

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let depth = writer.int(&def.name, "depth", self.depth)?;
        def.input.insert(1, depth);
        let def = def.attr("axis", self.axis as i64);
        Ok(typed(typed(def, "TI", writer.dtype(node, 0)), "T", writer.dtype(node, 1)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("OneHot", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (indices, depth) = (reading.tensor(0)?, reading.integer(1)?);
    let (on, off) = (reading.tensor(2)?, reading.tensor(3)?);
    let axis = axis(reading.int_or("axis", -1)?, indices.rank() + 1)?;
    let depth =
        usize::try_from(depth).map_err(|_| Error::config(format!("the depth is {depth}; expected 0 or more")))?;
    // TF: `uint8` indices are allowed too.
    let indices = if indices.dtype() == DType::U8 { indices.cast(DType::I32) } else { indices };
    reading.add(OneHot { depth, axis }, &[&indices, &on, &off])
}
