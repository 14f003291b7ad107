//! Reductions over axes.

use super::rules::*;
use super::transpose::inverse;
use super::{Cast, Cumulate, Transpose};

/// Reduces a set of axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// The reduction: sum, mean, ...
    pub kind: Reduction,
    /// The axes to reduce.
    pub axes: AxisSet,
    /// Keeps reduced axes with size 1.
    pub keep_dims: bool,
}

impl OpRules for Reduce {
    fn name(&self) -> &'static str {
        self.kind.tf_name()
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(self.kind.accepts(x[0].dtype), x[0].dtype)?;
        within_rank(self.axes, x[0])?;
        let kept = |(axis, &d): (usize, &Dim)| match (self.axes.contains(axis), self.keep_dims) {
            (false, _) => Some(d),
            (true, true) => Some(Dim::Known(1)),
            (true, false) => None,
        };
        one(x[0].dtype, x[0].shape.dims().iter().enumerate().filter_map(kept).collect())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        use Binary::*;
        let x = &back.x[0];
        let full = |t: &Tensor| t.broadcast_shape(x.shape().clone(), back.site);
        let dy = self.with_axes(&back.dy(0), back);
        dense([match self.kind {
            Reduction::Sum => full(&dy),
            Reduction::Mean => full(&back.binary(Div, &dy, &self.n_reduced(back)?)),
            Reduction::Max | Reduction::Min => {
                // TF: equal maxima (or minima) share the gradient.
                let y = self.with_axes(&back.y[0], back);
                let winners = back.binary(Equal, x, &y);
                let winners = back.node(Cast { to: x.dtype() }, &[&winners]);
                let share = winners.reduce(Reduction::Sum, self.axes, true, back.site);
                back.binary(Mul, &back.binary(Div, &winners, &share), &dy)
            }
            Reduction::Prod => self.product_gradient(&dy, back)?,
            Reduction::All | Reduction::Any => return back.nothing(),
        }])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let axes = writer.ints(&def.name, "reduction_indices", &mut self.axes.iter().map(|a| a as i64))?;
        let def = typed(def.input(axes).attr("keep_dims", self.keep_dims), "Tidx", DType::I32);
        Ok(match self.kind {
            Reduction::All | Reduction::Any => def,
            _ => typed(def, "T", writer.dtype(node, 0)),
        })
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        Reduction::ALL.iter().map(|kind| (kind.tf_name(), read as ReadRule)).collect()
    }
}

impl Reduce {
    /// Restores the reduced axes with size 1.
    fn with_axes(&self, reduced: &Tensor, back: &Backprop<'_>) -> Tensor {
        let dims = back.x[0].shape().dims().iter().enumerate();
        let kept = dims.map(|(a, &d)| if self.axes.contains(a) { Dim::Known(1) } else { d }).collect();
        reduced.reshape_to(kept, back.site)
    }

    /// The number of elements reduced into one, as a tensor of the input's dtype.
    fn n_reduced(&self, back: &Backprop<'_>) -> Result<Tensor> {
        let x = &back.x[0];
        let dims: Vec<Dim> = self.axes.iter().map(|a| x.shape().dims()[a]).collect();
        let product = back.graph.symbols_mut(|s| s.product(&dims))?;
        Ok(x.dim_size(product, x.dtype(), back.site))
    }

    /// For each element the product of all others, from exclusive running products in both
    /// directions. This also works with zeros.
    fn product_gradient(&self, dy: &Tensor, back: &Backprop<'_>) -> Result<Tensor> {
        let x = &back.x[0];
        // The reduced axes move to the end and are merged into one.
        let rest = (0..x.rank()).filter(|&a| !self.axes.contains(a));
        let perm: Axes = rest.chain(self.axes.iter()).map(|a| a as u8).collect();
        let n_kept = x.rank() - self.axes.iter().count();
        let permuted = back.node(Transpose { perm: perm.clone() }, &[x]);
        let last = back.graph.symbols_mut(|s| s.product(&permuted.shape().dims()[n_kept..]))?;
        let flat: Shape = permuted.shape().dims()[..n_kept].iter().copied().chain([last]).collect();
        let row = permuted.reshape_to(flat, back.site);
        let running = |reverse| back.node(Cumulate { product: true, axis: n_kept, exclusive: true, reverse }, &[&row]);
        let others = back.binary(Binary::Mul, &running(false), &running(true));
        let others = others.reshape_to(permuted.shape().clone(), back.site);
        let others = back.node(Transpose { perm: inverse(&perm) }, &[&others]);
        Ok(back.binary(Binary::Mul, &others, dy))
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let kind = Reduction::ALL.into_iter().find(|kind| kind.tf_name() == reading.op());
    let kind = kind.ok_or_else(|| Error::internal("not a reduction"))?;
    let keep_dims = reading.flag("keep_dims", false)?;
    let (axes, tensor) = (reading.integers(1)?, reading.tensor(0)?);
    let axes = axes.iter().map(|&a| axis(a, tensor.rank())).collect::<Result<Vec<_>>>()?;
    reading.add(Reduce { kind, axes: axes.into_iter().collect(), keep_dims }, &[&tensor])
}
