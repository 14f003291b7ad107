//! Reshapes a tensor.

use super::rules::*;
use crate::graph::Graph;
use crate::symbols::Symbols;

/// The same elements in another shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The shape; one size may be [`Graph::ANY`].
    pub shape: Shape,
}

impl OpRules for Reshape {
    fn name(&self) -> &'static str {
        "Reshape"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        one(x[0].dtype, resolved(&x[0].shape, &self.shape, inference.symbols)?)
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        count(x[0]) == count(y)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.dy(0).reshape_to(back.x[0].shape().clone(), back.site)])
    }

    /// Free: the result is another view of the same bytes.
    fn cost(&self, _operands: &Operands<'_>) -> Cost {
        Cost::default()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let dims = self.shape.dims();
        let n_unknown = dims.iter().filter(|d| d.known().is_none()).count();
        // TensorFlow computes one size itself. TF: -1 beside a size of 0 is an error.
        let sizes = match n_unknown == 1 && !dims.contains(&Dim::Known(0)) {
            true => writer.ints(&def.name, "shape", &mut dims.iter().map(|d| d.known().map_or(-1, |n| n as i64)))?,
            false => writer.shape(&def.name, "shape", dims, DType::I32)?,
        };
        Ok(typed(typed(def.input(sizes), "T", writer.dtype(node, 0)), "Tshape", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Reshape", read)]
    }
}

/// Returns the shape with the open size resolved.
fn resolved(from: &Shape, to: &Shape, symbols: &mut Symbols) -> Result<Shape> {
    let free = to.dims().iter().filter(|d| **d == Graph::ANY).count();
    let cannot = |why: &str| Error::shape(format!("cannot reshape {from} to {}: {why}", display_target(to)));
    let mut shape = to.clone();
    match free {
        0 => {}
        1 => {
            let rest: Vec<Dim> = to.dims().iter().copied().filter(|d| *d != Graph::ANY).collect();
            let dim = match symbols.exact_quotient(from.dims(), &rest)? {
                Some(dim) => dim,
                None if from.known().is_some() && rest.iter().all(|d| d.known().is_some()) => {
                    return Err(cannot("the other sizes do not divide the number of elements"));
                }
                None => {
                    let (total, part) = (symbols.product(from.dims())?, symbols.product(&rest)?);
                    if part == Dim::Known(0) {
                        return Err(cannot("-1 can have any value if another size is 0"));
                    }
                    symbols.div(total, part)
                }
            };
            for d in shape.0.iter_mut().filter(|d| **d == Graph::ANY) {
                *d = dim;
            }
        }
        _ => return Err(cannot("only one size can be -1")),
    }
    let (before, after) = (symbols.product(from.dims())?, symbols.product(shape.dims())?);
    match (before.known(), after.known()) {
        (Some(a), Some(b)) if a != b => Err(cannot(&format!("the first has {a} elements, the second {b}"))),
        _ => Ok(shape),
    }
}

fn display_target(shape: &Shape) -> String {
    let text = |d: &Dim| if *d == Graph::ANY { "-1".to_string() } else { d.to_string() };
    format!("[{}]", shape.dims().iter().map(text).collect::<Vec<_>>().join(", "))
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let shape: Shape = reading.sizes(1, true)?.into_iter().collect();
    Ok(vec![reading.tensor(0)?.reshape_as(shape)])
}
