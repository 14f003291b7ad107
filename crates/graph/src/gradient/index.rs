//! Gradients of ops that index.

use estimand_tensor::{Binary, Dim, Error, Result, Shape};

use super::Gradient;
use super::rule::{Found, Rule, not_differentiable};
use crate::op::{Op, Reduction};
use crate::tensor::Tensor;

impl Rule<'_> {
    pub(super) fn gather(&self, axis: usize, batch_dims: usize) -> Result<Found> {
        let (params, indices, dy) = (&self.x[0], &self.x[1], self.dy(0));
        let flat_ids = |ids: &Tensor| -> Result<(Tensor, Dim)> {
            let n = self.graph.symbols_mut(|s| s.product(ids.shape().dims()))?;
            Ok((ids.reshape_to(Shape::from([n]), self.site), n))
        };
        let gradient = match (axis, batch_dims) {
            (0, 0) => {
                let (ids, n) = flat_ids(indices)?;
                let mut shape = params.shape().clone();
                shape.0[0] = n;
                Gradient::Rows { indices: ids, values: dy.reshape_to(shape, self.site) }
            }
            (_, 0) => {
                // Bring the gathered axes to the front, sum the segments, and put the axis back.
                let k = indices.rank();
                let order = (axis..axis + k).chain(0..axis).chain(axis + k..dy.rank());
                let front = self.node(Op::Transpose(order.map(|a| a as u8).collect()), &[&dy]);
                let (ids, n) = flat_ids(indices)?;
                let mut shape = Shape::from([n]);
                shape.0.extend(front.shape().dims()[k..].iter().copied());
                let rows = front.reshape_to(shape, self.site);
                let summed = rows.segments(Reduction::Sum, &ids, params.shape().dims()[axis], self.site);
                let back = (1..=axis).chain([0]).chain(axis + 1..params.rank());
                Gradient::Dense(self.node(Op::Transpose(back.map(|a| a as u8).collect()), &[&summed]))
            }
            _ => self.batched_gather(axis, batch_dims)?,
        };
        Ok(vec![gradient, Gradient::None])
    }

    /// With batch axes: offset the ids so that each batch has its own segments.
    fn batched_gather(&self, axis: usize, batch_dims: usize) -> Result<Gradient> {
        let (params, indices, dy) = (&self.x[0], &self.x[1], self.dy(0));
        if axis != batch_dims {
            return Err(not_differentiable("gather with batch_dims on a later axis"));
        }
        let (p, i) = (params.shape().dims().to_vec(), indices.shape().dims().to_vec());
        let (batches, per_batch, n, total) = self.graph.symbols_mut(|s| {
            let batches = s.product(&p[..batch_dims])?;
            let per_batch = s.product(&i[batch_dims..])?;
            Ok::<_, Error>((batches, per_batch, s.product(&i)?, s.product(&[batches, p[axis]])?))
        })?;
        let size = params.dim_size(p[axis], indices.dtype(), self.site);
        let first =
            self.node(Op::Range(batches, indices.dtype()), &[]).reshape_to(Shape::from([batches, 1.into()]), self.site);
        let ids = indices.reshape_to(Shape::from([batches, per_batch]), self.site);
        let ids =
            self.b(Binary::Add, &ids, &self.b(Binary::Mul, &first, &size)).reshape_to(Shape::from([n]), self.site);
        let mut shape = Shape::from([n]);
        shape.0.extend(p[axis + 1..].iter().copied());
        let rows = dy.reshape_to(shape, self.site);
        let summed = rows.segments(Reduction::Sum, &ids, total, self.site);
        Ok(Gradient::Dense(summed.reshape_to(params.shape().clone(), self.site)))
    }

    pub(super) fn segments(&self, kind: Reduction) -> Result<Found> {
        use Binary::*;
        let (data, ids, dy) = (&self.x[0], &self.x[1], self.dy(0));
        // TF: rows with a negative id were dropped; they take no gradient.
        let zero = self.c(ids, 0.0);
        let kept = self.b(GreaterEqual, ids, &zero);
        let safe = self.b(Maximum, ids, &zero);
        let back = |t: &Tensor| self.node(Op::Gather { axis: 0, batch_dims: 0 }, &[t, &safe]);
        let mut mask_shape = ids.shape().clone();
        mask_shape.0.resize(data.rank(), Dim::Known(1));
        let kept = kept.reshape_to(mask_shape, self.site);
        let only_kept = |t: &Tensor| self.node(Op::Select, &[&kept, t, &self.c(t, 0.0)]);
        let gradient = match kind {
            Reduction::Sum => only_kept(&back(&dy)),
            Reduction::Max | Reduction::Min => {
                // TF: equal winners share the gradient.
                let winners = self.node(Op::Cast(data.dtype()), &[&self.b(Equal, data, &back(&self.y[0]))]);
                let winners = only_kept(&winners);
                let num = self.y[0].shape().dims()[0];
                let share = winners.segments(Reduction::Sum, ids, num, self.site);
                let portion = self.b(Mul, &winners, &back(&self.b(DivNoNan, &dy, &share)));
                only_kept(&portion)
            }
            _ => return Err(not_differentiable("a segment product")),
        };
        Ok(vec![Gradient::Dense(gradient), Gradient::None])
    }
}
