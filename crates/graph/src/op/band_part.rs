//! Band matrices: elements outside a band are set to 0.

use super::rules::*;
use super::spelling::index_number;

/// Sets elements of the last two axes to 0 if they are more than `lower` below the diagonal, or
/// more than `upper` above it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BandPart {
    /// The number of diagonals to keep below the main one; `None` for all.
    pub lower: Option<usize>,
    /// The number of diagonals to keep above the main one; `None` for all.
    pub upper: Option<usize>,
}

impl OpRules for BandPart {
    fn name(&self) -> &'static str {
        "MatrixBandPart"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(x[0].dtype != DType::Str, x[0].dtype)?;
        if x[0].shape.rank() < 2 {
            return Err(Error::shape(format!("the input is {}; expected two axes or more", x[0])));
        }
        same(x[0])
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.node(self.clone(), &[&back.dy(0)])])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    /// TF: a negative number keeps all diagonals; a number above the size of the axis is refused.
    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let dims = writer.spec(node, 0).shape.dims();
        let number = |n: Option<usize>, size: Dim| match n {
            Some(n) if size.known().is_none_or(|size| n <= size) => index_number(n as i64).map(i64::from),
            _ => Ok(-1),
        };
        let (lower, upper) = (number(self.lower, dims[dims.len() - 2])?, number(self.upper, dims[dims.len() - 1])?);
        let lower = writer.constant(&def.name, "num_lower", &Array::scalar(lower))?;
        let upper = writer.constant(&def.name, "num_upper", &Array::scalar(upper))?;
        let def = def.input(lower).input(upper);
        Ok(typed(typed(def, "T", writer.dtype(node, 0)), "Tindex", DType::I64))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("MatrixBandPart", read)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (x, lower, upper) = (reading.tensor(0)?, reading.integer(1)?, reading.integer(2)?);
    reading.add(BandPart { lower: usize::try_from(lower).ok(), upper: usize::try_from(upper).ok() }, &[&x])
}
