//! Padding with a constant value.

use smallvec::SmallVec;

use super::Slice;
use super::rules::*;
use super::spelling::index_number;

/// (x, value): pads x with the scalar `value`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pad {
    /// Elements before each axis.
    pub before: Shape,
    /// Elements after each axis.
    pub after: Shape,
}

impl OpRules for Pad {
    fn name(&self) -> &'static str {
        "PadV2"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let Pad { before, after } = self;
        same_dtype(x[0], x[1])?;
        expect_rank(0, x[1], "padding value")?;
        expect_rank_of(before.rank(), x[0], "paddings")?;
        expect_rank_of(after.rank(), x[0], "paddings")?;
        let mut dims = Vec::new();
        for ((&d, &b), &a) in x[0].shape.dims().iter().zip(before.dims()).zip(after.dims()) {
            let with_before = inference.symbols.add(d, b)?;
            dims.push(inference.symbols.add(with_before, a)?);
        }
        one(x[0].dtype, dims.into_iter().collect())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let Some(begin) = self.before.known() else { return Err(not_differentiable("padding of unknown size")) };
        let dy = back.dy(0);
        let inner = back.node(Slice { begin: begin.to_vec(), size: back.x[0].shape().clone() }, &[&dy]);
        let sum = |t: &Tensor| t.reduce(Reduction::Sum, AxisSet::all(t.rank()), false, back.site);
        let value = match back.wanted[1] {
            true => Gradient::Dense(back.binary(Binary::Sub, &sum(&dy), &sum(&inner))),
            false => Gradient::None,
        };
        Ok(vec![Gradient::Dense(inner), value])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let paddings = match (self.before.known(), self.after.known()) {
            (Some(before), Some(after)) => known_paddings(&def.name, before.into_iter().zip(after), writer)?,
            _ => {
                let pairs = self.before.dims().iter().zip(self.after.dims());
                let pairs: Vec<Dim> = pairs.flat_map(|(&b, &a)| [b, a]).collect();
                let flat = writer.shape(&def.name, "paddings/flat", &pairs, DType::I32)?;
                let shape = writer.ints(&def.name, "paddings/shape", &mut [-1, 2].into_iter())?;
                let rows = writer.part(&def.name, "paddings", "Reshape").input(flat).input(shape);
                writer.add(typed(typed(rows, "T", DType::I32), "Tshape", DType::I32))
            }
        };
        def.input.insert(1, paddings);
        Ok(typed(typed(def, "T", writer.dtype(node, 0)), "Tpaddings", DType::I32))
    }

    fn sizes(&self) -> SmallVec<[Dim; 4]> {
        self.before.dims().iter().chain(self.after.dims()).copied().collect()
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Pad", read), ("PadV2", read)]
    }
}

/// (before, after) of each axis, as rows of two.
pub(super) fn known_paddings(
    owner: &str,
    paddings: impl Iterator<Item = (usize, usize)>,
    writer: &mut dyn Spelling,
) -> Result<String> {
    let flat = paddings.flat_map(|(b, a)| [b, a]).map(|n| index_number(n as i64)).collect::<Result<Vec<i32>>>()?;
    writer.constant(owner, "paddings", &Array::from_vec([flat.len() / 2, 2], flat)?)
}

/// (before, after) of each axis, from the second input of a node.
pub(super) fn read_paddings(reading: &mut dyn Reading) -> Result<Vec<(Dim, Dim)>> {
    let sizes = reading.sizes(1, false)?;
    Ok(sizes.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let paddings = read_paddings(reading)?;
    let tensor = reading.tensor(0)?;
    let value = match reading.n_inputs() {
        2 => reading.graph().constant(Array::zeros(tensor.dtype(), [])?),
        _ => reading.tensor(2)?,
    };
    let (before, after): (Vec<Dim>, Vec<Dim>) = paddings.into_iter().unzip();
    let op = Pad { before: before.into_iter().collect(), after: after.into_iter().collect() };
    reading.add(op, &[&tensor, &value])
}
