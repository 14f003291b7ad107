//! Rows combined by ragged row.

use estimand_tensor::{Binary, Result, Unary};

use super::Gradient;
use super::rule::{Found, Rule, not_differentiable};
use crate::host::{HostOp, RowIds};
use crate::op::{AxisSet, Combiner, Op, Reduction};
use crate::tensor::Tensor;

impl Rule<'_> {
    /// Of `SparseSegment`: a row gets its shares of the gradient; a weight gets what its row changes.
    pub(super) fn lookups(&self, combiner: Combiner) -> Result<Found> {
        let mut found = vec![Gradient::None; self.x.len()];
        if self.wanted[0] {
            let n_rows = self.x[0].shape().dims()[0];
            found[0] = Gradient::Dense(self.like_lookups(Op::SparseSegmentGrad(combiner, n_rows)));
        }
        if self.wanted.get(3) == Some(&true) {
            found[3] = Gradient::Dense(self.weights_gradient(combiner));
        }
        Ok(found)
    }

    /// Of `SparseSegmentGrad`, which is linear: the way back.
    pub(super) fn lookups_gradient(&self, combiner: Combiner) -> Result<Found> {
        if self.wanted.get(3) == Some(&true) {
            return Err(not_differentiable("the gradient of a weighted lookup, for its weights,"));
        }
        let mut found = vec![Gradient::None; self.x.len()];
        found[0] = Gradient::Dense(self.like_lookups(Op::SparseSegment(combiner)));
        Ok(found)
    }

    /// An op on the gradient and the same lookups.
    fn like_lookups(&self, op: Op) -> Tensor {
        let dy = self.dy(0);
        let inputs: Vec<&Tensor> = std::iter::once(&dy).chain(&self.x[1..]).collect();
        self.node(op, &inputs)
    }

    /// With y = sum(w x) / d: the sum gives dy.x / d; d is sum(w), whose part is -dy.y / d, or sqrt(sum(w^2)): -dy.y w / d^2.
    fn weights_gradient(&self, combiner: Combiner) -> Tensor {
        use Binary::*;
        let (rows, index, splits, weights) = (&self.x[0], &self.x[1], &self.x[2], &self.x[3]);
        let row_ids = self.node(Op::Host(HostOp::new(RowIds)), &[splits, index]);
        let gather = |from: &Tensor, at: &Tensor| self.node(Op::Gather { axis: 0, batch_dims: 0 }, &[from, at]);
        let dy = gather(&self.dy(0), &row_ids);
        let inner = AxisSet(AxisSet::all(dy.rank()).0 & !1);
        let dot = |other: &Tensor| self.b(Mul, &dy, other).reduce(Reduction::Sum, inner, false, self.site);
        let direct = dot(&gather(rows, index));
        let n_segments = self.y[0].shape().dims()[0];
        let total = |of: &Tensor| gather(&of.segments(Reduction::Sum, &row_ids, n_segments, self.site), &row_ids);
        let through = || dot(&gather(&self.y[0], &row_ids));
        match combiner {
            Combiner::Sum => direct,
            Combiner::Mean => self.b(DivNoNan, &self.b(Sub, &direct, &through()), &total(weights)),
            Combiner::SqrtN => {
                let divisor = self.u(Unary::Sqrt, &total(&self.u(Unary::Square, weights)));
                let part = self.b(DivNoNan, &self.b(Mul, &through(), weights), &divisor);
                self.b(DivNoNan, &self.b(Sub, &direct, &part), &divisor)
            }
        }
    }
}
