//! Concatenation along an axis.

use super::Slice;
use super::rules::*;

/// Concatenates along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concat {
    /// The axis.
    pub axis: usize,
}

impl OpRules for Concat {
    fn name(&self) -> &'static str {
        "ConcatV2"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let Some((first, rest)) = x.split_first() else {
            return Err(Error::config("concat was given no tensors; expected at least one"));
        };
        let axis = axis_of(self.axis, first)?;
        let mut shape = first.shape.clone();
        for other in rest {
            same_dtype(first, other)?;
            if other.shape.rank() != first.shape.rank() {
                return Err(Error::shape(format!(
                    "{other} has {} axes, but the first tensor has {}",
                    other.shape.rank(),
                    first.shape.rank()
                )));
            }
            for i in 0..shape.rank() {
                let (a, b) = (shape.dims()[i], other.shape.dims()[i]);
                if i == axis {
                    shape.0[i] = inference.symbols.add(a, b)?;
                } else if a.known().is_some() && b.known().is_some() && a != b {
                    return Err(Error::shape(format!(
                        "{} and {} differ on axis {i}, which is not the joined axis {axis}",
                        first.shape, other.shape
                    )));
                } else if a.known().is_none() {
                    shape.0[i] = b;
                }
            }
        }
        one(first.dtype, shape)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x.iter().all(|d| (0..d.len()).all(|i| i == self.axis || d[i] == x[0][i]))
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let dy = back.dy(0);
        let mut begin = vec![0usize; dy.rank()];
        let mut found = Vec::new();
        for x in &back.x {
            let slice = Slice { begin: begin.clone(), size: x.shape().clone() };
            found.push(Gradient::Dense(back.node(slice, &[&dy])));
            match x.shape().dims()[self.axis] {
                Dim::Known(n) => begin[self.axis] += n,
                Dim::Sym(_) if found.len() == back.x.len() => {}
                Dim::Sym(_) => return Err(not_differentiable("joining along an axis of unknown size")),
            }
        }
        Ok(found)
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let axis = writer.int(&def.name, "axis", self.axis)?;
        let def = def.input(axis).attr("N", node.inputs.len() as i64);
        Ok(typed(typed(def, "T", writer.dtype(node, 0)), "Tidx", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("ConcatV2", read), ("Concat", read_axis_first)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let n = reading.n_inputs().saturating_sub(1);
    let axis = reading.integer(n)?;
    join(reading.tensors(0..n)?, axis)
}

fn read_axis_first(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let axis = reading.integer(0)?;
    join(reading.tensors(1..reading.n_inputs())?, axis)
}

fn join(parts: Vec<Tensor>, axis: i64) -> Result<Vec<Tensor>> {
    match parts.is_empty() {
        true => Err(Error::config("there are no inputs to join")),
        false => Ok(vec![Tensor::concat(&parts.iter().collect::<Vec<_>>(), axis)]),
    }
}
