//! Permutes axes.

use super::rules::*;

/// Permutes axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// For each axis of the result, the axis of the input.
    pub perm: Axes,
}

impl OpRules for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let rank = x[0].shape.rank();
        let mut seen = AxisSet::default();
        for &axis in &self.perm {
            seen.0 |= 1u32.checked_shl(axis.into()).unwrap_or(0);
        }
        if self.perm.len() != rank || seen != AxisSet::all(rank) {
            return Err(Error::shape(format!(
                "the permutation is {:?} for a tensor with {rank} axes; expected each of 0..{rank} once",
                self.perm.as_slice()
            )));
        }
        one(x[0].dtype, self.perm.iter().map(|&a| x[0].shape.dims()[a as usize]).collect())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.node(Transpose { perm: inverse(&self.perm) }, &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let perm = writer.ints(&def.name, "perm", &mut self.perm.iter().map(|&a| i64::from(a)))?;
        Ok(typed(typed(def.input(perm), "T", writer.dtype(node, 0)), "Tperm", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Transpose", read)]
    }
}

/// The inverse of a permutation.
pub(super) fn inverse(perm: &Axes) -> Axes {
    let mut inverse = perm.clone();
    for (to, &from) in perm.iter().enumerate() {
        inverse[from as usize] = to as u8;
    }
    inverse
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (perm, tensor) = (reading.integers(1)?, reading.tensor(0)?);
    let perm = perm.iter().map(|&a| axis(a, tensor.rank())).collect::<Result<Vec<_>>>()?;
    if perm.len() != tensor.rank() {
        return Err(Error::shape(format!(
            "the permutation is {perm:?} for a tensor with {} axes; expected each axis once",
            tensor.rank()
        )));
    }
    Ok(vec![if perm.is_empty() { tensor } else { tensor.transpose(&perm) }])
}
