//! The k largest elements.

use smallvec::smallvec;

use super::rules::*;
use super::{Cast, Range};
use crate::host::HostOp;
use crate::host::sparse::Top;

/// The k largest of the last axis, in descending order, and their indices (I32).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// The number of elements.
    pub k: usize,
}

impl OpRules for TopK {
    fn name(&self) -> &'static str {
        "TopKV2"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        let k = self.k;
        accepts(x[0].dtype.is_number(), x[0].dtype)?;
        let mut shape = x[0].shape.clone();
        let Some(last) = shape.0.last_mut() else {
            return Err(Error::shape("top_k was given a single number; expected at least one axis"));
        };
        if last.known().is_some_and(|n| k > n) {
            return Err(Error::shape(format!("top_k was given k = {k}, but the last axis has {last} elements")));
        }
        *last = Dim::Known(k);
        Ok(smallvec![TensorSpec { dtype: x[0].dtype, shape: shape.clone() }, TensorSpec { dtype: DType::I32, shape }])
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0].last().is_some_and(|n| self.k <= *n)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        // Scatter along the last axis: flatten the rows and add each row's offset to its indices.
        let (x, indices) = (&back.x[0], &back.y[1]);
        let dims = x.shape().dims();
        let (lead, width) = (&dims[..dims.len() - 1], dims[dims.len() - 1]);
        let (rows, total) = back.graph.symbols_mut(|s| Ok::<_, Error>((s.product(lead)?, s.product(dims)?)))?;
        let Some(width) = width.known() else { return Err(not_differentiable("top_k of an axis of unknown size")) };
        let k = back.y[0].shape().dims()[dims.len() - 1];
        let ids = back.node(Cast { to: DType::I64 }, &[indices]).reshape_to(Shape::from([rows, k]), back.site);
        let first = back.node(Range { size: rows, dtype: DType::I64 }, &[]);
        let first = first.reshape_to(Shape::from([rows, 1.into()]), back.site);
        let offset = back.binary(Binary::Mul, &first, &back.number(&first, width as f64));
        let flat_k = back.graph.symbols_mut(|s| s.product(&[rows, k]))?;
        let ids = back.binary(Binary::Add, &ids, &offset).reshape_to(Shape::from([flat_k]), back.site);
        let dy = back.dy(0).reshape_to(Shape::from([flat_k]), back.site);
        let flat = dy.segments(Reduction::Sum, &ids, total, back.site);
        dense([flat.reshape_to(x.shape().clone(), back.site)])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let k = writer.int(&def.name, "k", self.k)?;
        Ok(typed(def.input(k).attr("sorted", true), "T", writer.dtype(node, 0)))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("TopKV2", read)]
    }
}

/// Without `sorted` any order is allowed, including ours.
fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let tensor = reading.tensor(0)?;
    let mut outputs = match reading.size(1)? {
        Dim::Known(k) => reading.add(TopK { k }, &[&tensor])?,
        k => {
            let count = reading.tensor(1)?;
            reading.add(HostOp::new(Top { k }), &[&tensor, &count])?
        }
    };
    let dtype = reading.dtype_or("index_type", Some(DType::I32))?;
    if let Some(places) = outputs.get_mut(1) {
        *places = places.cast(dtype);
    }
    Ok(outputs)
}
