//! Reduces rows with the same id.

use super::rules::*;
use super::{Cast, Gather, Select};

/// (data, ids): reduces the rows with the same id; ids below 0 are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnsortedSegment {
    /// Sum, max, min or prod.
    pub kind: Reduction,
    /// The number of rows of the result.
    pub num_segments: Dim,
}

impl OpRules for UnsortedSegment {
    fn name(&self) -> &'static str {
        match self.kind {
            Reduction::Max => "UnsortedSegmentMax",
            Reduction::Min => "UnsortedSegmentMin",
            Reduction::Prod => "UnsortedSegmentProd",
            Reduction::Sum | Reduction::Mean | Reduction::All | Reduction::Any => "UnsortedSegmentSum",
        }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[1], "segment ids")?;
        accepts(x[0].dtype.is_number(), x[0].dtype)?;
        if !matches!(self.kind, Reduction::Sum | Reduction::Max | Reduction::Min | Reduction::Prod) {
            return Err(Error::config(format!(
                "segments cannot be reduced by {}; expected a sum, maximum, minimum or product",
                self.kind.tf_name()
            )));
        }
        let rank = x[1].shape.rank();
        if x[0].shape.rank() < rank || x[0].shape.dims()[..rank] != *x[1].shape.dims() {
            return Err(Error::shape(format!(
                "the data are {} and the segment ids {}; the shape of the data must begin with that of the ids",
                x[0].shape, x[1].shape
            )));
        }
        one(x[0].dtype, [self.num_segments].iter().chain(&x[0].shape.dims()[rank..]).copied().collect())
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0][..x[1].len()] == *x[1]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        use Binary::*;
        let (data, ids, dy) = (&back.x[0], &back.x[1], back.dy(0));
        // TF: rows with a negative id were dropped, so they get no gradient.
        let zero = back.number(ids, 0.0);
        let kept = back.binary(GreaterEqual, ids, &zero);
        let safe = back.binary(Maximum, ids, &zero);
        let of_rows = |t: &Tensor| back.node(Gather::ROWS, &[t, &safe]);
        let mut mask_shape = ids.shape().clone();
        mask_shape.0.resize(data.rank(), Dim::Known(1));
        let kept = kept.reshape_to(mask_shape, back.site);
        let only_kept = |t: &Tensor| back.node(Select, &[&kept, t, &back.number(t, 0.0)]);
        let gradient = match self.kind {
            Reduction::Sum => only_kept(&of_rows(&dy)),
            Reduction::Max | Reduction::Min => {
                // TF: equal maxima (or minima) share the gradient.
                let is_winner = back.binary(Equal, data, &of_rows(&back.y[0]));
                let winners = only_kept(&back.node(Cast { to: data.dtype() }, &[&is_winner]));
                let n = back.y[0].shape().dims()[0];
                let share = winners.segments(Reduction::Sum, ids, n, back.site);
                let portion = back.binary(Mul, &winners, &of_rows(&back.binary(DivNoNan, &dy, &share)));
                only_kept(&portion)
            }
            Reduction::Prod | Reduction::Mean | Reduction::All | Reduction::Any => {
                return Err(not_differentiable("a segment product"));
            }
        };
        Ok(vec![Gradient::Dense(gradient), Gradient::None])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let n = writer.size(self.num_segments, &def.name, "num_segments")?;
        let def = typed(typed(def.input(n), "Tindices", writer.dtype(node, 1)), "Tnumsegments", DType::I32);
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![
            ("UnsortedSegmentSum", |reading| read(reading, Reduction::Sum)),
            ("UnsortedSegmentMax", |reading| read(reading, Reduction::Max)),
            ("UnsortedSegmentMin", |reading| read(reading, Reduction::Min)),
            ("UnsortedSegmentProd", |reading| read(reading, Reduction::Prod)),
        ]
    }
}

/// Reads (data, ids in any order, number of segments).
fn read(reading: &mut dyn Reading, kind: Reduction) -> Result<Vec<Tensor>> {
    let (data, ids, num_segments) = (reading.tensor(0)?, reading.tensor(1)?, reading.size(2)?);
    let ids = match ids.rank() {
        1 => with_rows(&ids, n_rows(&data)?),
        _ => ids,
    };
    reading.add(UnsortedSegment { kind, num_segments }, &[&data, &ids])
}
