//! Gradients of ops along axes: reductions, joins, repeats, selections.

use estimand_tensor::{Binary, DType, Dim, Error, Result, Shape};

use super::Gradient;
use super::rule::{Found, Rule, dense, inverse, not_differentiable};
use crate::op::{Axes, AxisSet, Op, Reduction};
use crate::tensor::Tensor;

impl Rule<'_> {
    pub(super) fn reduce(&self, kind: Reduction, axes: AxisSet) -> Result<Found> {
        use Binary::*;
        let x = &self.x[0];
        let full = |t: &Tensor| t.broadcast_shape(x.shape().clone(), self.site);
        let dy = self.keep_dims(&self.dy(0), axes);
        dense([match kind {
            Reduction::Sum => full(&dy),
            Reduction::Mean => full(&self.b(Div, &dy, &self.count(axes)?)),
            Reduction::Max | Reduction::Min => {
                // TF: equal winners share the gradient.
                let y = self.keep_dims(&self.y[0], axes);
                let winners = self.b(Equal, x, &y);
                let winners = self.node(Op::Cast(x.dtype()), &[&winners]);
                let share = winners.reduce(Reduction::Sum, axes, true, self.site);
                self.b(Mul, &self.b(Div, &winners, &share), &dy)
            }
            Reduction::Prod => self.product_gradient(axes, &dy)?,
            Reduction::All | Reduction::Any => return self.nothing(),
        }])
    }

    /// The reduced tensor with its axes back, size 1.
    fn keep_dims(&self, t: &Tensor, axes: AxisSet) -> Tensor {
        let x = self.x[0].shape();
        let kept =
            x.dims().iter().enumerate().map(|(a, &d)| if axes.contains(a) { Dim::Known(1) } else { d }).collect();
        t.reshape_to(kept, self.site)
    }

    /// The number of elements that `axes` of the first input hold, as a tensor of its dtype.
    fn count(&self, axes: AxisSet) -> Result<Tensor> {
        let x = &self.x[0];
        let dims: Vec<Dim> = axes.iter().map(|a| x.shape().dims()[a]).collect();
        let product = self.graph.symbols_mut(|s| s.product(&dims))?;
        Ok(x.dim_size(product, x.dtype(), self.site))
    }

    /// Products of all other elements, from exclusive running products in both directions, so that zeros are no problem.
    fn product_gradient(&self, axes: AxisSet, dy: &Tensor) -> Result<Tensor> {
        let x = &self.x[0];
        // The reduced axes go to the end and become one.
        let rest = (0..x.rank()).filter(|&a| !axes.contains(a));
        let perm: Axes = rest.chain(axes.iter()).map(|a| a as u8).collect();
        let n_kept = x.rank() - axes.iter().count();
        let permuted = self.node(Op::Transpose(perm.clone()), &[x]);
        let last = self.graph.symbols_mut(|s| s.product(&permuted.shape().dims()[n_kept..]))?;
        let flat: Shape = permuted.shape().dims()[..n_kept].iter().copied().chain([last]).collect();
        let row = permuted.reshape_to(flat, self.site);
        let running =
            |reverse| self.node(Op::Cumulate { product: true, axis: n_kept, exclusive: true, reverse }, &[&row]);
        let others =
            self.b(Binary::Mul, &running(false), &running(true)).reshape_to(permuted.shape().clone(), self.site);
        let others = self.node(Op::Transpose(inverse(&perm)), &[&others]);
        Ok(self.b(Binary::Mul, &others, dy))
    }

    pub(super) fn concat(&self, axis: usize) -> Result<Found> {
        let dy = self.dy(0);
        let mut begin = vec![0usize; dy.rank()];
        let mut found = Vec::new();
        for x in &self.x {
            let slice = Op::Slice { begin: begin.clone(), size: x.shape().clone() };
            found.push(Gradient::Dense(self.node(slice, &[&dy])));
            match x.shape().dims()[axis] {
                Dim::Known(n) => begin[axis] += n,
                Dim::Sym(_) if found.len() == self.x.len() => {}
                Dim::Sym(_) => return Err(not_differentiable("joining along an axis of unknown size")),
            }
        }
        Ok(found)
    }

    pub(super) fn tile(&self, multiples: &[usize]) -> Result<Found> {
        // Split every axis into (repeat, size) and sum over the repeats.
        let mut split = Shape::scalar();
        let mut repeats = AxisSet::default();
        for (&m, &d) in multiples.iter().zip(self.x[0].shape().dims()) {
            if m != 1 {
                repeats.0 |= 1 << split.rank();
                split.0.push(Dim::Known(m));
            }
            split.0.push(d);
        }
        let apart = self.dy(0).reshape_to(split, self.site);
        dense([apart
            .reduce(Reduction::Sum, repeats, false, self.site)
            .reshape_to(self.x[0].shape().clone(), self.site)])
    }

    pub(super) fn top_k(&self) -> Result<Found> {
        // Scatter along the last axis: flatten the rows and add each row's offset to its indices.
        let (x, indices) = (&self.x[0], &self.y[1]);
        let dims = x.shape().dims();
        let (lead, width) = (&dims[..dims.len() - 1], dims[dims.len() - 1]);
        let (rows, total) = self.graph.symbols_mut(|s| Ok::<_, Error>((s.product(lead)?, s.product(dims)?)))?;
        let Some(width) = width.known() else { return Err(not_differentiable("top_k of an axis of unknown size")) };
        let k = self.y[0].shape().dims()[dims.len() - 1];
        let ids = self.node(Op::Cast(DType::I64), &[indices]).reshape_to(Shape::from([rows, k]), self.site);
        let first = self.node(Op::Range(rows, DType::I64), &[]).reshape_to(Shape::from([rows, 1.into()]), self.site);
        let offset = self.b(Binary::Mul, &first, &self.c(&first, width as f64));
        let flat_k = self.graph.symbols_mut(|s| s.product(&[rows, k]))?;
        let ids = self.b(Binary::Add, &ids, &offset).reshape_to(Shape::from([flat_k]), self.site);
        let dy = self.dy(0).reshape_to(Shape::from([flat_k]), self.site);
        let flat = dy.segments(Reduction::Sum, &ids, total, self.site);
        dense([flat.reshape_to(x.shape().clone(), self.site)])
    }
}
