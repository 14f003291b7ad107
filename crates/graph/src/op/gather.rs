//! Gathers slices of an axis.

use super::rules::*;
use super::{Range, Transpose};

/// (params, indices): slices of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gather {
    /// The axis of `params`.
    pub axis: usize,
    /// Leading axes that params and indices share.
    pub batch_dims: usize,
}

impl Gather {
    /// Rows of the first axis.
    pub const ROWS: Gather = Gather { axis: 0, batch_dims: 0 };
}

impl OpRules for Gather {
    fn name(&self) -> &'static str {
        "GatherV2"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let batch_dims = self.batch_dims;
        integer_ids(x[1], "indices")?;
        let axis = axis_of(self.axis, x[0])?;
        let (p, i) = (x[0].shape.dims(), x[1].shape.dims());
        if batch_dims > axis || batch_dims > i.len() || p[..batch_dims] != i[..batch_dims] {
            return Err(Error::shape(format!(
                "batch_dims is {batch_dims} and axis {axis}, but params {} and indices {} do not share their first \
                 {batch_dims} axes",
                x[0].shape, x[1].shape
            )));
        }
        one(x[0].dtype, p[..axis].iter().chain(&i[batch_dims..]).chain(&p[axis + 1..]).copied().collect())
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0][..self.batch_dims] == x[1][..self.batch_dims]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (params, indices, dy) = (&back.x[0], &back.x[1], back.dy(0));
        let axis = self.axis;
        let flat_ids = |ids: &Tensor| -> Result<(Tensor, Dim)> {
            let n = back.graph.symbols_mut(|s| s.product(ids.shape().dims()))?;
            Ok((ids.reshape_to(Shape::from([n]), back.site), n))
        };
        let gradient = match (axis, self.batch_dims) {
            (0, 0) => {
                let (ids, n) = flat_ids(indices)?;
                let mut shape = params.shape().clone();
                shape.0[0] = n;
                Gradient::Rows { indices: ids, values: dy.reshape_to(shape, back.site) }
            }
            (_, 0) => {
                // Bring the gathered axes to the front, sum the segments, and put the axis back.
                let k = indices.rank();
                let order = (axis..axis + k).chain(0..axis).chain(axis + k..dy.rank());
                let front = back.node(Transpose { perm: order.map(|a| a as u8).collect() }, &[&dy]);
                let (ids, n) = flat_ids(indices)?;
                let mut shape = Shape::from([n]);
                shape.0.extend(front.shape().dims()[k..].iter().copied());
                let rows = front.reshape_to(shape, back.site);
                let summed = rows.segments(Reduction::Sum, &ids, params.shape().dims()[axis], back.site);
                let order = (1..=axis).chain([0]).chain(axis + 1..params.rank());
                Gradient::Dense(back.node(Transpose { perm: order.map(|a| a as u8).collect() }, &[&summed]))
            }
            _ => self.batched_gradient(back)?,
        };
        Ok(vec![gradient, Gradient::None])
    }

    /// Only the gathered rows of the table are read.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.looked_up()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let axis = writer.int(&def.name, "axis", self.axis)?;
        let def = def.input(axis).attr("batch_dims", self.batch_dims as i64);
        let def = typed(typed(def, "Tparams", writer.dtype(node, 0)), "Tindices", writer.dtype(node, 1));
        Ok(typed(def, "Taxis", DType::I32))
    }

    fn moves_elements(&self) -> bool {
        true
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("GatherV2", read), ("Gather", read)]
    }
}

impl Gather {
    /// With batch axes: offsets the ids so that each batch has its own segments.
    fn batched_gradient(&self, back: &Backprop<'_>) -> Result<Gradient> {
        let (params, indices, dy) = (&back.x[0], &back.x[1], back.dy(0));
        let Gather { axis, batch_dims } = *self;
        if axis != batch_dims {
            return Err(not_differentiable("gather with batch_dims on a later axis"));
        }
        let (p, i) = (params.shape().dims().to_vec(), indices.shape().dims().to_vec());
        let (batches, per_batch, n, total) = back.graph.symbols_mut(|s| {
            let batches = s.product(&p[..batch_dims])?;
            let per_batch = s.product(&i[batch_dims..])?;
            Ok::<_, Error>((batches, per_batch, s.product(&i)?, s.product(&[batches, p[axis]])?))
        })?;
        let size = params.dim_size(p[axis], indices.dtype(), back.site);
        let first = back.node(Range { size: batches, dtype: indices.dtype() }, &[]);
        let first = first.reshape_to(Shape::from([batches, 1.into()]), back.site);
        let ids = indices.reshape_to(Shape::from([batches, per_batch]), back.site);
        let ids = back.binary(Binary::Add, &ids, &back.binary(Binary::Mul, &first, &size));
        let ids = ids.reshape_to(Shape::from([n]), back.site);
        let mut shape = Shape::from([n]);
        shape.0.extend(p[axis + 1..].iter().copied());
        let rows = dy.reshape_to(shape, back.site);
        let summed = rows.segments(Reduction::Sum, &ids, total, back.site);
        Ok(Gradient::Dense(summed.reshape_to(params.shape().clone(), back.site)))
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let along = if reading.n_inputs() > 2 { reading.integer(2)? } else { 0 };
    let (params, indices) = (reading.tensor(0)?, reading.tensor(1)?);
    let batch_dims = reading.int_or("batch_dims", 0)?;
    let batch_dims = if batch_dims < 0 { batch_dims + indices.rank() as i64 } else { batch_dims };
    let batch_dims = usize::try_from(batch_dims)
        .map_err(|_| Error::shape(format!("batch_dims is {batch_dims}; expected 0 or more")))?;
    reading.add(Gather { axis: axis(along, params.rank())?, batch_dims }, &[&params, &indices])
}
