//! Padding mirrored from the inside, and its gradient.

use super::Op;
use super::pad::{known_paddings, read_paddings};
use super::rules::*;

/// Pads x with borders mirrored from its inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MirrorPad {
    /// Elements before and after each axis.
    pub paddings: Vec<(usize, usize)>,
    /// `SYMMETRIC` repeats the edge, `REFLECT` does not.
    pub symmetric: bool,
}

impl OpRules for MirrorPad {
    fn name(&self) -> &'static str {
        "MirrorPad"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let x = x[0];
        expect_rank_of(self.paddings.len(), x, "paddings")?;
        let mut shape = Shape::scalar();
        for (axis, (&d, &(before, after))) in x.shape.dims().iter().zip(&self.paddings).enumerate() {
            if (before, after) == (0, 0) {
                shape.0.push(d);
                continue;
            }
            let Some(n) = d.known() else {
                return Err(Error::shape(format!(
                    "axis {axis} of {} cannot be mirror-padded: its size is known only at run time",
                    x.shape
                )));
            };
            let most = if self.symmetric { n } else { n.saturating_sub(1) };
            if before > most || after > most {
                return Err(Error::shape(format!(
                    "the mirror padding of axis {axis} is ({before}, {after}); expected at most {most} for the size {n}"
                )));
            }
            shape.0.push(Dim::Known(n + before + after));
        }
        one(x.dtype, shape)
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let op = MirrorPadGrad { paddings: self.paddings.clone(), symmetric: self.symmetric };
        dense([back.node(op, &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        with_paddings(def, node, &self.paddings, self.symmetric, writer)
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("MirrorPad", |reading| read(reading, |paddings, symmetric| MirrorPad { paddings, symmetric }.into()))]
    }
}

/// The gradient of `MirrorPad`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MirrorPadGrad {
    /// As in `MirrorPad`.
    pub paddings: Vec<(usize, usize)>,
    /// As in `MirrorPad`.
    pub symmetric: bool,
}

impl OpRules for MirrorPadGrad {
    fn name(&self) -> &'static str {
        "MirrorPadGrad"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_rank_of(self.paddings.len(), x[0], "paddings")?;
        let inner = |(&d, &(b, a)): (&Dim, &(usize, usize))| match (d, b + a) {
            (d, 0) => Some(d),
            (d, border) => d.known()?.checked_sub(border).map(Dim::Known),
        };
        let dims: Option<Vec<Dim>> = x[0].shape.dims().iter().zip(&self.paddings).map(inner).collect();
        let dims = dims.ok_or_else(|| Error::shape("mirror padding needs sizes that are known before the run"))?;
        one(x[0].dtype, dims.into_iter().collect())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let op = MirrorPad { paddings: self.paddings.clone(), symmetric: self.symmetric };
        dense([back.node(op, &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        with_paddings(def, node, &self.paddings, self.symmetric, writer)
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("MirrorPadGrad", |reading| {
            read(reading, |paddings, symmetric| MirrorPadGrad { paddings, symmetric }.into())
        })]
    }
}

fn with_paddings(
    def: NodeDef,
    node: &Node,
    paddings: &[(usize, usize)],
    symmetric: bool,
    writer: &mut dyn Spelling,
) -> Result<NodeDef> {
    let paddings = known_paddings(&def.name, paddings.iter().copied(), writer)?;
    let mode = if symmetric { "SYMMETRIC" } else { "REFLECT" };
    let def = def.input(paddings).attr("mode", mode);
    Ok(typed(typed(def, "T", writer.dtype(node, 0)), "Tpaddings", DType::I32))
}

fn read(reading: &mut dyn Reading, op: fn(Vec<(usize, usize)>, bool) -> Op) -> Result<Vec<Tensor>> {
    let known = |(b, a): (Dim, Dim)| b.known().zip(a.known());
    let paddings = read_paddings(reading)?.into_iter().map(known).collect::<Option<Vec<_>>>();
    let paddings = paddings.ok_or_else(|| refuse("mirror padding by a number known only at run time"))?;
    let symmetric = reading.text_or("mode", "REFLECT")? == "SYMMETRIC";
    let tensor = reading.tensor(0)?;
    reading.add(op(paddings, symmetric), &[&tensor])
}
