//! Repeats the whole input.

use super::rules::*;

/// Repeats the whole input along each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The number of repetitions along each axis.
    pub multiples: Vec<usize>,
}

impl OpRules for Tile {
    fn name(&self) -> &'static str {
        "Tile"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        expect_rank_of(self.multiples.len(), x[0], "multiples")?;
        let mut dims = Vec::new();
        for (&d, &m) in x[0].shape.dims().iter().zip(&self.multiples) {
            dims.push(inference.symbols.mul(d, Dim::Known(m))?);
        }
        one(x[0].dtype, dims.into_iter().collect())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        // Split every axis into (repeat, size) and sum over the repeats.
        let x = back.x[0].shape();
        let mut split = Shape::scalar();
        let mut repeats = AxisSet::default();
        for (&m, &d) in self.multiples.iter().zip(x.dims()) {
            if m != 1 {
                repeats.0 |= 1 << split.rank();
                split.0.push(Dim::Known(m));
            }
            split.0.push(d);
        }
        let apart = back.dy(0).reshape_to(split, back.site);
        dense([apart.reduce(Reduction::Sum, repeats, false, back.site).reshape_to(x.clone(), back.site)])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let multiples = writer.ints(&def.name, "multiples", &mut self.multiples.iter().map(|&m| m as i64))?;
        Ok(typed(typed(def.input(multiples), "T", writer.dtype(node, 0)), "Tmultiples", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }
}
