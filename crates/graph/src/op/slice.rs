//! Slices of a tensor.

use super::Pad;
use super::rules::*;

/// A rectangular slice of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// First index on each axis.
    pub begin: Vec<usize>,
    /// Size on each axis.
    pub size: Shape,
}

impl OpRules for Slice {
    fn name(&self) -> &'static str {
        "Slice"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let Slice { begin, size } = self;
        expect_rank_of(begin.len(), x[0], "begins")?;
        expect_rank_of(size.rank(), x[0], "sizes")?;
        for (axis, (&b, (&n, &d))) in begin.iter().zip(size.dims().iter().zip(x[0].shape.dims())).enumerate() {
            if let (Some(n), Some(d)) = (n.known(), d.known())
                && b.checked_add(n).is_none_or(|end| end > d)
            {
                return Err(Error::index(format!(
                    "the slice {b}..{} is outside axis {axis}, which has size {d}",
                    b.saturating_add(n)
                )));
            }
        }
        one(x[0].dtype, size.clone())
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        self.begin.iter().zip(y).zip(x[0]).all(|((b, n), d)| b + n <= *d)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let x = &back.x[0];
        let before: Shape = self.begin.iter().map(|&b| Dim::Known(b)).collect();
        let after = x.shape().dims().iter().zip(&self.begin).zip(self.size.dims()).map(|((&d, &b), &n)| {
            back.graph.symbols_mut(|s| {
                let rest = s.sub(d, n);
                s.sub(rest, Dim::Known(b))
            })
        });
        let after: Shape = after.collect();
        let padded = back.node(Pad { before, after }, &[&back.dy(0), &back.number(x, 0.0)]);
        // Padding may have produced a formula where the shape is known to be that of x.
        dense([padded.reshape_to(x.shape().clone(), back.site)])
    }

    /// Reads only the elements of the slice.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        Cost { read: operands.written(), written: operands.written(), flops: 0 }
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let Slice { begin, size } = self;
        let first = writer.ints(&def.name, "begin", &mut begin.iter().map(|&b| b as i64))?;
        let whole = &writer.spec(node, 0).shape;
        // An unknown size that reaches the end of its axis is -1 in TensorFlow.
        let to_end = |i: usize| begin[i] == 0 && size.dims()[i] == whole.dims()[i];
        let sizes: Option<Vec<i64>> = (0..begin.len())
            .map(|i| size.dims()[i].known().map(|n| n as i64).or_else(|| to_end(i).then_some(-1)))
            .collect();
        let sizes = match sizes {
            Some(sizes) => writer.ints(&def.name, "size", &mut sizes.into_iter())?,
            None => writer.shape(&def.name, "size", size.dims(), DType::I32)?,
        };
        let def = def.input(first).input(sizes);
        Ok(typed(typed(def, "T", writer.dtype(node, 0)), "Index", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }
}
