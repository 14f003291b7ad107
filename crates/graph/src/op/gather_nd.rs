//! Elements and slices at coordinates, and the gradient.

use super::rules::*;

/// (params, indices [..., depth]): the elements or slices at coordinates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatherNd;

impl OpRules for GatherNd {
    fn name(&self) -> &'static str {
        "GatherNd"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let depth = index_depth(x[1], &x[0].shape)?;
        let i = x[1].shape.dims();
        one(x[0].dtype, i[..i.len() - 1].iter().chain(&x[0].shape.dims()[depth..]).copied().collect())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let op = ScatterNd { shape: back.x[0].shape().clone() };
        Ok(vec![Gradient::Dense(back.node(op, &[&back.x[1], &back.dy(0)])), Gradient::None])
    }

    /// Only the elements at the indices are read.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.looked_up()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(typed(def, "Tparams", writer.dtype(node, 0)), "Tindices", writer.dtype(node, 1)))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("GatherNd", read)]
    }
}

/// (indices [..., depth], updates): zeros of the given shape, with updates added at the indices.
/// Updates to the same index are summed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScatterNd {
    /// The shape of the result.
    pub shape: Shape,
}

impl OpRules for ScatterNd {
    fn name(&self) -> &'static str {
        "ScatterNd"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(x[1].dtype.is_number(), x[1].dtype)?;
        let depth = index_depth(x[0], &self.shape)?;
        let i = x[0].shape.dims();
        let expected: Shape = i[..i.len() - 1].iter().chain(&self.shape.dims()[depth..]).copied().collect();
        expect_equal("updates", &x[1].shape, &expected)?;
        one(x[1].dtype, self.shape.clone())
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[1].starts_with(&x[0][..x[0].len() - 1])
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        Ok(vec![Gradient::None, Gradient::Dense(back.node(GatherNd, &[&back.dy(0), &back.x[0]]))])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.x[1]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        // TF: the shape has the dtype of the indices.
        let sizes = writer.shape(&def.name, "shape", self.shape.dims(), writer.dtype(node, 0))?;
        Ok(typed(typed(def.input(sizes), "Tindices", writer.dtype(node, 0)), "T", writer.dtype(node, 1)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("ScatterNd", read_scatter)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (params, indices) = (reading.tensor(0)?, reading.tensor(1)?);
    reading.add(GatherNd, &[&params, &indices])
}

fn read_scatter(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (indices, updates, shape) = (reading.tensor(0)?, reading.tensor(1)?, reading.shape(2)?);
    reading.add(ScatterNd { shape }, &[&indices, &updates])
}
